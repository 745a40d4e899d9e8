//! Fetching the secrets of a job, by the right of a lease. They are kept nowhere but in the attempt's directory.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_api::grpc::convert;
use jobyard_api::proto;
use jobyard_model::LeaseId;
use thiserror::Error;
use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why an attempt can't have its secrets.
#[derive(Debug, Error)]
pub(crate) enum SecretsError {
    /// The lease doesn't give the right to them, or no key opens them.
    #[error("its secrets can't be fetched: {0}")]
    Refused(String),
    /// The report door did not give them in time.
    #[error("its secrets could not be fetched in time")]
    Door(#[source] DoorError),
    /// The node could not hand them on.
    #[error("its secrets could not be put into the attempt directory")]
    Disk(#[source] io::Error),
}

/// Asks a door that doesn't answer again until `patience` is over. In the order of their names.
pub(crate) async fn fetch(
    door: &dyn ReportDoor,
    lease_id: LeaseId,
    patience: Duration,
) -> Result<Vec<(OsString, OsString)>, SecretsError> {
    let give_up_at = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        let request = proto::FetchSecretsRequest { lease_id: convert::id_bytes(lease_id.0) };
        match door.fetch_secrets(request).await {
            Ok(reply) => {
                let secrets = reply.secrets.into_iter().map(|(name, value)| (name.into(), value.into()));
                let mut secrets: Vec<(OsString, OsString)> = secrets.collect();
                secrets.sort();
                return Ok(secrets);
            }
            Err(DoorError::Refused { why, .. }) => return Err(SecretsError::Refused(why)),
            Err(error) if Instant::now() + pause > give_up_at => return Err(SecretsError::Door(error)),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, %lease_id, "fetching secrets again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
