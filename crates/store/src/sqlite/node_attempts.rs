//! What of the table `attempt_live` is on a node.

use jobyard_model::{JobId, NodeId};
use rusqlite::params;

use super::fault::Fault;
use super::scope::Scope;

/// The jobs with an un-ended attempt there, oldest first.
pub(super) fn jobs(scope: &Scope<'_>, node_id: NodeId, limit: u32) -> Result<Vec<JobId>, Fault> {
    let sql = "SELECT job_id FROM attempt_live WHERE node_id = ?1 ORDER BY job_id LIMIT ?2";
    let mut statement = scope.statement(sql)?;
    let rows = statement.query_map(params![node_id.0, limit], |row| row.get(0).map(JobId))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
