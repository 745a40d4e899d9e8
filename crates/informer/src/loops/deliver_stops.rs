//! Tells workers which attempts are wanted to stop, again and again until their outcome is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use jobyard_api::proto;
use jobyard_model::{NodeId, SessionId};
use jobyard_store::{StopOrder, Store, StoreError};
use tokio_util::task::TaskTracker;

use crate::WorkerDoors;
use crate::delivery::{Deliveries, Delivery};
use crate::pace::{Ran, RunOnce};

/// What ten nodes can have at most: the attempts of a node that does not answer must not hide those of the others.
const BATCH: u32 = 10_000;

pub(crate) struct DeliverStopsLoop {
    store: Arc<dyn Store>,
    doors: Arc<dyn WorkerDoors>,
    deliveries: Deliveries,
}

impl DeliverStopsLoop {
    pub(crate) fn new(store: Arc<dyn Store>, doors: Arc<dyn WorkerDoors>, calls: TaskTracker) -> Self {
        Self { store, doors, deliveries: Deliveries::new(calls) }
    }
}

impl RunOnce for DeliverStopsLoop {
    async fn run_once(&mut self) -> Result<Ran, StoreError> {
        let orders = self.store.pending_stops(BATCH).await?;
        let changed = orders.len() as u64;
        let mut by_node: BTreeMap<(NodeId, SessionId, String), Vec<StopOrder>> = BTreeMap::new();
        for order in orders {
            by_node.entry((order.node_id, order.session, order.door.clone())).or_default().push(order);
        }
        for ((node_id, session, address), orders) in by_node {
            let door = self.doors.door(node_id, &address);
            self.deliveries.deliver(node_id, Delivery { door, request: stop_request(session, &orders) });
        }
        Ok(Ran { changed, more: false, gather: false })
    }
}

fn stop_request(session: SessionId, orders: &[StopOrder]) -> proto::StopRequest {
    let stops = orders
        .iter()
        .map(|order| proto::Stop {
            job_id: order.job_id.0.as_bytes().to_vec().into(),
            attempt: order.attempt,
            lease_id: order.lease_id.0.as_bytes().to_vec().into(),
            grace_ms: order.grace_ms,
        })
        .collect();
    proto::StopRequest { session: session.0.as_bytes().to_vec().into(), stops }
}
