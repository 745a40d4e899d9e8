//! The library that people build on: Jobyard's HTTP API, typed.
//!
//! Start with [`Client`]; it has a handle for each noun. Calls that do no harm twice are repeated while the server is
//! busy or away ([`RetryPolicy`]); submissions carry a key, so that they are among these. Waiting, watching and
//! following outlast restarts of the server and go on where they were.
//!
//! Owns no state of the server's and decides nothing about a job. Never sends a token anywhere but to the server it
//! was configured for.
//!
//! ```no_run
//! # async fn example() -> Result<(), jobyard_client::Error> {
//! use futures_util::TryStreamExt;
//! use jobyard_client::json::JobSubmit;
//! use jobyard_client::{Client, FollowOptions};
//!
//! let client = Client::from_env()?;
//! let job = JobSubmit { command: vec!["echo".into(), "hello".into()], ..JobSubmit::default() };
//! let id = client.jobs().submit(job).await?.id;
//! let mut log = client.jobs().follow(id, FollowOptions::default());
//! while let Some(piece) = log.try_next().await? {
//!     print!("{}", String::from_utf8_lossy(&piece.bytes));
//! }
//! println!("{}", client.jobs().wait(id).await?.status);
//! # Ok(())
//! # }
//! ```

mod artifacts;
mod audit;
mod builder;
mod client;
mod connection;
mod error;
mod events;
mod jobs;
mod nodes;
mod outage;
mod overview;
mod pools;
mod pull;
mod pulled_folders;
mod retry;
mod small_files;
mod sse;
mod tokens;
mod transport;
mod trees;

/// What crosses the HTTP API; the same types on both sides.
pub use jobyard_api::json;
pub use jobyard_model::ids::TokenId;
pub use jobyard_tree::{FolderError, ManifestError};

pub use jobyard_model::{ArtifactHash, EndedBy, JobId, JobKind, NodeId, Outcome, Role, Status, Timestamp};

pub use artifacts::{Artifacts, Pushed};
pub use audit::Audit;
pub use builder::ClientBuilder;
pub use client::Client;
pub use connection::{Connection, ConnectionError, DEFAULT_URL, TOKEN_VARIABLE, Token, URL_VARIABLE};
pub use error::Error;
pub use events::{Change, EventFilter, Events};
pub use jobs::{FollowOptions, JobFilter, Jobs, LogBytes, LogQuery, LogStream};
pub use nodes::Nodes;
pub use pools::Pools;
pub use pulled_folders::PulledFolder;
pub use retry::RetryPolicy;
pub use tokens::Tokens;
pub use trees::{FolderStep, FolderWatch, PushedFolder};
