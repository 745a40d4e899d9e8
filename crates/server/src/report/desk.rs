//! The door itself.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert::{self, AttemptReport, ConvertError, Said};
use jobyard_api::proto::{self, NodeVerdict, ReportVerdict};
use jobyard_model::Intent;
use jobyard_model::node::NodeRegistration;
use jobyard_store::{
    Answer, HeartbeatAnswer, NodeHeartbeat, RegisterAnswer, Report, ReportItem, Store, StoreError, Verdict,
};

use crate::artifact_store::ArtifactStore;
use crate::logs::LogRetention;
use crate::s3::JobBuckets;
use crate::secrets::SecretKeys;
use crate::settings::ServerSettings;

/// Takes what workers report.
pub struct ReportDesk {
    pub(super) store: Arc<dyn Store>,
    pub(super) artifacts: Arc<dyn ArtifactStore>,
    pub(super) retention: LogRetention,
    /// The largest output.
    pub(super) artifact_bytes: u64,
    pub(super) secret_keys: Option<SecretKeys>,
    pub(super) buckets: Arc<JobBuckets>,
}

impl ReportDesk {
    /// A desk on a datastore and an artifact store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, artifacts: Arc<dyn ArtifactStore>, retention: LogRetention) -> Self {
        let artifact_bytes = ServerSettings::default().artifact_bytes;
        Self { store, artifacts, retention, artifact_bytes, secret_keys: None, buckets: JobBuckets::none() }
    }

    /// Opens jobs' secrets with these keys; without keys attempts of jobs that have some are refused theirs.
    #[must_use]
    pub fn with_secret_keys(self, secret_keys: Option<SecretKeys>) -> Self {
        Self { secret_keys, ..self }
    }

    /// With the places in S3 that jobs may name; without this there are none.
    #[must_use]
    pub fn with_buckets(self, buckets: Arc<JobBuckets>) -> Self {
        Self { buckets, ..self }
    }
}

#[async_trait]
impl ReportDoor for ReportDesk {
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError> {
        let node = NodeRegistration::try_from(&request).map_err(|error| malformed(&error))?;
        let answer = self.store.register_node(&node).await.map_err(|error| unanswered(&error))?;
        let (verdict, message) = match answer {
            RegisterAnswer::Welcome { ended } => {
                tracing::info!(node = %node.name, node_id = %node.node_id, ended, "node registered");
                (NodeVerdict::Welcome, String::new())
            }
            RegisterAnswer::Superseded => {
                (NodeVerdict::Superseded, "a newer session of this node exists".to_owned())
            }
            RegisterAnswer::UnknownPool { known } => {
                let known = known.join(", ");
                (NodeVerdict::Refused, format!("there is no pool `{}`; the pools are {known}", node.pool))
            }
        };
        Ok(proto::RegisterReply { verdict: verdict.into(), message })
    }

    async fn heartbeat(&self, request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError> {
        let heartbeat = NodeHeartbeat {
            node_id: convert::node_id(&request.node_id).map_err(|error| malformed(&error))?,
            session: convert::session_id(&request.session).map_err(|error| malformed(&error))?,
            nonce: request.nonce,
            proven: request.proven,
        };
        let answer = self.store.heartbeat_node(heartbeat).await.map_err(|error| unanswered(&error))?;
        let (verdict, suspended) = match answer {
            HeartbeatAnswer::Heard { suspended, .. } => (NodeVerdict::Welcome, suspended.unwrap_or_default()),
            HeartbeatAnswer::Superseded => (NodeVerdict::Superseded, String::new()),
            HeartbeatAnswer::Unknown => (NodeVerdict::Unknown, String::new()),
        };
        Ok(proto::HeartbeatReply { verdict: verdict.into(), suspended })
    }

    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError> {
        let logs = self.append_logs(request.logs).await.map_err(|error| unanswered(&error))?;
        let reports = self.carry_out(&request.reports).await.map_err(|error| unanswered(&error))?;
        Ok(proto::ReportReply { logs, reports })
    }

    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        self.open_artifact(&request).await
    }

    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        self.missing(request).await
    }

    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        self.keep(&request, data).await
    }

    async fn fetch_secrets(
        &self,
        request: proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError> {
        self.secrets(&request).await
    }

    async fn find_objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError> {
        self.objects(request).await
    }

    async fn fetch_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        self.open_object(request).await
    }

    async fn store_output(
        &self,
        request: proto::StoreOutputRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        self.keep_output(&request, data).await
    }
}

impl ReportDesk {
    /// One answer a report, in order.
    async fn carry_out(&self, reports: &[proto::Report]) -> Result<Vec<proto::ReportAnswer>, StoreError> {
        let unknown = Answer { verdict: Verdict::Unknown, intent: Intent::Run };
        let mut answers = vec![answer_message(unknown); reports.len()];
        let (mut places, mut items) = (Vec::new(), Vec::new());
        for (place, report) in reports.iter().enumerate() {
            match AttemptReport::try_from(report) {
                Ok(report) => {
                    places.push(place);
                    items.push(self.item(report).await?);
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a report makes no sense");
                }
            }
        }
        if items.is_empty() {
            return Ok(answers);
        }
        for (place, answer) in places.into_iter().zip(self.store.report(items).await?) {
            answers[place] = answer_message(answer);
        }
        Ok(answers)
    }

    async fn item(&self, report: AttemptReport) -> Result<ReportItem, StoreError> {
        let what = match report.what {
            Said::Accepted => Report::Accepted,
            Said::Started => Report::Started,
            Said::Finishing => Report::Finishing,
            Said::Renewed => Report::Renewed,
            Said::Service(run) => Report::Service(run),
            Said::Ended(end) => Report::Ended(self.with_known_outputs(report.job_id, end).await?),
        };
        let AttemptReport { job_id, attempt, lease_id, .. } = report;
        Ok(ReportItem { job_id, attempt, lease_id, report: what })
    }
}

fn answer_message(answer: Answer) -> proto::ReportAnswer {
    let verdict = match answer.verdict {
        Verdict::Accepted => ReportVerdict::Accepted,
        Verdict::Already => ReportVerdict::Already,
        Verdict::Stale => ReportVerdict::Stale,
        Verdict::Unknown => ReportVerdict::Unknown,
        Verdict::Later => ReportVerdict::Later,
    };
    proto::ReportAnswer { verdict: verdict.into(), intent: convert::intent_code(answer.intent) }
}

pub(super) fn malformed(error: &ConvertError) -> DoorError {
    DoorError::Refused { address: "report door".to_owned(), why: error.to_string() }
}

/// The datastore did not do it, or it isn't known whether: the worker says it again, and it is absorbed.
pub(super) fn unanswered(error: &StoreError) -> DoorError {
    tracing::warn!(error = error as &dyn std::error::Error, "a worker's call could not be carried out");
    DoorError::Unknown { address: "report door".to_owned(), why: error.to_string() }
}
