//! The thread that reads logs. It is one, for what a thread reads stays in its heap for the next time: on the threads
//! of a pool each of them would come to hold as much as a call.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use super::batch::Batch;

type Work = (Batch, oneshot::Sender<Batch>);

/// Hands batches to the thread, which ends with this.
pub(super) struct LogThread {
    work: mpsc::Sender<Work>,
}

impl LogThread {
    pub(super) fn start() -> io::Result<Self> {
        let (work, batches) = mpsc::channel::<Work>();
        let read = move || {
            for (mut batch, answer) in batches {
                batch.read_logs();
                // Whoever asked may be gone, when everything ends.
                let _ = answer.send(batch);
            }
        };
        thread::Builder::new().name("worker-logs".to_owned()).spawn(read)?;
        Ok(Self { work })
    }

    /// The batch with the next pieces of its logs.
    ///
    /// # Panics
    /// Reading has panicked.
    #[expect(clippy::expect_used, reason = "a panic in the thread is passed on")]
    pub(super) async fn with_logs(&self, batch: Batch) -> Batch {
        if !batch.has_logs() {
            return batch;
        }
        let (answer, read) = oneshot::channel();
        self.work.send((batch, answer)).expect("the thread lives");
        read.await.expect("the thread lives")
    }
}
