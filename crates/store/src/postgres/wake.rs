//! Wake-ups between processes: NOTIFY after commits, LISTEN for those of others.
//!
//! Owns the two connections this takes and the counters that followers watch. A wake-up that is lost costs the time
//! to the next poll and nothing else.
//!
//! Invariants: **no NOTIFY inside a transaction that changes anything** (all such transactions commit one after the
//! other, across the whole cluster); the payload is a topic's name and never grows with the work; a listener that was
//! away wakes every topic when it is back.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket};

use super::config::{PostgresConfig, WakeOn};
use super::fault::{Fault, Shared, Stage};
use crate::wake::{WakeTopic, Wakers, Wakes};

/// A NOTIFY goes out at once when none went out for this long, else they are gathered for as long: the shorter time
/// for what a job's start or stop waits for, the longer one for what people watch.
const GATHER_URGENT: Duration = Duration::from_millis(2);
const GATHER: Duration = Duration::from_millis(20);

/// How often a listener makes sure that its connection still lives: a half-open one looks like silence.
const PROBE_EACH: Duration = Duration::from_secs(10);

/// Between two tries to connect.
const RECONNECT_EACH: Duration = Duration::from_millis(250);

type Wire = Connection<Socket, NoTlsStream>;

/// What the rest of the store wakes through.
pub(super) struct WakeUps {
    wakers: Arc<Wakers>,
    outgoing: Option<mpsc::UnboundedSender<Wakes>>,
    tasks: Vec<JoinHandle<()>>,
}

impl WakeUps {
    /// Starts listening, unless the settings say not to.
    ///
    /// # Errors
    /// When the settings make no sense.
    pub(super) fn start(config: &PostgresConfig) -> Result<Self, crate::StoreError> {
        let wakers = Arc::new(Wakers::new());
        if config.wake_on == WakeOn::Poll {
            return Ok(Self { wakers, outgoing: None, tasks: Vec::new() });
        }
        let line = Line { config: config.driver_config()?, timeout: config.connect_timeout };
        let own_backend = Arc::new(AtomicI32::new(0));
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let notifier = notify(line.clone(), incoming, Arc::clone(&own_backend));
        let listener = listen(line, Arc::clone(&wakers), own_backend);
        let tasks = vec![tokio::spawn(notifier), tokio::spawn(listener)];
        Ok(Self { wakers, outgoing: Some(outgoing), tasks })
    }

    /// Wakes this process at once and the others soon. Call it after the commit.
    pub(super) fn bump(&self, wakes: Wakes) {
        if wakes == Wakes::default() {
            return;
        }
        self.wakers.bump(wakes);
        if let Some(outgoing) = &self.outgoing {
            // Nobody takes it any more once the store is closed.
            let _ = outgoing.send(wakes);
        }
    }

    /// Follows a topic.
    pub(super) fn subscribe(&self, topic: WakeTopic) -> watch::Receiver<u64> {
        self.wakers.subscribe(topic)
    }

    /// Lets go of both connections.
    pub(super) fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for WakeUps {
    fn drop(&mut self) {
        self.close();
    }
}

/// How to connect, with an end to the waiting.
#[derive(Clone)]
struct Line {
    config: tokio_postgres::Config,
    timeout: Duration,
}

impl Line {
    async fn connect(&self) -> Result<(Client, Wire), Fault> {
        in_time(self.timeout, self.config.connect(NoTls)).await
    }
}

/// Sends what comes in, for ever. A topic that could not be sent is sent once the connection is back.
async fn notify(line: Line, mut incoming: mpsc::UnboundedReceiver<Wakes>, own_backend: Arc<AtomicI32>) {
    let mut client: Option<Client> = None;
    let mut sent = Instant::now();
    let Some(mut pending) = incoming.recv().await else { return };
    loop {
        gather(&mut incoming, &mut pending, sent).await;
        let connected = match client.take().filter(|client| !client.is_closed()) {
            Some(client) => Ok(client),
            None => notifier_connection(&line, &own_backend).await,
        };
        let done = match connected {
            Ok(connected) => send(&line, &connected, pending).await.map(|()| connected),
            Err(fault) => Err(fault),
        };
        sent = Instant::now();
        match done {
            Ok(connected) => {
                client = Some(connected);
                let Some(next) = incoming.recv().await else { return };
                pending = next;
            }
            Err(fault) => {
                tracing::debug!(error = ?fault, "a wake-up could not be sent");
                tokio::time::sleep(RECONNECT_EACH).await;
            }
        }
    }
}

/// Adds what comes in until it is time to send. Once nobody can send any more, what is pending still goes out.
async fn gather(incoming: &mut mpsc::UnboundedReceiver<Wakes>, pending: &mut Wakes, sent: Instant) {
    loop {
        let until = sent + if pending.is_urgent() { GATHER_URGENT } else { GATHER };
        tokio::select! {
            () = tokio::time::sleep_until(until) => return,
            Some(more) = incoming.recv() => pending.merge(more),
        }
    }
}

async fn notifier_connection(line: &Line, own_backend: &AtomicI32) -> Result<Client, Fault> {
    let (client, connection) = line.connect().await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection for wake-ups broke");
        }
    });
    // A NOTIFY is a commit of its own. Nobody waits for this one to reach the disk: a crash loses it, and polling goes on.
    let sql = "SELECT pg_backend_pid(), set_config('synchronous_commit', 'off', false)";
    let row = in_time(line.timeout, client.query_one(sql, &[])).await?;
    own_backend.store(row.get(0), Ordering::Release);
    Ok(client)
}

