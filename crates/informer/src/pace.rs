//! The one shape of a loop: woken by a timer or a signal, it runs once and says how it went.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jobyard_store::StoreError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The longest pause after an error.
const MAX_ERROR_PAUSE: Duration = Duration::from_secs(5);

/// How long wake-ups are gathered when the last run said so.
const GATHER: Duration = Duration::from_millis(10);

/// What one run of a loop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ran {
    /// Things changed.
    pub(crate) changed: u64,
    /// The batch was full: run again at once.
    pub(crate) more: bool,
    /// What waits finds room piece by piece: the wake-ups of a few milliseconds may be answered by one run.
    pub(crate) gather: bool,
}

impl Ran {
    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            changed: self.changed + other.changed,
            more: self.more || other.more,
            gather: self.gather || other.gather,
        }
    }
}

/// A loop's body: idempotent, bounded by a batch, without a hint about what changed.
pub(crate) trait RunOnce: Send + 'static {
    fn run_once(&mut self) -> impl Future<Output = Result<Ran, StoreError>> + Send;
}

/// When a loop runs.
pub(crate) struct Pace {
    name: &'static str,
    period: Duration,
    wakes: Option<watch::Receiver<u64>>,
}

impl Pace {
    pub(crate) fn new(name: &'static str, wakes: Option<watch::Receiver<u64>>, period: Duration) -> Self {
        Self { name, period, wakes }
    }

    /// Runs the body now and at each wake-up or period, until `shutdown`. A run in hand is finished, not cut off.
    pub(crate) async fn run(mut self, mut body: impl RunOnce, board: LoopBoard, shutdown: CancellationToken) {
        let mut error_pause = Duration::from_millis(50);
        while !shutdown.is_cancelled() {
            match body.run_once().await {
                Ok(ran) => {
                    error_pause = Duration::from_millis(50);
                    board.note(self.name, ran);
                    if !ran.more {
                        self.pause(&shutdown).await;
                        if ran.gather {
                            self.gather().await;
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        loop_name = self.name,
                        error = &error as &dyn std::error::Error,
                        "run failed"
                    );
                    board.note_error(self.name);
                    tokio::select! {
                        () = tokio::time::sleep(error_pause) => {}
                        () = shutdown.cancelled() => {}
                    }
                    error_pause = (error_pause * 2).min(MAX_ERROR_PAUSE);
                }
            }
        }
    }

    async fn pause(&mut self, shutdown: &CancellationToken) {
        tokio::select! {
            () = woken(self.wakes.as_mut()) => {}
            () = tokio::time::sleep(self.period) => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Waits a moment; the wake-ups up to its end are answered by the next run.
    async fn gather(&mut self) {
        tokio::time::sleep(GATHER).await;
        if let Some(wakes) = &mut self.wakes {
            wakes.mark_unchanged();
        }
    }
}

/// Returns at a wake-up; never, when there is none to come or the store is gone.
async fn woken(wakes: Option<&mut watch::Receiver<u64>>) {
    if let Some(wakes) = wakes
        && wakes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// How every loop fares; shared with metrics and health.
#[derive(Debug, Clone, Default)]
pub struct LoopBoard {
    readings: Arc<Mutex<Readings>>,
}

#[derive(Debug, Default)]
struct Readings {
    loops: BTreeMap<&'static str, LoopReading>,
    paused_since: Option<Instant>,
    held_back: u64,
}

/// How one loop fares.
#[derive(Debug, Clone, Copy)]
pub struct LoopReading {
    /// Runs that did not fail.
    pub runs: u64,
    /// Runs that failed.
    pub errors: u64,
    /// Things changed in all.
    pub changed: u64,
    /// When it last ran without failing.
    pub last_ok: Instant,
}

impl LoopBoard {
    /// Every loop's reading, by name.
    #[must_use]
    pub fn readings(&self) -> Vec<(&'static str, LoopReading)> {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.loops.iter().map(|(name, reading)| (*name, *reading)).collect()
    }

    /// For how long verdicts by silence have been held back while there were some to make; 0 when they are not.
    #[must_use]
    pub fn reaping_paused_seconds(&self) -> f64 {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.paused_since.map_or(0.0, |since| since.elapsed().as_secs_f64())
    }

    /// Attempts whose lease has run out and that are not given up.
    #[must_use]
    pub fn leases_held_back(&self) -> i64 {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        i64::try_from(readings.held_back).unwrap_or(i64::MAX)
    }

    pub(crate) fn note_held_back(&self, held_back: u64) {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.held_back = held_back;
        readings.paused_since = match (held_back > 0, readings.paused_since) {
            (true, since) => since.or_else(|| Some(Instant::now())),
            (false, _) => None,
        };
    }

    fn note(&self, name: &'static str, ran: Ran) {
        self.update(name, |reading| {
            reading.runs += 1;
            reading.changed += ran.changed;
            reading.last_ok = Instant::now();
        });
    }

    pub(crate) fn note_error(&self, name: &'static str) {
        self.update(name, |reading| reading.errors += 1);
    }

    fn update(&self, name: &'static str, change: impl FnOnce(&mut LoopReading)) {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = LoopReading { runs: 0, errors: 0, changed: 0, last_ok: Instant::now() };
        change(readings.loops.entry(name).or_insert(fresh));
    }
}
