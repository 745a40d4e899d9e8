//! One change in a job's life, as history and as server-sent event.

use jobyard_model::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// One change of a job's status, of its attempt's phase, or of what is wanted. The data of a server-sent event of the
/// type `change`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the history: transaction and number. Also the server-sent event's `id`.
    #[schema(example = "812-4031")]
    pub cursor: String,
    /// When.
    pub time: Time,
    /// Which job.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: JobId,
    /// The attempt it belongs to.
    pub attempt: Option<u32>,
    /// A principal or one of our roles.
    pub who: String,
    /// A status or phase, or what was wanted; empty for the creation.
    pub from: String,
    /// A status or phase, or what is wanted.
    pub to: String,
    /// In plain words, or an outcome.
    pub why: String,
}

/// The data of the first server-sent event, of the type `start`: where the stream begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamStart {
    /// Events after this one follow.
    pub cursor: String,
}
