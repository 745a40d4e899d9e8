//! How requests reach an S3 server: hyper with rustls, since `object_store` would otherwise have `reqwest` carry a TLS
//! stack and its certificates into every command that speaks to our own API.
//!
//! Owns the connections and every time limit of a single request. Which requests are repeated is `object_store`'s.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector as Connector, HttpError, HttpErrorKind, HttpRequest,
    HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::S3Times;

/// A request's body is given as much more time as it takes at this rate.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 << 10;
/// S3 closes connections that are idle for longer.
const IDLE_FOR: Duration = Duration::from_secs(15);

/// Makes connections to one endpoint.
#[derive(Debug)]
pub(super) struct Transport {
    pub(super) times: S3Times,
    /// Whether there is TLS to be done, and certificates to be read.
    pub(super) is_https: bool,
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<HttpConnector>, HttpRequestBody>,
    answer_within: Duration,
}

impl Connector for Transport {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let generic = |source| object_store::Error::Generic { store: "S3", source };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.times.connect));
        let provider = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new();
        let builder = if self.is_https {
            builder.with_provider_and_native_roots(provider).map_err(|error| generic(error.into()))?
        } else {
            builder.with_tls_config(without_roots(provider).map_err(|error| generic(error.into()))?)
        };
        let is_http_allowed =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let builder = if is_http_allowed { builder.https_or_http() } else { builder.https_only() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .build(builder.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(Service { client, answer_within: self.times.answer }))
    }
}

fn without_roots(provider: CryptoProvider) -> Result<rustls::ClientConfig, rustls::Error> {
    let builder = rustls::ClientConfig::builder_with_provider(provider.into());
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let bytes = request.body().content_length() as u64;
        let within = self.answer_within + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND);
        let answer = timeout(within, self.client.request(request)).await;
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
                return Err(HttpError::new(kind, error));
            }
            Err(_) => return Err(silent(within)),
        };
        let (head, body) = response.into_parts();
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(InTime::new(body, self.answer_within))))
    }
}

fn silent(within: Duration) -> HttpError {
    let why = format!("no answer in {} s", within.as_secs_f64());
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, why))
}

/// What a request whose connection was made failed by. A connection that closed in between is tried again.
fn kind_of(error: &(dyn Error + 'static)) -> HttpErrorKind {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_closed() || error.is_incomplete_message() || error.is_canceled())
        {
            return HttpErrorKind::Request;
        }
        if error.is::<io::Error>() {
            return HttpErrorKind::Interrupted;
        }
        source = error.source();
    }
    HttpErrorKind::Unknown
}

/// A body that fails when nothing comes for a while.
struct InTime {
    body: Incoming,
    within: Duration,
    silence: Pin<Box<Sleep>>,
}

impl InTime {
    fn new(body: Incoming, within: Duration) -> Self {
        Self { body, within, silence: Box::pin(sleep(within)) }
    }
}

impl Body for InTime {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let next = Instant::now() + self.within;
            self.silence.as_mut().reset(next);
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| HttpError::new(kind_of(&error), error))),
            );
        }
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(Some(Err(silent(self.within))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
