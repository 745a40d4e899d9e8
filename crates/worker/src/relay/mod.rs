//! Everything a node says to the report door, in one loop: at once when it is idle, gathered while a call is made.
//!
//! Owns the outbox, the undelivered outcomes on disk, and the reading of logs. Never decides what an attempt says.
//! Invariant: one call at a time, so the words of an attempt arrive in their order.

mod answers;
mod batch;
mod chunks;
mod outbox;
mod reading;
mod tail;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jobyard_api::doors::{DoorError, ReportDoor};
use jobyard_handoff::log_parts::{part, parts};
use jobyard_model::{AttemptEnd, LeaseId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use self::outbox::{Aftermath, Due, Outbox};
use self::reading::LogThread;
use self::tail::Tail;
pub(crate) use self::words::Word;
use crate::identity::Identity;
use crate::keeper::Nudge;
use crate::launch::AttemptRef;
use crate::node::boottime_ms;
use crate::spool::Spool;

/// Between two tries of a door that doesn't answer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Relay {
    door: Arc<dyn ReportDoor>,
    identity: Arc<Identity>,
    spool: Spool,
    outbox: Mutex<Outbox>,
    logs: LogThread,
    /// Something was put into the outbox.
    wake: Notify,
    /// A call was settled.
    settled: Notify,
    /// Calls that were answered.
    answered: AtomicU64,
}

impl Relay {
    /// Fails when the thread that reads logs can't be started.
    pub(crate) fn new(
        door: Arc<dyn ReportDoor>,
        identity: Arc<Identity>,
        spool: Spool,
        log_pause: Duration,
    ) -> io::Result<Self> {
        let outbox = Mutex::new(Outbox::new(log_pause, Instant::now()));
        Ok(Self {
            door,
            identity,
            spool,
            outbox,
            logs: LogThread::start()?,
            wake: Notify::new(),
            settled: Notify::new(),
            answered: AtomicU64::new(0),
        })
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // Every change of the outbox is complete before anything can panic.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Outbox)) {
        change(&mut self.outbox());
        self.wake.notify_one();
    }

    /// From here on this attempt may speak; what it is answered goes to `keeper`.
    pub(crate) fn open(&self, attempt: AttemptRef, log: PathBuf, keeper: mpsc::UnboundedSender<Nudge>) {
        self.outbox().open(attempt, Tail::of(log), Some(keeper));
    }

    /// As [`Relay::open`], for an attempt that an earlier worker may have spoken for.
    pub(crate) fn reopen(&self, attempt: AttemptRef, log: PathBuf, keeper: mpsc::UnboundedSender<Nudge>) {
        self.outbox().open(attempt, Tail::of_another(log), Some(keeper));
    }

    /// What an earlier worker left: an outcome that was not answered, or a log, or both.
    pub(crate) fn deliver_left_over(&self, attempt: AttemptRef, log: PathBuf, end: Option<AttemptEnd>) {
        self.change(|outbox| {
            outbox.open(attempt, Tail::of_another(log), None);
            outbox.end(attempt.lease_id, end, None);
            outbox.is_kept(attempt.lease_id);
        });
    }

    pub(crate) fn say(&self, lease_id: LeaseId, word: Word) {
        self.change(|outbox| outbox.say(lease_id, word));
    }

    pub(crate) fn log_grew(&self, lease_id: LeaseId, file_bytes: u64) {
        self.change(|outbox| outbox.log_grew(lease_id, file_bytes));
    }

    /// See [`Outbox::end`].
    pub(crate) fn end(&self, lease_id: LeaseId, end: Option<AttemptEnd>, file_bytes: Option<u64>) {
        self.change(|outbox| outbox.end(lease_id, end, file_bytes));
    }

    /// This outcome lies on disk since an earlier worker.
    pub(crate) fn is_kept(&self, lease_id: LeaseId) {
        self.outbox().is_kept(lease_id);
    }

    pub(crate) fn close(&self, lease_id: LeaseId) {
        self.outbox().close(lease_id);
    }

