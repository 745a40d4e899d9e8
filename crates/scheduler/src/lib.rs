//! Placement: a snapshot in, a plan out.
//!
//! Owns the order of the queue, what is feasible where, the choice between feasible nodes, and the answer to "why
//! not here". Does no I/O, reads no clock and draws no number: the same snapshot and memory give the same plan, with
//! the last tie broken by id. Claims nothing: whoever carries out the plan claims each job guarded by its status, so
//! a plan made on an old snapshot does no harm.

mod feasible;
mod memory;
mod plan;
mod why;

pub use feasible::{Obstacle, obstacle};
pub use memory::PlanMemory;
pub use plan::{Chosen, Plan, Snapshot, plan};
pub use why::{NodeWhy, WhyWaiting, why_waiting};

#[cfg(test)]
mod tests;
