//! Executables, by the right of a lease.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::DoorError;
use jobyard_api::grpc::convert;
use jobyard_api::proto;

use super::desk::{ReportDesk, malformed, unanswered};

impl ReportDesk {
    /// Opens the executable of the live attempt with this lease; no other lease and no other artifact.
    pub(super) async fn open_artifact(
        &self,
        request: &proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let lease_id = convert::lease_id(&request.lease_id).map_err(|error| malformed(&error))?;
        let hash = convert::artifact_hash(&request.sha256).map_err(|error| malformed(&error))?;
        let own = self.store.artifact_of_lease(lease_id).await.map_err(|error| unanswered(&error))?;
        if own != Some(hash) {
            return Err(refused("the lease is not live, or its attempt does not run this artifact"));
        }
        let missing = || refused("the artifact is not in the artifact store");
        let size = self.artifacts.size(hash).await.map_err(|error| broken(&error))?.ok_or_else(missing)?;
        let bytes =
            self.artifacts.read(hash, 0..size).await.map_err(|error| broken(&error))?.ok_or_else(missing)?;
        Ok(bytes.map(|piece| piece.map_err(|error| broken(&error))).boxed())
    }
}

fn refused(why: &str) -> DoorError {
    DoorError::Refused { address: "report door".to_owned(), why: why.to_owned() }
}

fn broken(error: &impl std::error::Error) -> DoorError {
    DoorError::Unknown { address: "report door".to_owned(), why: error.to_string() }
}
