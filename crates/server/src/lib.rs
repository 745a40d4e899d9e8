//! The server: the HTTP API, the way to the artifact store, and the report door.
//!
//! Owns who may call what, how calls are bounded and answered, and the event stream. Stateless: what it knows is in the
//! datastore and the artifact store, so several servers can run side by side and any can be killed. Decides nothing
//! about a job's life: it hands requests to the [`jobyard_store::Store`] and shows what that says.
//!
//! Start with [`Server::new`], serve [`Server::router`] with [`serve_http`]. `http/` has a folder a noun of thin
//! handlers; `operations/` what they do, one a file.
//!
//! Invariants: **no call is answered before its caller is known** (health and signing in aside); **every door is bounded**; an
//! acknowledged change is durable.

pub mod artifact_store;
mod authentication;
mod body;
mod code;
mod cookie;
mod doors;
mod error;
mod events;
mod front;
mod health;
mod http;
mod ids;
mod logs;
pub mod metrics;
mod off_thread;
mod operations;
mod origin;
pub mod report;
pub mod s3;
mod secrets;
mod serve;
mod server;
pub mod settings;
mod stalled;
mod sweep;
mod trees;

pub use artifact_store::{ArtifactStore, BucketStore, DirectoryStore, LogDay};
pub use authentication::token_hash;
pub use front::Front;
pub use http::openapi;
pub use logs::{LogRetention, drop_old_logs};
pub use metrics::{LoopMetrics, Metrics, MetricsPage};
pub use operations::create_login::create_login;
pub use operations::create_token::create_token;
pub use secrets::{OpenError, SealError, SecretKeyError, SecretKeys};
pub use serve::serve_http;
pub use server::{Server, ServerParts};
pub use settings::{BasePath, ConnectionSettings, InvalidBasePath, ServerSettings};
pub use sweep::sweep_artifacts;
