//! One call: sent, repeated where that does no harm, its answer read.
//!
//! Owns timeouts, repetition and the reading of problem documents. Invariant: **a call marked [`Repeat::Unsafe`] is
//! sent once.**

use std::error::Error as StdError;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use jobyard_api::json::Problem;
use reqwest::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::retry::Repeat;
use crate::{Client, Error};

/// An answer longer than this is not one of ours (10,000 jobs in a page of 500 are far below).
const LONGEST_ANSWER_BYTES: usize = 256 << 20;

/// What all calls but those about the server's health lie below.
const API: &str = "/api/v1";

type Source = Box<dyn StdError + Send + Sync>;

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    doing: &'static str,
    method: Method,
    /// What the path lies below.
    base: &'static str,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, String)>,
    body: Option<Bytes>,
    content_type: &'static str,
    repeat: Repeat,
}

impl Call {
    /// A call that changes nothing, so that it may be repeated. `path` lies below `/api/v1`.
    pub(crate) fn get(doing: &'static str, path: impl Into<String>) -> Self {
        Self::new(doing, Method::GET, path.into(), Repeat::Safe)
    }

    /// As [`get`](Self::get), of a path that lies outside `/api/v1`.
    pub(crate) fn get_outside(doing: &'static str, path: &'static str) -> Self {
        Self { base: "", ..Self::get(doing, path) }
    }

    /// A changing call that says whether it may be repeated.
    pub(crate) fn post(doing: &'static str, path: impl Into<String>, repeat: Repeat) -> Self {
        Self::new(doing, Method::POST, path.into(), repeat)
    }

    /// A call whose answer has no body, not even when it is a refusal.
    pub(crate) fn head(doing: &'static str, path: impl Into<String>) -> Self {
        Self::new(doing, Method::HEAD, path.into(), Repeat::Safe)
    }

    /// A call of another method.
    pub(crate) fn new(doing: &'static str, method: Method, path: String, repeat: Repeat) -> Self {
        let (query, headers, content_type) = (Vec::new(), Vec::new(), "application/json");
        Self { doing, method, base: API, path, query, headers, body: None, content_type, repeat }
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn query_if(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value.to_string()),
            None => self,
        }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// JSON that is written already.
    pub(crate) fn body(mut self, body: Bytes) -> Self {
        self.body = Some(body);
        self
    }

    /// Bytes that are no JSON.
    pub(crate) fn octets(self, body: Bytes) -> Self {
        Self { content_type: "application/octet-stream", ..self.body(body) }
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let text = serde_json::to_vec(body).map_err(|error| Error::Setup(Box::new(error)))?;
        self.body = Some(Bytes::from(text));
        Ok(self)
    }
}

/// How one sending failed.
enum Failure {
    /// It is final.
    Final(Error),
    /// No answer came.
    Unreachable(Source),
    /// The server asks for patience, maybe for a certain time.
    Busy { problem: Box<Problem>, after: Option<Duration> },
}

/// The failures of one call so far.
struct Patience {
    started: Instant,
    repetition: u32,
}

impl Patience {
    fn new() -> Self {
        Self { started: Instant::now(), repetition: 0 }
    }

    /// Returns when the call is to be sent again, and fails when it isn't.
    async fn bear(&mut self, client: &Client, call: &Call, failure: Failure) -> Result<(), Error> {
        let policy = client.inner().retry_policy;
        let backoff = policy.delay(self.repetition, rand::random());
        let (delay, limit) = match &failure {
            Failure::Final(_) => return Err(client.give_up(call.doing, failure)),
            Failure::Unreachable(_) => (backoff, policy.unreachable_for),
            Failure::Busy { after, .. } => {
                (after.map_or(backoff, |after| after.max(backoff)), policy.busy_for)
            }
        };
        if call.repeat == Repeat::Unsafe || self.started.elapsed() + delay > limit {
            return Err(client.give_up(call.doing, failure));
        }
        tokio::time::sleep(delay).await;
        self.repetition += 1;
        Ok(())
    }
}

