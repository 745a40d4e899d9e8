//! Threads that read, each with a connection that can't write. Reads never wait for the writer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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

type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The readers' queue and threads. Dropping it finishes what is queued and waits for the threads.
pub(super) struct Readers {
    queue: Mutex<Option<mpsc::Sender<Read>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    clock: Arc<dyn Clock>,
    leases: LeaseSettings,
}

impl Readers {
    /// Opens the connections and starts the threads.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database can't be opened or no thread can be started.
    pub(super) fn start(
        path: &Path,
        clock: Arc<dyn Clock>,
        leases: LeaseSettings,
    ) -> Result<Self, StoreError> {
        let (sender, queue) = mpsc::channel::<Read>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(THREADS);
        for number in 1..=THREADS {
            let (connection, queue) = (open_reader(path)?, Arc::clone(&queue));
            let thread = std::thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || serve(&connection, &queue))
                .map_err(|error| StoreError::Unavailable {
                    doing: "starting a reader",
                    source: Box::new(error),
                })?;
            threads.push(thread);
        }
        Ok(Self { queue: Mutex::new(Some(sender)), threads: Mutex::new(threads), clock, leases })
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
        let read: Read = Box::new(move |connection| {
            let result = snapshot(connection, terms, work);
            drop(reply.send(result.map_err(|fault| fault.during(doing))));
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

fn serve(connection: &Connection, queue: &Mutex<mpsc::Receiver<Read>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(read) = next else { return };
        read(connection);
    }
}

fn snapshot<T>(
    connection: &Connection,
    terms: Terms,
    work: impl FnOnce(&Scope<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = work(&Scope::new(connection, terms, 0));
    let ended = connection.prepare_cached("COMMIT")?.execute([]);
    let value = result?;
    ended?;
    Ok(value)
}