async fn send(line: &Line, client: &Client, wakes: Wakes) -> Result<(), Fault> {
    let topics: Vec<_> = WakeTopic::ALL.into_iter().filter(|topic| wakes.has(*topic)).map(word).collect();
    let sql = "SELECT pg_notify('jobyard_wake', topic) FROM unnest($1) topic";
    in_time(line.timeout, client.query_typed(sql, &[(&topics, Type::TEXT_ARRAY)])).await.map(|_| ())
}

/// Hears what others sent, for ever, on a fresh connection each time one is lost.
async fn listen(line: Line, wakers: Arc<Wakers>, own_backend: Arc<AtomicI32>) {
    loop {
        if let Err(fault) = listen_once(&line, &wakers, &own_backend).await {
            tracing::debug!(error = ?fault, "wake-ups can't be heard; polling goes on");
        }
        tokio::time::sleep(RECONNECT_EACH).await;
    }
}

async fn listen_once(line: &Line, wakers: &Arc<Wakers>, own_backend: &Arc<AtomicI32>) -> Result<(), Fault> {
    let (client, connection) = line.connect().await?;
    let mut hearing = Hearing(tokio::spawn(hear(connection, Arc::clone(wakers), Arc::clone(own_backend))));
    in_time(line.timeout, client.batch_execute("LISTEN jobyard_wake")).await?;
    // Whatever was sent while nobody listened.
    WakeTopic::ALL.into_iter().for_each(|topic| wakers.bump(Wakes::of(topic)));
    loop {
        tokio::select! {
            _ = &mut hearing.0 => return Ok(()),
            () = tokio::time::sleep(PROBE_EACH) => {
                in_time(line.timeout, client.batch_execute("SELECT 1")).await?;
            }
        }
    }
}

/// The task that drives the listener's connection; ends with its listener.
struct Hearing(JoinHandle<()>);

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn hear(mut connection: Wire, wakers: Arc<Wakers>, own_backend: Arc<AtomicI32>) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            // Our own were counted when they were sent.
            Ok(AsyncMessage::Notification(note))
                if note.process_id() != own_backend.load(Ordering::Acquire) =>
            {
                let topic = WakeTopic::ALL.into_iter().find(|topic| word(*topic) == note.payload());
                if let Some(topic) = topic {
                    wakers.bump(Wakes::of(topic));
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "the connection that hears wake-ups broke");
                return;
            }
        }
    }
}

fn word(topic: WakeTopic) -> &'static str {
    match topic {
        WakeTopic::Placement => "placement",
        WakeTopic::Stops => "stops",
        WakeTopic::Due => "due",
        WakeTopic::Events => "events",
        WakeTopic::Logs => "logs",
    }
}

async fn in_time<T>(
    within: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(within, answer).await {
        Ok(answer) => answer.map_err(|error| Fault::new(error, Stage::BeforeCommit)),
        Err(_) => Err(Fault::Lost(Shared::new("the server did not answer in time"))),
    }
}
