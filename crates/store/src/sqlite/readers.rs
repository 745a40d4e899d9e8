//! Threads that read, each with a connection that can't write. Reads never wait for the writer.
//!
//! Those that look over many rows have threads and a queue of their own, and a limit of time.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jobyard_model::{Clock, LeaseSettings};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection::open_reader;
use super::fault::Fault;
use super::scope::Scope;
use super::writer::closed;
use crate::StoreError;
use crate::ledger::Terms;

const THREADS: usize = 2;
const QUEUE: usize = 1_024;
/// So many steps of SQLite's machine between two looks at the time.
const STEPS_BETWEEN: i32 = 10_000;

type Read = Box<dyn FnOnce(&mut Connection) + Send>;

/// The readers' queue and threads. Dropping it finishes what is queued and waits for the threads.
pub(super) struct Readers {
    queue: Mutex<Option<mpsc::Sender<Read>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    clock: Arc<dyn Clock>,
    leases: LeaseSettings,
    within: Option<Duration>,
}

impl Readers {
    /// Opens the connections and starts the threads. With `within` a read that takes longer, waiting for its turn
    /// included, ends as [`StoreError::TooSlow`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database can't be opened or no thread can be started.
    pub(super) fn start(
        path: &Path,
        (clock, leases): (Arc<dyn Clock>, LeaseSettings),
        within: Option<Duration>,
    ) -> Result<Self, StoreError> {
        let (sender, queue) = mpsc::channel::<Read>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(THREADS);
        for number in 1..=THREADS {
            let (mut connection, queue) = (open_reader(path)?, Arc::clone(&queue));
            let thread = std::thread::Builder::new()
                .name(format!("store-{}-{number}", if within.is_some() { "lister" } else { "reader" }))
                .spawn(move || serve(&mut connection, &queue))
                .map_err(|error| StoreError::Unavailable {
                    doing: "starting a reader",
                    source: Box::new(error),
                })?;
            threads.push(thread);
        }
        Ok(Self { queue: Mutex::new(Some(sender)), threads: Mutex::new(threads), clock, leases, within })
    }

    /// Reads from one snapshot.
    ///
    /// # Errors
    /// What the work failed with.
    pub(super) async fn read<T, F>(&self, doing: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Scope<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let terms = Terms { now: self.clock.now(), leases: self.leases };
        let (reply, answer) = oneshot::channel();
        let until = self.within.map(|within| Instant::now() + within);
        let read: Read = Box::new(move |connection| {
            // Nobody waits for it any more.
            if reply.is_closed() {
                return;
            }
            let result = limited(connection, until, |connection| snapshot(connection, terms, work));
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            let result = result.map_err(|fault| match fault.is_interruption() && is_over {
                true => StoreError::TooSlow { doing },
                false => fault.during(doing),
            });
            drop(reply.send(result));
        });
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let queue = queue.ok_or_else(|| closed(doing))?;
        queue.send(read).await.map_err(|_| closed(doing))?;
        drop(queue);
        answer.await.map_err(|_| closed(doing))?
    }

    /// Lets no more reads in, finishes those that are queued, and waits for the threads.
    pub(super) fn stop(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a reader of the store ended by a panic");
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(connection: &mut Connection, queue: &Mutex<mpsc::Receiver<Read>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = next else { return };
        read(connection);
    }
}

/// Interrupts what takes longer than it may.
fn limited<T>(
    connection: &mut Connection,
    until: Option<Instant>,
    work: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let Some(until) = until else { return work(connection) };
    if Instant::now() >= until {
        return Err(Fault::interruption());
    }
    connection.progress_handler(STEPS_BETWEEN, Some(move || Instant::now() >= until))?;
    let result = work(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    result
}

fn snapshot<T>(
    connection: &Connection,
    terms: Terms,
    work: impl FnOnce(&Scope<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = work(&Scope::new(connection, terms, 0));
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.prepare_cached(end)?.execute([]);
    let value = result?;
    ended?;
    Ok(value)
}
