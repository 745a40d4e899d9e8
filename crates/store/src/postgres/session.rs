//! One pooled connection in the hands of one call.
//!
//! Owns BEGIN, COMMIT and ROLLBACK. Statements given together are sent together and answered together: a transaction
//! takes as many round trips as it has decisions in between.
//!
//! Invariant: a connection goes back to its pool only with no transaction open. A call that is dropped half-way, or
//! fails, closes its connection, and the server rolls back.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object};
use futures_util::TryStreamExt;
use futures_util::future::{MaybeDone, join_all, maybe_done, try_join_all};
use tokio_postgres::{Row, Statement};

use super::fault::{Fault, Shared, Stage};
use super::query::Query;

/// The rows of one statement.
pub(super) type Rows = Vec<Row>;

type Answer = Result<Rows, tokio_postgres::Error>;

/// A connection, and whether a transaction is open on it.
pub(super) struct Session {
    /// `None` only while it is being dropped.
    object: Option<Object>,
    open: bool,
    generation: Arc<AtomicU64>,
    born: u64,
    reply_within: Duration,
}

/// What goes before and after the statements of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Begin,
    Within,
    Commit,
    Alone,
}

impl Session {
    /// Takes a connection in hand; one that was made in an older generation than is current by then is not returned.
    pub(super) fn new(object: Object, generation: &Arc<AtomicU64>, reply_within: Duration) -> Self {
        let born = generation.load(Ordering::Acquire);
        Self { object: Some(object), open: false, generation: Arc::clone(generation), born, reply_within }
    }

    /// Opens a transaction with these statements. All see the rows as committed when each of them begins.
    pub(super) async fn begin<const N: usize>(&mut self, queries: [Query; N]) -> Result<[Rows; N], Fault> {
        self.open = true;
        exactly(self.round_trip(queries.into(), Frame::Begin).await?)
    }

    /// Goes on in the open transaction.
    pub(super) async fn query<const N: usize>(&mut self, queries: [Query; N]) -> Result<[Rows; N], Fault> {
        exactly(self.round_trip(queries.into(), Frame::Within).await?)
    }

    /// Ends the transaction with these statements and the COMMIT. When one of them fails, nothing of the transaction
    /// happened.
    pub(super) async fn commit(mut self, queries: Vec<Query>) -> Result<Vec<Rows>, Fault> {
        let rows = self.round_trip(queries, Frame::Commit).await?;
        self.open = false;
        Ok(rows)
    }

    /// Ends the transaction with nothing changed.
    pub(super) async fn roll_back(mut self) -> Result<(), Fault> {
        let client = self.client()?;
        self.in_time(client.batch_execute("ROLLBACK"), Stage::BeforeCommit).await?;
        self.open = false;
        Ok(())
    }

    /// Statements without a transaction around them, each its own.
    pub(super) async fn alone(&self, queries: Vec<Query>, stage: Stage) -> Result<Vec<Rows>, Fault> {
        let client = self.client()?;
        let statements = self.in_time(prepare(client, &queries), Stage::BeforeCommit).await?;
        let answers = self.answered(send(client, statements, queries, Frame::Alone), stage).await?;
        answers.into_iter().map(|answer| answer.map_err(|error| Fault::new(error, stage))).collect()
    }

    async fn round_trip(&self, queries: Vec<Query>, frame: Frame) -> Result<Vec<Rows>, Fault> {
        let client = self.client()?;
        let statements = self.in_time(prepare(client, &queries), Stage::BeforeCommit).await?;
        let last = if frame == Frame::Commit { Stage::Commit } else { Stage::BeforeCommit };
        let mut answers = self.answered(send(client, statements, queries, frame), last).await?;
        let committed = if last == Stage::Commit { answers.pop() } else { None };
        // The server answers in order: one that refused a statement came to the COMMIT with nothing to commit.
        let stage = |error: &tokio_postgres::Error| match error.as_db_error() {
            Some(_) => Stage::BeforeCommit,
            None => last,
        };
        let fault = |error: tokio_postgres::Error| {
            let stage = stage(&error);
            Fault::new(error, stage)
        };
        let rows = answers.into_iter().map(|answer| answer.map_err(fault)).collect::<Result<Vec<_>, _>>()?;
        match committed {
            Some(Err(error)) => Err(Fault::new(error, last)),
            Some(Ok(_)) | None => Ok(rows),
        }
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        stage: Stage,
    ) -> Result<T, Fault> {
        self.answered(answer, stage).await?.map_err(|error| Fault::new(error, stage))
    }

