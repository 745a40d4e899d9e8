//! What crosses the HTTP API as JSON, a file a noun.
//!
//! Owns the names and the spelling of every field, and their OpenAPI. Never decides: what comes in is checked by
//! [`crate::submit`] and [`crate::strict`]; these types only carry it.
//!
//! Invariant: times are RFC 3339 in UTC with `Z`, durations a number of seconds, memory a number of bytes, in every
//! answer. The client reads the same types, so each also has `Deserialize`, and reading ignores fields it does not
//! know: a newer server may say more.

mod artifact;
mod attempt;
mod audit;
mod bulk;
mod event;
mod job;
mod job_check;
mod job_submit;
mod log;
mod node;
mod node_attempt;
mod page;
mod pool;
mod problem;
mod session;
mod summary;
mod token;
pub mod units;
mod view;
mod why;
pub mod words;

pub use artifact::{
    Artifact, ArtifactBatch, ArtifactNames, ArtifactsStored, BatchedArtifact, MissingArtifacts, Tree,
};
pub use attempt::{Attempt, Usage};
pub use audit::Audit;
pub use bulk::{Bulk, BulkPreview, BulkRequest};
pub use event::{Event, StreamStart};
pub use job::{FilterValues, Job, JobCount, JobResources, JobResult, JobRow, ServiceExit};
pub use job_check::JobCheck;
pub use job_submit::{
    BatchAccepted, BatchItem, BatchSubmit, JobOrigin, JobSubmit, ResourcesSubmit, RetryRequest, SecretEnv,
};
pub use log::{LogMatch, LogPiece, LogPlace, LogSearch, LogSizes};
pub use node::{Node, NodeResources};
pub use node_attempt::{DrainMove, DrainPreview, NodeAttempt};
pub use page::Page;
pub use pool::Pool;
pub use problem::{PROBLEM_CONTENT_TYPE, Problem, ProblemError};
pub use session::{Login, Session, SessionCreate};
pub use summary::{
    Failing, FailingGroup, Health, MinuteSpan, Minutes, PoolSummary, StatusCount, Summary, WaitTimes,
    WaitingJob,
};
pub use token::{Me, Token, TokenCreate, TokenCreated};
pub use units::{Bytes, Cores, Seconds, Time};
pub use view::{View, ViewWrite};
pub use why::{Why, WhyGate, WhyNode};
