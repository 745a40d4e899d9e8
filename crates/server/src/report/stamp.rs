//! Says to the datastore, every five seconds, that a server can hear workers (promise 4).

use std::sync::Arc;
use std::time::Duration;

use jobyard_store::Store;
use tokio_util::sync::CancellationToken;

const STAMP_EACH: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Stamps `report_clock` until `shutdown`. To be called with the report door open, and not before: a fresh stamp
/// makes silence count.
pub async fn stamp_report_clock(store: Arc<dyn Store>, shutdown: CancellationToken) {
    loop {
        let pause = match store.stamp_report_clock().await {
            Ok(()) => STAMP_EACH,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "report clock not stamped");
                RETRY_AFTER
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
