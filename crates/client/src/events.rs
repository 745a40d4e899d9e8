//! Following what changes: the event stream, resumed where it broke off.
//!
//! Owns the cursor. Invariant: **between two [`Change::Event`]s no matching event is left out, and none comes
//! twice**; where the server's history no longer reaches back, [`Change::Missed`] says so.

use futures_util::future;
use futures_util::stream::{self, BoxStream, StreamExt};
use jobyard_api::json::Event;
use jobyard_model::JobId;
use reqwest::header::{ACCEPT, HeaderName};
use reqwest::{Response, StatusCode};

use crate::outage::Outage;
use crate::sse::{Frame, Parser};
use crate::transport::Call;
use crate::{Client, Error};

const DOING: &str = "following the events";

/// Which events to follow; all that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Of one job.
    pub job_id: Option<JobId>,
    /// Of jobs with this label.
    pub label: Option<(String, String)>,
    /// Of jobs with an origin of this kind and id.
    pub origin: Option<(String, String)>,
}

/// What following gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Something happened to a job.
    Event(Box<Event>),
    /// The place we were at is older than what the server keeps: events may be missing. Read afresh what you are
    /// following; the stream goes on from now.
    Missed,
}

/// Following what changes; from [`Client::events`].
#[derive(Debug, Clone)]
pub struct Events {
    client: Client,
}

impl Events {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Follows the events that match, from now on, or from after `cursor` (the `cursor` of an event seen before).
    /// Outlasts outages of the server for [`RetryPolicy::outage_for`](crate::RetryPolicy::outage_for); ends only
    /// with an error.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// use futures_util::TryStreamExt;
    /// use jobyard_client::{Change, EventFilter};
    ///
    /// let filter = EventFilter { label: Some(("team".into(), "search".into())), ..EventFilter::default() };
    /// let mut changes = client.events().watch(filter, None);
    /// while let Some(change) = changes.try_next().await? {
    ///     match change {
    ///         Change::Event(event) => println!("{} is {}", event.job_id, event.to),
    ///         Change::Missed => println!("read everything afresh"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(
        &self,
        filter: EventFilter,
        cursor: Option<String>,
    ) -> BoxStream<'static, Result<Change, Error>> {
        let signals = self.signals(filter, cursor);
        signals
            .filter_map(|signal| {
                future::ready(match signal {
                    Ok(Signal::Opened) => None,
                    Ok(Signal::Change(change)) => Some(Ok(change)),
                    Err(error) => Some(Err(error)),
                })
            })
            .boxed()
    }

    /// Like [`watch`](Self::watch), and also says when the stream stands: what is read after that, and followed from
    /// there, has no gap.
    pub(crate) fn signals(
        &self,
        filter: EventFilter,
        cursor: Option<String>,
    ) -> BoxStream<'static, Result<Signal, Error>> {
        let watch = Watch {
            client: self.client.clone(),
            filter,
            cursor,
            response: None,
            parser: Parser::default(),
            outage: Outage::default(),
        };
        stream::try_unfold(watch, |mut watch| async move { Ok(Some((watch.next().await?, watch))) }).boxed()
    }
}

/// What happened to an event stream.
#[derive(Debug)]
pub(crate) enum Signal {
    /// It stands, for the first time or again.
    Opened,
    /// It said something.
    Change(Change),
}

struct Watch {
    client: Client,
    filter: EventFilter,
    cursor: Option<String>,
    response: Option<Response>,
    parser: Parser,
    outage: Outage,
}

impl Watch {
    async fn next(&mut self) -> Result<Signal, Error> {
        loop {
            while let Some(frame) = self.parser.next() {
                if let Some(event) = self.take(frame)? {
                    return Ok(Signal::Change(Change::Event(event)));
                }
            }
            if self.response.is_some() {
                self.read().await?;
            } else if let Some(signal) = self.open().await? {
                return Ok(signal);
            }
        }
    }

    /// Notes the frame's place and reads its event, if it has one.
    fn take(&mut self, frame: Frame) -> Result<Option<Box<Event>>, Error> {
        if frame.id.is_some() {
            self.cursor = frame.id;
        }
        // `start` only says where the stream begins, which its id said already; kinds we don't know are newer than us.
        if frame.event != "change" {
            return Ok(None);
        }
        let event = serde_json::from_str(&frame.data)
            .map_err(|error| self.client.answer(DOING, format!("an event is not one: {error}")))?;
        Ok(Some(Box::new(event)))
    }

    async fn open(&mut self) -> Result<Option<Signal>, Error> {
        let pair = |(name, value): &(String, String)| format!("{name}:{value}");
        let mut call = Call::get(DOING, "/events")
            .header(ACCEPT, "text/event-stream")
            .query_if("job", self.filter.job_id)
            .query_if("label", self.filter.label.as_ref().map(pair))
            .query_if("origin", self.filter.origin.as_ref().map(pair));
        if let Some(cursor) = &self.cursor {
            call = call.header(HeaderName::from_static("last-event-id"), cursor.clone());
        }
        match self.client.open(&call).await {
            Ok(response) => {
                self.parser = Parser::default();
                self.response = Some(response);
                Ok(Some(Signal::Opened))
            }
            Err(Error::Problem(problem))
                if problem.status == StatusCode::GONE.as_u16() && self.cursor.is_some() =>
            {
                self.cursor = None;
                Ok(Some(Signal::Change(Change::Missed)))
            }
            Err(error) => {
                let policy = self.client.inner().retry_policy;
                self.outage.bear(&policy, error).await.map(|()| None)
            }
        }
    }

    /// Reads one piece. A broken, ended or silent stream is closed, to be opened again from the cursor.
    async fn read(&mut self) -> Result<(), Error> {
        let Some(response) = &mut self.response else { return Ok(()) };
        let idle = self.client.inner().timeouts.idle;
        if let Ok(Ok(Some(piece))) = tokio::time::timeout(idle, response.chunk()).await {
            self.outage.over();
            return self
                .parser
                .push(&piece)
                .map_err(|_| self.client.answer(DOING, "an event without an end".to_owned()));
        }
        self.response = None;
        let policy = self.client.inner().retry_policy;
        self.outage.pause(&policy).await;
        Ok(())
    }
}
