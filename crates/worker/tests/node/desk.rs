//! The other side of the report door: a [`Desk`] that takes, remembers and can be away.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert::{self, AttemptReport, Said};
use jobyard_api::proto::{self, LogVerdict, NodeVerdict, ReportVerdict};
use jobyard_model::{ArtifactHash, AttemptEnd, ExitFacts, LeaseId};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::world::PATIENCE;

/// What the control plane has heard, and how it answers.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) down: bool,
    /// Reports that are taken and whose answers are lost.
    pub(crate) answers_lost: u32,
    pub(crate) reports: Vec<(LeaseId, Said)>,
    pub(crate) ends: HashMap<LeaseId, AttemptEnd>,
    /// What of stdout and stderr was there when the end came.
    pub(crate) logs_at_end: HashMap<LeaseId, [Vec<u8>; 2]>,
    pub(crate) logs: HashMap<LeaseId, [Vec<u8>; 2]>,
    /// Leases that are not live.
    pub(crate) stale: HashSet<LeaseId>,
    pub(crate) intents: HashMap<LeaseId, u32>,
    pub(crate) artifacts: HashMap<ArtifactHash, Bytes>,
    /// Fetches stay open and give nothing.
    pub(crate) fetches_hang: bool,
    pub(crate) fetches: u32,
    /// Manifests that came up.
    pub(crate) trees: Vec<ArtifactHash>,
    /// How many artifacts came up, manifests included.
    pub(crate) stored: u32,
    /// Uploads stay open and come to no end.
    pub(crate) stores_hang: bool,
    /// Why uploads are refused; empty when they are not.
    pub(crate) stores_refused: String,
    /// What jobs with secrets get, whichever they are.
    pub(crate) secrets: Vec<(&'static str, &'static str)>,
    pub(crate) secrets_hang: bool,
    /// Why secrets are refused; empty when they are not.
    pub(crate) secrets_refused: String,
    pub(crate) secret_fetches: u32,
    pub(crate) logs_later: u32,
    pub(crate) registered: Vec<proto::RegisterRequest>,
    pub(crate) unknown_pool: bool,
    pub(crate) superseded: bool,
    pub(crate) suspended: String,
    pub(crate) order: Vec<&'static str>,
    /// What the job's place in S3 has: a tag and bytes for each path.
    pub(crate) objects: BTreeMap<String, (String, Bytes)>,
    /// From which offsets objects were fetched.
    pub(crate) object_fetches: Vec<u64>,
    /// The next fetch of an object gives this many bytes and breaks off.
    pub(crate) object_cut: Option<usize>,
    /// What an object becomes during the next fetch, which breaks off.
    pub(crate) object_change: Option<(String, Bytes)>,
    /// What came up for S3.
    pub(crate) outputs: BTreeMap<String, Bytes>,
}

/// The report door's other side.
pub(crate) struct Desk {
    heard: Mutex<Heard>,
    changed: watch::Sender<()>,
}

impl Desk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), changed: watch::channel(()).0 })
    }

    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.heard());
    }

    /// Until what was heard gives an answer.
    pub(crate) async fn until<T>(&self, what: &str, find: impl Fn(&Heard) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = find(&self.heard()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("in vain: {what}"))
    }

    pub(crate) async fn end_of(&self, lease_id: LeaseId) -> AttemptEnd {
        self.until("the end", |heard| heard.ends.get(&lease_id).cloned()).await
    }

    pub(crate) async fn facts_of(&self, lease_id: LeaseId) -> ExitFacts {
        match self.end_of(lease_id).await {
            AttemptEnd::Exited(facts) => facts,
            other => panic!("no exit: {other:?}"),
        }
    }

    pub(crate) async fn started(&self, lease_id: LeaseId) {
        self.until("the start", |heard| heard.reports.contains(&(lease_id, Said::Started)).then_some(()))
            .await;
    }

    pub(crate) fn count(&self, lease_id: LeaseId, said: &Said) -> usize {
        self.heard().reports.iter().filter(|(found, what)| *found == lease_id && what == said).count()
    }

    fn answer<T>(&self, answer: impl FnOnce(&mut Heard) -> T) -> Result<T, DoorError> {
        let result = {
            let mut heard = self.heard();
            if heard.down {
                return Err(DoorError::NotSent { address: "desk".to_owned(), why: "it is away".to_owned() });
            }
            answer(&mut heard)
        };
        self.changed.send_replace(());
        Ok(result)
    }

    /// All that comes up under a name, unless uploads hang or are refused.
    async fn take(
        &self,
        sha256: &[u8],
        data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(ArtifactHash, Bytes), DoorError> {
        let (hangs, refused) = self.answer(|heard| (heard.stores_hang, heard.stores_refused.clone()))?;
        if hangs {
            return std::future::pending().await;
        }
        if !refused.is_empty() {
            return Err(DoorError::Refused { address: "desk".to_owned(), why: refused });
        }
        let bytes: Bytes = data.map(Result::unwrap).collect::<Vec<_>>().await.concat().into();
        let hash = convert::artifact_hash(sha256).unwrap();
        assert_eq!(hash, ArtifactHash(Sha256::digest(&bytes).into()));
        Ok((hash, bytes))
    }
}

