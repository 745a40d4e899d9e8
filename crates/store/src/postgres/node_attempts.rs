//! What of the table `attempt_live` is on a node.

use jobyard_model::{JobId, NodeId};
use uuid::Uuid;

use super::Core;
use super::load::Columns;
use super::query::Query;
use crate::StoreError;

const JOBS: &str = "SELECT job_id FROM attempt_live WHERE node_id = $1 ORDER BY job_id LIMIT $2";

/// The jobs with an un-ended attempt there, oldest first.
pub(super) async fn jobs(core: &Core, node_id: NodeId, limit: u32) -> Result<Vec<JobId>, StoreError> {
    const DOING: &str = "reading what is on a node";
    let query = || [Query::new(JOBS).bind(node_id.0).bind(i64::from(limit))];
    let [rows] = core.database.read(query).await.map_err(|fault| fault.during(DOING))?;
    let ids: Result<Vec<Uuid>, _> = rows.iter().map(|row| Columns::of(row).take()).collect();
    Ok(ids.map_err(|fault| fault.during(DOING))?.into_iter().map(JobId).collect())
}