    /// Calls the door whenever there is something to say. Ends by being dropped.
    pub(crate) async fn run(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let due = self.outbox().due(Instant::now());
            match due {
                Due::Now => match self.run_once().await {
                    Ok(()) => pause = FIRST_PAUSE,
                    Err(error) => {
                        warn_unanswered(&error);
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                },
                Due::At(at) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = sleep_until(at) => {}
                },
                Due::Never => self.wake.notified().await,
            }
        }
    }

    /// One call with what is due.
    async fn run_once(&self) -> Result<(), DoorError> {
        let batch = self.outbox().take(Instant::now());
        let mut batch = self.logs.with_logs(batch).await;
        let request = batch.request(&self.identity);
        let sent_at_ms = boottime_ms();
        let answer = if request.logs.is_empty() && request.reports.is_empty() {
            Ok(Default::default())
        } else {
            self.door.report(request).await
        };
        let (aftermath, result) = match answer {
            Ok(reply) => (self.outbox().settle(batch, &reply, sent_at_ms), Ok(())),
            Err(error) => (self.outbox().put_back(batch), Err(error)),
        };
        self.clear_up(aftermath).await;
        if result.is_ok() {
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        self.settled.notify_waiters();
        result
    }

    async fn clear_up(&self, aftermath: Aftermath) {
        let Aftermath { keep, unkeep, given_back, remove_logs } = aftermath;
        if keep.is_empty() && unkeep.is_empty() && given_back.is_empty() && remove_logs.is_empty() {
            return;
        }
        let spool = self.spool.clone();
        let work = move || {
            for (attempt, end) in keep {
                keep_end(&spool, &attempt, &end);
            }
            for lease_id in unkeep {
                // Left there it is sent once more by the next worker, and answered `already`.
                if let Err(error) = spool.remove(lease_id) {
                    tracing::warn!(%lease_id, error = &error as &dyn std::error::Error, "a delivered outcome stays");
                }
            }
            for part in given_back {
                remove_part(&part);
            }
            for log in remove_logs {
                remove_log(&log);
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::error!(error = &error as &dyn std::error::Error, "clearing up after a report failed");
        }
    }

    /// Until there is nothing to say.
    pub(crate) async fn quiet(&self) {
        loop {
            let settled = self.settled.notified();
            if self.outbox().is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// Until the outcomes of an earlier worker are answered, or the door has answered and put some of them off.
    pub(crate) async fn left_overs_told(&self) {
        let enough = self.answered.load(Ordering::Relaxed) + 3;
        loop {
            let settled = self.settled.notified();
            if self.outbox().left_overs() == 0 || self.answered.load(Ordering::Relaxed) >= enough {
                return;
            }
            settled.await;
        }
    }

    /// Puts every unanswered outcome on disk. Blocks.
    pub(crate) fn keep_all(&self) {
        let unkept = self.outbox().unkept();
        for (attempt, end) in unkept {
            keep_end(&self.spool, &attempt, &end);
        }
    }
}

fn warn_unanswered(error: &DoorError) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(error, "the report door does not answer, saying it again");
}

fn keep_end(spool: &Spool, attempt: &AttemptRef, end: &AttemptEnd) {
    // It is still in memory, and in the attempt directory.
    if let Err(error) = spool.keep(attempt, end) {
        let lease_id = attempt.lease_id;
        tracing::error!(%lease_id, error = &error as &dyn std::error::Error, "an undelivered outcome is not on disk");
    }
}

/// A log that has been delivered, or never came to be, with all its parts. Looks through the whole folder.
pub(crate) fn remove_log(path: &Path) {
    match parts(path) {
        Ok(parts) => parts.into_iter().for_each(|from| remove_part(&part(path, from))),
        Err(error) => warn_stays(path, &error),
    }
}

/// A log file that has been delivered, or never came to be.
pub(crate) fn remove_part(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => warn_stays(path, &error),
        Ok(()) | Err(_) => {}
    }
}

fn warn_stays(path: &Path, error: &io::Error) {
    let path = path.display();
    tracing::warn!(%path, error = error as &dyn std::error::Error, "a delivered log stays");
}