impl Heard {
    fn take_log(&mut self, chunk: &proto::LogChunk) -> proto::LogAnswer {
        let answer = |verdict: LogVerdict, end| proto::LogAnswer { verdict: verdict.into(), end };
        if self.logs_later > 0 {
            self.logs_later -= 1;
            return answer(LogVerdict::Later, 0);
        }
        let lease_id = convert::lease_id(&chunk.lease_id).unwrap();
        let stream = &mut self.logs.entry(lease_id).or_default()[chunk.stream as usize - 1];
        let end = stream.len() as u64;
        if chunk.from != end {
            return answer(LogVerdict::Gap, end);
        }
        assert!(chunk.data.len() <= 256 << 10);
        stream.extend_from_slice(&chunk.data);
        answer(LogVerdict::End, stream.len() as u64)
    }

    fn take_report(&mut self, report: &proto::Report) -> proto::ReportAnswer {
        let report = AttemptReport::try_from(report).unwrap();
        let lease_id = report.lease_id;
        let is_step = matches!(report.what, Said::Accepted | Said::Started);
        let was_said = is_step && self.reports.contains(&(lease_id, report.what.clone()));
        self.reports.push((lease_id, report.what.clone()));
        let verdict = if self.stale.contains(&lease_id) {
            ReportVerdict::Stale
        } else {
            match (self.ends.get(&lease_id), report.what) {
                (Some(known), Said::Ended(end)) if known.fingerprint() == end.fingerprint() => {
                    ReportVerdict::Already
                }
                (Some(_), _) => ReportVerdict::Stale,
                (None, Said::Ended(end)) => {
                    self.order.push("end");
                    self.ends.insert(lease_id, end);
                    let log = self.logs.get(&lease_id).cloned().unwrap_or_default();
                    self.logs_at_end.insert(lease_id, log);
                    ReportVerdict::Accepted
                }
                (None, _) if was_said => ReportVerdict::Already,
                (None, _) => ReportVerdict::Accepted,
            }
        };
        let intent = self.intents.get(&lease_id).copied().unwrap_or_default();
        proto::ReportAnswer { verdict: verdict.into(), intent }
    }
}

#[async_trait]
impl ReportDoor for Desk {
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError> {
        self.answer(|heard| {
            heard.order.push("register");
            heard.registered.push(request);
            if heard.unknown_pool {
                let message = "there is no pool `moon`; the pools are: default".to_owned();
                return proto::RegisterReply { verdict: NodeVerdict::Refused.into(), message };
            }
            proto::RegisterReply { verdict: NodeVerdict::Welcome.into(), message: String::new() }
        })
    }

