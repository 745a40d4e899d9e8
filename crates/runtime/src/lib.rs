//! How a task process is isolated. `prepare` (in the worker) makes what the attempt needs on this machine and
//! returns the plan; the sidecar executes the plan; `retire` (in the worker) clears up, and `cleanup` takes it all away.
//!
//! Owns: control groups, private directories, which containment this machine can do, and clearing the processes
//! of an attempt whose sidecar is gone. Never: a job, its policy, a lease, the wire.
//! Invariant: whatever `prepare` made is named in the plan it returns, so that `clear_tree` and `cleanup` need
//! nothing else, from whichever process, as often as one likes.
//!
//! # Use
//! ```no_run
//! # use jobyard_runtime::*;
//! # fn example(request: &PrepareRequest<'_>) -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = NodeRuntime::set_up("n1")?;             // once, at the worker's start
//! let sidecars = SidecarPool::new("/usr/lib/jobyard/jobyard-sidecar");
//! let prepared = runtime.prepare(request)?;             // for each attempt
//! let directory = jobyard_handoff::AttemptDirectory::create("/run/jobyard/a/17", &prepared.plan, &prepared.environment)?;
//! let sidecar = sidecars.begin(&directory)?;
//! // … frames over sidecar.connection until Ended, AckOutcome, Idle …
//! let let_go = sidecars.give_back(sidecar);
//! runtime.retire(&prepared.plan)?;
//! directory.remove()?;
//! # Ok(()) }
//! ```

mod clear;
mod directories;
mod groups;
mod kept;
mod node;
mod prepare;
#[expect(unsafe_code, reason = "a clone into new namespaces, which std does not have")]
mod probe;
mod program;
mod sidecar;

pub use clear::{Cleared, clear_tree};
pub use directories::{cleanup, remove_tree};
pub use jobyard_handoff::Containment;
pub use node::{Examined, NodeRuntime, SetUpError};
pub use prepare::{PrepareError, PrepareRequest, Prepared, Program, Resources};
pub use probe::{Abilities, Namespaces};
pub use sidecar::{Sidecar, SidecarPool};
