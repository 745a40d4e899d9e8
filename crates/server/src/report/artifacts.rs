//! Executables and inputs on their way down, outputs on their way up, by the right of a lease.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::DoorError;
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::{AttemptEnd, ExitFacts, JobId, Outputs};
use jobyard_store::{Actor, StoreError};
use jobyard_tree::MAX_MANIFEST_BYTES;

use super::desk::{ReportDesk, malformed, unanswered};
use crate::artifact_store::PutError;
use crate::trees::{KeepTreeError, keep_tree};

/// Artifacts in one question for what is missing.
const MOST_ASKED: usize = 1_000;

impl ReportDesk {
    /// Opens an artifact that the live attempt with this lease needs; no other lease and no other artifact.
    pub(super) async fn open_artifact(
        &self,
        request: &proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let lease_id = convert::lease_id(&request.lease_id).map_err(|error| malformed(&error))?;
        let hash = convert::artifact_hash(&request.sha256).map_err(|error| malformed(&error))?;
        let may = self.store.lease_may_fetch(lease_id, hash).await.map_err(|error| unanswered(&error))?;
        if !may {
            return Err(refused("the lease is not live, or its attempt does not need this artifact"));
        }
        let missing = || refused("the artifact is not in the artifact store");
        let size = self.artifacts.size(hash).await.map_err(|error| broken(&error))?.ok_or_else(missing)?;
        let bytes =
            self.artifacts.read(hash, 0..size).await.map_err(|error| broken(&error))?.ok_or_else(missing)?;
        Ok(bytes.map(|piece| piece.map_err(|error| broken(&error))).boxed())
    }
}

impl ReportDesk {
    /// Which of these an attempt that is live has to send.
    pub(super) async fn missing(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        self.live(&request.lease_id).await?;
        if request.sha256.len() > MOST_ASKED {
            return Err(refused("too many artifacts in one question"));
        }
        let hashes = request.sha256.iter().map(|hash| convert::artifact_hash(hash));
        let hashes: Vec<_> = hashes.collect::<Result<_, _>>().map_err(|error| malformed(&error))?;
        let sizes = self.store.artifact_sizes(hashes).await.map_err(|error| unanswered(&error))?;
        let missing = request.sha256.into_iter().zip(sizes).filter(|(_, size)| size.is_none());
        Ok(proto::MissingArtifactsReply { missing: missing.map(|(hash, _)| hash).collect() })
    }

    /// Keeps a file, or the manifest, of a live attempt's outputs.
    pub(super) async fn keep(
        &self,
        request: &proto::StoreArtifactRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        self.live(&request.lease_id).await?;
        let hash = convert::artifact_hash(&request.sha256).map_err(|error| malformed(&error))?;
        let by = Actor::role("worker");
        if request.tree {
            let manifest = gathered(data).await?;
            let kept = keep_tree((&*self.store, &*self.artifacts), hash, manifest, &by).await;
            return kept.map(|_| ()).map_err(of_tree);
        }
        let size_bytes =
            self.artifacts.put(hash, data, self.artifact_bytes).await.map_err(|error| of_put(&error))?;
        self.store.add_artifact(hash, size_bytes, &by).await.map_err(|error| unanswered(&error))
    }

    async fn live(&self, lease_id: &[u8]) -> Result<(), DoorError> {
        let lease_id = convert::lease_id(lease_id).map_err(|error| malformed(&error))?;
        match self.store.lease_is_live(lease_id).await.map_err(|error| unanswered(&error))? {
            true => Ok(()),
            false => Err(refused("the lease is not live: a later attempt may have taken its place")),
        }
    }

    /// An outcome whose outputs are gone before it came can't be published with them.
    pub(super) async fn with_known_outputs(
        &self,
        job_id: JobId,
        end: AttemptEnd,
    ) -> Result<AttemptEnd, StoreError> {
        match end {
            AttemptEnd::Exited(facts) => match facts.outputs {
                Outputs::Kept(hash)
                    if self.store.tree(hash).await?.is_none() && !self.puts_them_in_s3(job_id).await? =>
                {
                    let message = format!("its outputs {hash} are not in the artifact store");
                    Ok(AttemptEnd::Exited(ExitFacts { message, outputs: Outputs::Late, ..facts }))
                }
                _ => Ok(AttemptEnd::Exited(facts)),
            },
            end => Ok(end),
        }
    }
}

impl ReportDesk {
    /// Whether a job's outputs go elsewhere, where nobody but their owner removes them.
    async fn puts_them_in_s3(&self, job_id: JobId) -> Result<bool, StoreError> {
        let job = self.store.job(job_id).await?;
        Ok(job.is_some_and(|job| job.spec.output_path.is_some()))
    }
}

async fn gathered(mut data: BoxStream<'static, io::Result<Bytes>>) -> Result<Bytes, DoorError> {
    let mut whole = BytesMut::new();
    while let Some(piece) = data.next().await {
        let piece = piece.map_err(|error| broken(&error))?;
        if whole.len() + piece.len() > MAX_MANIFEST_BYTES {
            return Err(refused("the manifest is too large"));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

fn of_tree(error: KeepTreeError) -> DoorError {
    match error {
        KeepTreeError::Lacking(_) => broken(&error),
        KeepTreeError::Put(error) => of_put(&error),
        KeepTreeError::Store(error) => unanswered(&error),
        KeepTreeError::Mismatch { .. } | KeepTreeError::Manifest(_) | KeepTreeError::WrongSize { .. } => {
            refused(&error.to_string())
        }
    }
}

fn of_put(error: &PutError) -> DoorError {
    match error {
        PutError::Mismatch { .. } | PutError::TooLarge { .. } => refused(&error.to_string()),
        PutError::BrokeOff(_) | PutError::Store(_) => {
            tracing::warn!(error = error as &dyn std::error::Error, "an output could not be kept");
            broken(error)
        }
    }
}

pub(super) fn refused(why: &str) -> DoorError {
    DoorError::Refused { address: "report door".to_owned(), why: why.to_owned() }
}

pub(super) fn broken(error: &impl std::error::Error) -> DoorError {
    DoorError::Unknown { address: "report door".to_owned(), why: error.to_string() }
}
