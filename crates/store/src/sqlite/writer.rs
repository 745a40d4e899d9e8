//! The one writer: a thread with a bounded queue and group commit.
//!
//! When idle it commits a call at once; what arrives while a commit is in flight shares the next one. When a call of a
//! group fails, the group is rolled back and each of its calls is done again in a transaction of its own, so that it takes
//! nothing of the others back (savepoints would cost every group a copy of each page it writes). Answers go out after
//! the commit, wake-ups after that.
//!
//! Invariant: no answer that says "done" leaves before its commit is on the disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jobyard_model::{Clock, LeaseSettings};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection::Lock;
use super::fault::{Fault, shared};
use super::scope::Scope;
use crate::StoreError;
use crate::ledger::Terms;
use crate::wake::{Wakers, Wakes};

/// How many calls may queue; who comes then waits for its turn.
const QUEUE: usize = 1_024;
/// How many calls share a commit at most.
const GROUP: usize = 512;

/// What the writer works with.
pub(super) struct Settings {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) leases: LeaseSettings,
    pub(super) max_unended_per_owner: u64,
    pub(super) wakers: Arc<Wakers>,
}

/// The writer's queue and thread. Dropping it finishes what is queued and waits for the thread.
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Call>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. It holds the lock until it is done.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when no thread can be started.
    pub(super) fn start(connection: Connection, lock: Lock, settings: Settings) -> Result<Self, StoreError> {
        let (sender, queue) = mpsc::channel(QUEUE);
        let serve = move || {
            Server { connection, settings, queue }.serve();
            drop(lock);
        };
        let thread =
            std::thread::Builder::new().name("store-writer".to_owned()).spawn(serve).map_err(|error| {
                StoreError::Unavailable { doing: "starting the writer", source: Box::new(error) }
            })?;
        Ok(Self { queue: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// Does the work in a transaction, and returns when that is durable. Once queued, the work is done even when
    /// nobody waits for the answer any more. It may be done again after what it did was rolled back.
    ///
    /// # Errors
    /// What the work failed with, or what the commit did.
    pub(super) async fn write<T, F>(&self, doing: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Scope<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Work { doing, work, result: None, reply });
        let queue = queue.ok_or_else(|| closed(doing))?;
        queue.send(call).await.map_err(|_| closed(doing))?;
        drop(queue);
        answer.await.map_err(|_| closed(doing))?
    }

    /// Lets no more calls in, finishes those that are queued, and waits for the thread.
    pub(super) fn stop(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The error of a call that came after the store was closed.
pub(super) fn closed(doing: &'static str) -> StoreError {
    StoreError::Unavailable { doing, source: "the store is closed".into() }
}

/// A queued call.
trait Call: Send {
    /// Does its work, perhaps not for the first time. `false`: what it wrote must be rolled back.
    fn run(&mut self, scope: &Scope<'_>) -> bool;

    /// Answers, once it is known what became of the group.
    fn answer(self: Box<Self>, fate: &Fate);
}

/// What became of a group.
enum Fate {
    /// It is on the disk.
    Committed,
    /// Surely nothing of it is.
    RolledBack(Arc<rusqlite::Error>),
    /// The commit failed in a way that leaves it open.
    Unknown(Arc<rusqlite::Error>),
}

struct Work<T, F> {
    doing: &'static str,
    work: F,
    result: Option<Result<T, Fault>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Call for Work<T, F>
where
    T: Send,
    F: Fn(&Scope<'_>) -> Result<T, Fault> + Send,
{
    fn run(&mut self, scope: &Scope<'_>) -> bool {
        self.result.insert((self.work)(scope)).is_ok()
    }

    fn answer(self: Box<Self>, fate: &Fate) {
        let doing = self.doing;
        let answer = match (self.result, fate) {
            (Some(Ok(value)), Fate::Committed) => Ok(value),
            (Some(Err(fault)), _) => Err(fault.during(doing)),
            (_, Fate::RolledBack(error)) => Err(shared(error, doing)),
            (_, Fate::Unknown(error)) => {
                Err(StoreError::Unknown { doing, source: Box::new(Arc::clone(error)) })
            }
            (None, Fate::Committed) => Err(closed(doing)),
        };
        // Whoever asked may have gone; what was done stays done.
        drop(self.reply.send(answer));
    }
}

struct Server {
    connection: Connection,
    settings: Settings,
    queue: mpsc::Receiver<Box<dyn Call>>,
}

impl Server {
    fn serve(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP {
                let Ok(next) = self.queue.try_recv() else { break };
                group.push(next);
            }
            self.commit(group);
        }
        let checkpoint =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        if let Err(error) = checkpoint {
            tracing::warn!(%error, "could not checkpoint the database while closing it");
        }
    }

    /// Runs the calls in one transaction, or else each in its own, and answers them.
    fn commit(&self, mut group: Vec<Box<dyn Call>>) {
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return answer(group, &Fate::RolledBack(Arc::new(error)));
        }
        let Some(wakes) = self.run(&mut group) else {
            self.roll_back();
            match group.len() {
                1 => answer(group, &Fate::RolledBack(Arc::new(rolled_back()))),
                _ => group.into_iter().for_each(|call| self.commit(vec![call])),
            }
            return;
        };
        let fate = self.end();
        let committed = matches!(fate, Fate::Committed);
        answer(group, &fate);
        if committed {
            self.settings.wakers.bump(wakes);
        }
    }

    /// Whom to wake once it is committed; `None` as soon as one fails, or when SQLite has rolled back by itself (as it
    /// does when the disk is full).
    fn run(&self, group: &mut [Box<dyn Call>]) -> Option<Wakes> {
        let mut wakes = Wakes::default();
        for call in group {
            let scope = self.scope();
            if !call.run(&scope) || self.connection.is_autocommit() {
                return None;
            }
            wakes.merge(scope.wakes());
        }
        Some(wakes)
    }

    fn end(&self) -> Fate {
        let Err(error) = self.execute("COMMIT") else { return Fate::Committed };
        self.roll_back();
        let unsure = matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure));
        match unsure {
            true => Fate::Unknown(Arc::new(error)),
            false => Fate::RolledBack(Arc::new(error)),
        }
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "could not roll back");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn scope(&self) -> Scope<'_> {
        let terms = Terms { now: self.settings.clock.now(), leases: self.settings.leases };
        Scope::new(&self.connection, terms, self.settings.max_unended_per_owner)
    }
}

/// What a call gets whose transaction SQLite rolled back. One that failed itself gets its own fault.
fn rolled_back() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK),
        Some("the transaction was rolled back".to_owned()),
    )
}