    async fn answered<T>(&self, answer: impl Future<Output = T>, stage: Stage) -> Result<T, Fault> {
        let answer = tokio::time::timeout(self.reply_within, answer).await;
        answer.map_err(|_| Fault::gone(Shared::new("the server did not answer in time"), stage))
    }

    fn client(&self) -> Result<&ClientWrapper, Fault> {
        // Only `drop` takes it out.
        let object = self.object.as_ref();
        object.map(|object| &**object).ok_or_else(|| Fault::Lost(Shared::new("the connection was given up")))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let outdated = self.born != self.generation.load(Ordering::Acquire);
        if let Some(object) = self.object.take()
            && (self.open || outdated)
        {
            drop(Object::take(object));
        }
    }
}

async fn prepare(client: &ClientWrapper, queries: &[Query]) -> Result<Vec<Statement>, tokio_postgres::Error> {
    try_join_all(queries.iter().map(|query| client.prepare_cached(query.sql))).await
}

/// Sends all statements before it waits for the first answer. The COMMIT goes out last, and not at all when a
/// statement could not be put on the wire; then its answer is that of the statement. BEGIN's answer is left out unless
/// it failed.
async fn send(
    client: &ClientWrapper,
    statements: Vec<Statement>,
    queries: Vec<Query>,
    frame: Frame,
) -> Vec<Answer> {
    let mut answers: Vec<Pin<Box<MaybeDone<_>>>> = Vec::with_capacity(queries.len() + 2);
    if frame == Frame::Begin {
        answers.push(boxed(plain(client, "BEGIN")));
    }
    let with_rows = statements.into_iter().zip(queries);
    answers.extend(with_rows.map(|(statement, query)| boxed(run(client, statement, query))));
    poll_once(&mut answers).await;
    let unsent = answers.iter().any(|answer| matches!(**answer, MaybeDone::Done(Err(_))));
    if frame == Frame::Commit {
        answers.push(boxed(plain(client, if unsent { "ROLLBACK" } else { "COMMIT" })));
    }
    join_all(&mut answers).await;
    let begun = usize::from(frame == Frame::Begin);
    let mut answers: Vec<Answer> = answers
        .iter_mut()
        .map(|answer| answer.as_mut().take_output().unwrap_or_else(|| Ok(Vec::new())))
        .collect();
    if answers.iter().take(begun).all(Result::is_ok) {
        answers.drain(..begun);
    }
    answers
}

type Running<'c> = Pin<Box<dyn Future<Output = Answer> + Send + 'c>>;

fn boxed<'c>(answer: impl Future<Output = Answer> + Send + 'c) -> Pin<Box<MaybeDone<Running<'c>>>> {
    let running: Running<'c> = Box::pin(answer);
    Box::pin(maybe_done(running))
}

async fn run(client: &ClientWrapper, statement: Statement, query: Query) -> Answer {
    client.query_raw(&statement, query.parameters).await?.try_collect().await
}

async fn plain(client: &ClientWrapper, sql: &str) -> Answer {
    client.batch_execute(sql).await.map(|()| Vec::new())
}

/// Polling a statement for the first time puts it on the wire.
async fn poll_once<F: Future>(answers: &mut [Pin<Box<F>>]) {
    poll_fn(|context| {
        for answer in answers.iter_mut() {
            let _ = answer.as_mut().poll(context);
        }
        Poll::Ready(())
    })
    .await;
}

/// The answers, one a statement.
pub(super) fn exactly<const N: usize>(rows: Vec<Rows>) -> Result<[Rows; N], Fault> {
    let count = rows.len();
    rows.try_into().map_err(|_| Fault::Statement(Shared::new(format!("{count} answers to {N} statements"))))
}
