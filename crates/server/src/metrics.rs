//! What `/metrics` shows, in Prometheus' format.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The metrics of a process. Clones are the same metrics; the roles of a process share one.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// For how long nothing has been given up on by silence; 0 while verdicts are passed. Fed by the informer.
    pub reaping_paused_seconds: Gauge<f64, AtomicU64>,
    /// Attempts whose lease has run out and that are not given up, since verdicts are paused. Fed by the informer.
    pub leases_held_back: Gauge,
    pub(crate) calls: Family<Call, Counter>,
    pub(crate) call_seconds: Family<Route, Histogram>,
    pub(crate) jobs_submitted: Counter,
    pub(crate) streams_open: Gauge,
    pub(crate) calls_in_hand: Family<DoorName, Gauge>,
}

/// One kind of call and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// One kind of call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) route: String,
}

/// A door's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DoorName {
    pub(crate) door: String,
}

impl Default for Metrics {
    fn default() -> Self {
        // From 250 µs to about 4 s.
        let histogram = || Histogram::new(exponential_buckets(0.000_25, 2.0, 15));
        let metrics = (
            Gauge::default(),
            Gauge::default(),
            Family::default(),
            Family::new_with_constructor(histogram as fn() -> Histogram),
            Counter::default(),
            Gauge::default(),
            Family::default(),
        );
        let (paused, held_back, calls, call_seconds, submitted, streams, in_hand) = metrics;
        let mut registry = Registry::with_prefix("jobyard");
        let paused_help = "How long nothing has been given up on by silence";
        registry.register_with_unit("reaping_paused", paused_help, Unit::Seconds, Gauge::clone(&paused));
        let held_back_help = "Attempts whose lease ran out while verdicts are paused";
        registry.register("leases_held_back", held_back_help, Gauge::clone(&held_back));
        registry.register("http_calls", "Calls answered", Family::clone(&calls));
        let seconds_help = "From a call's head to its answer's head";
        registry.register_with_unit("http_call", seconds_help, Unit::Seconds, Family::clone(&call_seconds));
        registry.register("jobs_submitted", "Jobs accepted by this process", Counter::clone(&submitted));
        registry.register("streams_open", "Event streams and followed logs", Gauge::clone(&streams));
        registry.register("calls_in_hand", "Calls behind each door", Family::clone(&in_hand));
        Self {
            registry: Arc::new(registry),
            reaping_paused_seconds: paused,
            leases_held_back: held_back,
            calls,
            call_seconds,
            jobs_submitted: submitted,
            streams_open: streams,
            calls_in_hand: in_hand,
        }
    }
}

impl Metrics {
    /// All of them as text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
