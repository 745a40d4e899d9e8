//! The doors over unix sockets: gRPC clients and servers of [`crate::doors`], and the conversions between their
//! messages and the model.
//!
//! Owns the transport: who may connect, deadlines, keepalive, limits, and what an error says about the request's
//! fate. Decides nothing. Invariant: **[`DoorError::NotSent`] is only answered when no byte of the request was
//! written**; whatever happens later is [`DoorError::Unknown`], since no status code proves anything.
//!
//! [`DoorError::NotSent`]: crate::doors::DoorError::NotSent
//! [`DoorError::Unknown`]: crate::doors::DoorError::Unknown

mod client;
mod connection;
pub mod convert;
mod server;
mod socket;

use std::fmt;
use std::time::Duration;

use crate::proto;

pub use client::{ReportDoorClient, WorkerDoorClient};
pub use server::{serve_report_door, serve_worker_door};
pub use socket::{BindError, bind_door};

/// The largest message either side sends or takes. Whoever makes batches keeps them well below: a `Launch` with all
/// of its environment is at most 2 MiB, a worker's log chunks in one report at most 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// How long a connect may take. The other side is on this machine: it accepts at once or is not there.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long a call may take before its fate counts as unknown.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// How long the next chunk of an artifact may take.
const CHUNK_DEADLINE: Duration = Duration::from_secs(30);

/// An HTTP/2 ping after this long, to notice a peer that is frozen.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The connection is over when a ping is not answered for this long.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Names only.
impl fmt::Debug for proto::FetchSecretsReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.secrets.keys()).finish()
    }
}