    async fn heartbeat(&self, request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError> {
        self.answer(|heard| {
            if request.proven {
                heard.suspended.clear();
            }
            let verdict = if heard.superseded { NodeVerdict::Superseded } else { NodeVerdict::Welcome };
            proto::HeartbeatReply { verdict: verdict.into(), suspended: heard.suspended.clone() }
        })
    }

    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError> {
        let (reply, is_lost) = self.answer(|heard| {
            let reply = proto::ReportReply {
                logs: request.logs.iter().map(|chunk| heard.take_log(chunk)).collect(),
                reports: request.reports.iter().map(|report| heard.take_report(report)).collect(),
            };
            let is_lost = heard.answers_lost > 0;
            heard.answers_lost = heard.answers_lost.saturating_sub(1);
            (reply, is_lost)
        })?;
        if is_lost {
            return Err(DoorError::Unknown { address: "desk".to_owned(), why: "cut".to_owned() });
        }
        Ok(reply)
    }

    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let hash = convert::artifact_hash(&request.sha256).unwrap();
        let found = self.answer(|heard| {
            heard.fetches += 1;
            (heard.fetches_hang, heard.artifacts.get(&hash).cloned())
        })?;
        match found {
            (true, _) => Ok(futures_util::stream::pending().boxed()),
            (false, Some(bytes)) => {
                let pieces: Vec<_> =
                    bytes.chunks(1 << 10).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
                Ok(futures_util::stream::iter(pieces).boxed())
            }
            (false, None) => {
                let why = "the artifact is not in the artifact store".to_owned();
                Err(DoorError::Refused { address: "desk".to_owned(), why })
            }
        }
    }

    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        self.answer(|heard| {
            let is_missing =
                |hash: &Bytes| !heard.artifacts.contains_key(&convert::artifact_hash(hash).unwrap());
            proto::MissingArtifactsReply { missing: request.sha256.into_iter().filter(is_missing).collect() }
        })
    }

    async fn fetch_secrets(
        &self,
        request: proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError> {
        let lease_id = convert::lease_id(&request.lease_id).unwrap();
        let (hangs, refused, secrets) = self.answer(|heard| {
            assert!(heard.reports.contains(&(lease_id, Said::Accepted)), "before it was accepted");
            heard.secret_fetches += 1;
            (heard.secrets_hang, heard.secrets_refused.clone(), heard.secrets.clone())
        })?;
        if hangs {
            return std::future::pending().await;
        }
        if !refused.is_empty() {
            return Err(DoorError::Refused { address: "desk".to_owned(), why: refused });
        }
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(proto::FetchSecretsReply { secrets: secrets.into_iter().map(own).collect() })
    }

    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let (hash, bytes) = self.take(&request.sha256, data).await?;
        self.answer(|heard| {
            heard.stored += 1;
            heard.order.push("stored");
            heard.artifacts.insert(hash, bytes);
            if request.tree {
                heard.trees.push(hash);
            }
        })
    }

    /// Two at a time.
    async fn find_objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError> {
        let found = self.answer(|heard| {
            let after = heard.objects.iter().filter(|(path, _)| **path > request.after);
            let object = |(path, (etag, bytes)): (&String, &(String, Bytes))| proto::FoundObject {
                path: path.clone(),
                size: bytes.len() as u64,
                etag: etag.clone(),
            };
            after.map(object).collect::<Vec<_>>()
        })?;
        let next = found.get(1).filter(|_| found.len() > 2).map_or(String::new(), |last| last.path.clone());
        Ok(proto::FindObjectsReply { objects: found.into_iter().take(2).collect(), next })
    }

    async fn fetch_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let broken = |why: &str| DoorError::Unknown { address: "desk".to_owned(), why: why.to_owned() };
        let (found, cut) = self.answer(|heard| {
            heard.object_fetches.push(request.offset);
            let found = heard.objects.get(&request.path).cloned();
            let cut = heard.object_cut.take();
            if let Some(change) = heard.object_change.take() {
                heard.objects.insert(request.path.clone(), change);
                return (found, Some(cut.unwrap_or(1)));
            }
            (found, cut)
        })?;
        let Some((_, bytes)) = found.filter(|(etag, _)| *etag == request.etag) else {
            return Err(broken("it was changed meanwhile"));
        };
        let rest = bytes.slice(usize::try_from(request.offset).unwrap()..);
        let pieces = match cut {
            Some(length) => vec![Ok(rest.slice(..length)), Err(broken("cut"))],
            None => vec![Ok(rest)],
        };
        Ok(futures_util::stream::iter(pieces).boxed())
    }

    async fn store_output(
        &self,
        request: proto::StoreOutputRequest,
        data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let (_, bytes) = self.take(&request.sha256, data).await?;
        self.answer(|heard| {
            heard.order.push(if request.manifest { "manifest" } else { "output" });
            heard.outputs.insert(request.path, bytes);
        })
    }
}
