//! What `/metrics` shows, in Prometheus' format: every name that any of our roles has, in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// All that a process shows. Clones show the same.
#[derive(Debug, Clone)]
pub struct MetricsPage {
    registry: Arc<Registry>,
}

/// The metrics of a server. Clones are the same metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    page: MetricsPage,
    pub(crate) calls: Family<Call, Counter>,
    pub(crate) call_seconds: Family<Route, Histogram>,
    pub(crate) jobs_submitted: Counter,
    pub(crate) streams_open: Gauge,
    pub(crate) calls_in_hand: Family<DoorName, Gauge>,
    pub(crate) artifact_store_usable: Gauge,
}

/// The metrics of the informer's loops, which it feeds. Clones are the same metrics.
#[derive(Debug, Clone, Default)]
pub struct LoopMetrics {
    /// For how long nothing has been given up on by silence; 0 while verdicts are passed.
    pub reaping_paused_seconds: Gauge<f64, AtomicU64>,
    /// Attempts whose lease has run out and that are not given up, since verdicts are paused.
    pub leases_held_back: Gauge,
    runs: Family<LoopName, Counter>,
    errors: Family<LoopName, Counter>,
    changed: Family<LoopName, Counter>,
    last_ok_seconds: Family<LoopName, Gauge<f64, AtomicU64>>,
}

/// How one loop fares, since the process began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopFigures {
    /// Runs that did not fail.
    pub runs: u64,
    /// Runs that failed.
    pub errors: u64,
    /// Things changed.
    pub changed: u64,
    /// How long ago it last ran without failing.
    pub last_ok_seconds: f64,
}

/// A loop's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoopName {
    r#loop: &'static str,
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
        Self::in_registry(new_registry())
    }
}

impl Metrics {
    /// Of a process that also has the informer's loops.
    #[must_use]
    pub fn with_loops(loops: &LoopMetrics) -> Self {
        let mut registry = new_registry();
        loops.register(&mut registry);
        Self::in_registry(registry)
    }

    fn in_registry(mut registry: Registry) -> Self {
        // From 250 µs to about 4 s.
        let histogram = || Histogram::new(exponential_buckets(0.000_25, 2.0, 15));
        let (calls, submitted) = (Family::default(), Counter::default());
        let call_seconds = Family::new_with_constructor(histogram as fn() -> Histogram);
        let (streams, in_hand) = (Gauge::default(), Family::default());
        registry.register("http_calls", "Calls answered", Family::clone(&calls));
        let seconds_help = "From a call's head to its answer's head";
        registry.register_with_unit("http_call", seconds_help, Unit::Seconds, Family::clone(&call_seconds));
        registry.register("jobs_submitted", "Jobs accepted by this process", Counter::clone(&submitted));
        registry.register("streams_open", "Event streams and followed logs", Gauge::clone(&streams));
        let usable = Gauge::default();
        let usable_help = "1, or 0 while the artifact store is away or refuses";
        registry.register("artifact_store_usable", usable_help, Gauge::clone(&usable));
        registry.register("calls_in_hand", "Calls behind each door", Family::clone(&in_hand));
        Self {
            page: MetricsPage { registry: Arc::new(registry) },
            calls,
            call_seconds,
            jobs_submitted: submitted,
            streams_open: streams,
            calls_in_hand: in_hand,
            artifact_store_usable: usable,
        }
    }

    pub(crate) fn page(&self) -> &MetricsPage {
        &self.page
    }
}

impl LoopMetrics {
    /// What an informer shows that is a process of its own.
    #[must_use]
    pub fn page(&self) -> MetricsPage {
        let mut registry = new_registry();
        self.register(&mut registry);
        MetricsPage { registry: Arc::new(registry) }
    }

    /// Shows these figures from now on.
    pub fn show(&self, name: &'static str, figures: LoopFigures) {
        let name = LoopName { r#loop: name };
        let counters =
            [(&self.runs, figures.runs), (&self.errors, figures.errors), (&self.changed, figures.changed)];
        for (counter, total) in counters {
            counter.get_or_create(&name).inner().store(total, Ordering::Relaxed);
        }
        self.last_ok_seconds.get_or_create(&name).set(figures.last_ok_seconds);
    }

    fn register(&self, registry: &mut Registry) {
        let paused_help = "How long nothing has been given up on by silence";
        let paused = self.reaping_paused_seconds.clone();
        registry.register_with_unit("reaping_paused", paused_help, Unit::Seconds, paused);
        let held_back_help = "Attempts whose lease ran out while verdicts are paused";
        registry.register("leases_held_back", held_back_help, self.leases_held_back.clone());
        registry.register("loop_runs", "Runs of a loop that did not fail", self.runs.clone());
        registry.register("loop_errors", "Runs of a loop that failed", self.errors.clone());
        registry.register("loop_changed", "Things a loop changed", self.changed.clone());
        let last_ok_help = "How long ago a loop last ran without failing";
        registry.register_with_unit(
            "loop_last_ok",
            last_ok_help,
            Unit::Seconds,
            self.last_ok_seconds.clone(),
        );
    }
}

impl MetricsPage {
    /// What a worker shows that is a process of its own: its live attempts.
    #[must_use]
    pub fn of_worker(attempts: &Gauge) -> Self {
        let mut registry = new_registry();
        registry.register("worker_attempts", "Attempts that this worker watches", attempts.clone());
        Self { registry: Arc::new(registry) }
    }

    /// OpenMetrics text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn new_registry() -> Registry {
    Registry::with_prefix("jobyard")
}