impl Client {
    /// Sends and reads the JSON of the answer.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let (_, body) = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|error| self.answer(call.doing, error.to_string()))
    }

    /// Sends a call whose answer has no content of interest; gives its status.
    pub(crate) async fn confirm(&self, call: &Call) -> Result<StatusCode, Error> {
        self.send(call).await.map(|(status, _)| status)
    }

    async fn send(&self, call: &Call) -> Result<(StatusCode, Bytes), Error> {
        let mut patience = Patience::new();
        loop {
            let sending = async {
                let response = self.send_once(call).await?;
                Ok((response.status(), self.read_all(call, response).await?))
            };
            match self.in_time(sending).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => patience.bear(self, call, failure).await?,
            }
        }
    }

    /// Sends and gives the answer as soon as its head is there; the body is the caller's to read.
    pub(crate) async fn open(&self, call: &Call) -> Result<Response, Error> {
        let mut patience = Patience::new();
        loop {
            match self.in_time(self.send_once(call)).await {
                Ok(response) => return Ok(response),
                Err(failure) => patience.bear(self, call, failure).await?,
            }
        }
    }

    /// Sends a request whose body can be read only once.
    pub(crate) async fn send_stream(
        &self,
        doing: &'static str,
        request: RequestBuilder,
    ) -> Result<Response, Error> {
        match self.judge(doing, request.send().await).await {
            Ok(response) => Ok(response),
            Err(failure) => Err(self.give_up(doing, failure)),
        }
    }

    /// A request for a path below `/api/v1`, with our token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_below(API, method, path)
    }

    fn request_below(&self, base: &str, method: Method, path: &str) -> RequestBuilder {
        let inner = self.inner();
        let request = inner.http.request(method, format!("{}{base}{path}", inner.url));
        match &inner.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        }
    }

    pub(crate) fn answer(&self, doing: &'static str, why: String) -> Error {
        Error::Answer { url: self.url().to_owned(), doing, why }
    }

    pub(crate) fn unreachable(&self, doing: &'static str, source: impl Into<Source>) -> Error {
        Error::Unreachable { url: self.url().to_owned(), doing, source: source.into() }
    }

    fn give_up(&self, doing: &'static str, failure: Failure) -> Error {
        match failure {
            Failure::Final(error) => error,
            Failure::Unreachable(source) => self.unreachable(doing, source),
            Failure::Busy { problem, .. } => Error::Problem(problem),
        }
    }

    async fn send_once(&self, call: &Call) -> Result<Response, Failure> {
        let mut request = self.request_below(call.base, call.method.clone(), &call.path);
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, call.content_type).body(body.clone());
        }
        let mut request = request.build().map_err(|error| Failure::Final(Error::Setup(Box::new(error))))?;
        if !call.query.is_empty() {
            request.url_mut().query_pairs_mut().extend_pairs(&call.query);
        }
        self.judge(call.doing, self.inner().http.execute(request).await).await
    }

    /// Tells success, refusal, busy and silence apart.
    async fn judge(
        &self,
        doing: &'static str,
        answer: Result<Response, reqwest::Error>,
    ) -> Result<Response, Failure> {
        let response = answer.map_err(|error| Failure::Unreachable(Box::new(error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after = retry_after(&response);
        let body = read_bounded(response).await.map_err(Failure::Unreachable)?;
        let problem = self.problem(doing, status, &body);
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => match problem {
                Ok(problem) => Err(Failure::Busy { problem: Box::new(problem), after }),
                Err(error) => Err(Failure::Unreachable(Box::new(error))),
            },
            _ => Err(Failure::Final(
                problem.map_or_else(|error| error, |problem| Error::Problem(Box::new(problem))),
            )),
        }
    }

    /// The problem document of a refusal. Other answers come from something that stands in front of a server, or
    /// from something else altogether.
    fn problem(&self, doing: &'static str, status: StatusCode, body: &[u8]) -> Result<Problem, Error> {
        if body.is_empty() {
            return Ok(bodiless(status));
        }
        serde_json::from_slice(body).map_err(|_| {
            let shown: String = String::from_utf8_lossy(body).chars().take(200).collect();
            self.answer(doing, format!("status {status} without a problem document: {shown:?}"))
        })
    }

    async fn read_all(&self, call: &Call, response: Response) -> Result<Bytes, Failure> {
        // A changing call was carried out once its status is here, so its broken answer isn't a reason to repeat.
        let broken = |source| match call.repeat {
            Repeat::Safe => Failure::Unreachable(source),
            Repeat::Unsafe => Failure::Final(self.unreachable(call.doing, source)),
        };
        read_bounded(response).await.map_err(broken)
    }

    async fn in_time<T>(&self, sending: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = self.inner().timeouts.call;
        tokio::time::timeout(limit, sending)
            .await
            .unwrap_or_else(|_| Err(Failure::Unreachable(format!("no answer within {limit:?}").into())))
    }
}

/// What a refusal without a body says: the answer to a `HEAD`.
fn bodiless(status: StatusCode) -> Problem {
    let title = status.canonical_reason().unwrap_or("Refused");
    Problem {
        type_url: "about:blank".to_owned(),
        title: title.to_owned(),
        status: status.as_u16(),
        code: title.to_lowercase().replace([' ', '-'], "_"),
        detail: format!("the server answered {status}"),
        errors: Vec::new(),
    }
}

/// A name as one part of a path.
pub(crate) fn path_part(name: &str) -> String {
    name.bytes().fold(String::new(), |mut path, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
        path
    })
}

async fn read_bounded(mut response: Response) -> Result<Bytes, Source> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + piece.len() > LONGEST_ANSWER_BYTES {
            return Err("the answer is longer than any of ours".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// `Retry-After` in seconds; a date is not something our servers send.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
