//! Says to the datastore, every five seconds (more often when leases are short), that a server can hear workers (promise 4).

use std::sync::Arc;
use std::time::Duration;

use jobyard_store::Store;
use tokio_util::sync::CancellationToken;

/// Stamps that fit into the longest gap that means nothing; with the usual 30 s one each 5 s.
const STAMPS_PER_GAP: u64 = 6;
const LONGEST_RETRY: Duration = Duration::from_millis(500);

/// Stamps `report_clock` until `shutdown`. To be called with the report door open, and not before: a fresh stamp
/// makes silence count.
pub async fn stamp_report_clock(store: Arc<dyn Store>, shutdown: CancellationToken) {
    let stamp_each = Duration::from_millis(store.lease_settings().report_gap_ms / STAMPS_PER_GAP);
    loop {
        let pause = match store.stamp_report_clock().await {
            Ok(()) => stamp_each,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "report clock not stamped");
                LONGEST_RETRY.min(stamp_each)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