fn answer(group: Vec<Box<dyn Call>>, fate: &Fate) {
    for call in group {
        call.answer(fate);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use jobyard_model::Timestamp;
    use tempfile::TempDir;

    use super::super::connection::{lock, open_writer};
    use super::*;
    use crate::encoding::inconsistent;
    use crate::wake::WakeTopic;

    struct Ticks(AtomicU64);

    impl Clock for Ticks {
        fn now(&self) -> Timestamp {
            Timestamp(i64::try_from(self.0.fetch_add(1, Ordering::Relaxed)).unwrap())
        }
    }

    fn start(directory: &TempDir) -> (Arc<Writer>, Arc<Wakers>) {
        let path = directory.path().join("jobyard.db");
        let lock = lock(&path).unwrap();
        let connection = open_writer(&path, None).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE parent (n INTEGER PRIMARY KEY) STRICT;
                 CREATE TABLE noted (n INTEGER, parent INTEGER REFERENCES parent (n) DEFERRABLE INITIALLY DEFERRED) STRICT;",
            )
            .unwrap();
        let wakers = Arc::new(Wakers::new());
        let settings = Settings {
            clock: Arc::new(Ticks(AtomicU64::new(1))),
            leases: LeaseSettings::default(),
            max_unended_per_owner: 1,
            wakers: Arc::clone(&wakers),
        };
        (Arc::new(Writer::start(connection, lock, settings).unwrap()), wakers)
    }

    /// Keeps the writer busy until told, so that what is queued meanwhile becomes one group.
    fn hold(writer: &Arc<Writer>) -> (tokio::task::JoinHandle<()>, Sender<()>, Receiver<()>) {
        let (release, released) = channel::<()>();
        let (begin, begun) = channel::<()>();
        let writer = Arc::clone(writer);
        let held = tokio::spawn(async move {
            let wait = move |_: &Scope<'_>| {
                begin.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            };
            writer.write("holding", wait).await.unwrap();
        });
        (held, release, begun)
    }

    async fn noted(writer: &Writer) -> Vec<i64> {
        let read = |scope: &Scope<'_>| {
            let mut statement = scope.statement("SELECT n FROM noted ORDER BY n")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<Vec<i64>>>()?)
        };
        writer.write("reading", read).await.unwrap()
    }

    /// Queues the notes behind a held writer, lets go, and gives back each one's answer.
    async fn as_one_group(
        writer: &Arc<Writer>,
        note: fn(&Scope<'_>, i64) -> Result<(), Fault>,
    ) -> Vec<Result<(), StoreError>> {
        let (held, release, begun) = hold(writer);
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        let queue = writer.queue.lock().unwrap().clone().unwrap();
        let mut calls = Vec::new();
        for number in 1..=3 {
            let room = queue.capacity();
            let writer = Arc::clone(writer);
            calls.push(tokio::spawn(async move {
                writer.write("noting", move |scope| note(scope, number)).await
            }));
            while queue.capacity() == room {
                tokio::task::yield_now().await;
            }
        }
        drop(queue);
        release.send(()).unwrap();
        held.await.unwrap();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.unwrap());
        }
        answers
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_fails_takes_nothing_of_the_others_back() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, wakers) = start(&directory);
        let woken = wakers.subscribe(WakeTopic::Logs);
        let answers = as_one_group(&writer, |scope, number| {
            scope.execute("INSERT INTO noted (n) VALUES (?1)", [number])?;
            if number == 2 {
                scope.wake(WakeTopic::Logs);
                return Err(inconsistent("noted", number, "refused after the write").into());
            }
            Ok(())
        })
        .await;
        assert!(answers[0].is_ok() && answers[2].is_ok());
        assert!(matches!(answers[1], Err(StoreError::Inconsistent { .. })));
        assert_eq!(noted(&writer).await, [1, 3]);
        assert!(!woken.has_changed().unwrap(), "a call that was taken back woke somebody");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_commit_that_fails_acknowledges_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let (writer, wakers) = start(&directory);
        let woken = wakers.subscribe(WakeTopic::Logs);
        let answers = as_one_group(&writer, |scope, number| {
            scope.wake(WakeTopic::Logs);
            // Only the commit finds that there is no such parent.
            let parent = (number == 3).then_some(99);
            scope.execute("INSERT INTO noted (n, parent) VALUES (?1, ?2)", (number, parent))?;
            Ok(())
        })
        .await;
        assert!(
            answers.iter().all(|answer| matches!(answer, Err(StoreError::Statement { .. }))),
            "{answers:?}"
        );
        assert!(noted(&writer).await.is_empty());
        assert!(!woken.has_changed().unwrap(), "nothing was committed, but somebody was woken");
    }
}
