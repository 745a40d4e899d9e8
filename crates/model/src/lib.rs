//! The nouns of Jobyard and their rules.
//!
//! Owns every status and every transition. Does no I/O, reads no clock, draws no random number and knows no
//! async: the time, the chance and the ids are arguments, so the same input always gives the same answer.
//!
//! Start with [`lifecycle`]: a [`lifecycle::Job`] consumes a [`lifecycle::JobEvent`] and returns the next job, or
//! a refusal that names both. [`retry::next_step`] is the one function that says what follows an ended attempt.

pub mod attempt;
pub mod bulk;
pub mod filter;
pub mod ids;
pub mod intent;
pub mod job;
pub mod lane;
pub mod lifecycle;
pub mod node;
pub mod placement;
pub mod principal;
pub mod resources;
pub mod retry;
pub mod s3;
pub mod service;
pub mod settings;
pub mod status;
pub mod time;

pub use attempt::{AttemptEnd, EndedBy, Exit, ExitFacts, LiveAttempt, Outcome, Outputs, Phase, Usage};
pub use bulk::BulkAction;
pub use filter::{Any, JobFilter, LabelCondition, ReasonWord, TextMatch};
pub use ids::{ArtifactHash, JobId, LeaseId, NodeId, SessionId};
pub use intent::Intent;
pub use job::{BinaryUrl, InputPath, InvalidInputPath, IoClass, JobKind, JobSpec, Origin, Runtime};
pub use lane::{Lane, Priority};
pub use lifecycle::{Job, JobEvent, JobState};
pub use placement::{NodeState, QueueHead, Shape, ShapeId};
pub use principal::{Principal, Role};
pub use resources::Resources;
pub use s3::{InvalidS3Url, S3Url};
pub use service::{LastExit, ServiceRun};
pub use settings::LeaseSettings;
pub use status::Status;
pub use time::{Clock, Moment, Timestamp};
