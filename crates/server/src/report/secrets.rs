//! A job's secrets on their way to its task, by the right of the lease of an attempt that is about to start.

use jobyard_api::doors::DoorError;
use jobyard_api::grpc::convert;
use jobyard_api::proto;

use super::artifacts::refused;
use super::desk::{ReportDesk, malformed, unanswered};

impl ReportDesk {
    /// Opens them. Whatever is in the way is told, and no part of them.
    pub(super) async fn secrets(
        &self,
        request: &proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError> {
        let lease_id = convert::lease_id(&request.lease_id).map_err(|error| malformed(&error))?;
        let found = self.store.secrets_of_lease(lease_id).await.map_err(|error| unanswered(&error))?;
        let Some((job_id, sealed)) = found else {
            return Err(refused(
                "there is no attempt with this lease that is about to start and has secrets",
            ));
        };
        let Some(keys) = &self.secret_keys else {
            return Err(refused("this server has no key to open them with: set `server.secret_key_file`"));
        };
        match keys.open(job_id, &sealed) {
            Ok(secrets) => Ok(proto::FetchSecretsReply { secrets: secrets.into_iter().collect() }),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, %job_id, "an attempt can't start");
                Err(refused(&error.to_string()))
            }
        }
    }
}
