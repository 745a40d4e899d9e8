//! The doors as calls over a socket.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;
use tonic::codegen::http::Uri;
use tonic::{Code, Response, Status, Streaming};

use super::connection::{Address, CallError, Connection};
use super::{CALL_DEADLINE, CHUNK_DEADLINE, MAX_MESSAGE_BYTES};
use crate::doors::{DoorError, ReportDoor, WorkerDoor};
use crate::proto;

type WorkerCalls = proto::worker_door_client::WorkerDoorClient<Connection>;
type ReportCalls = proto::report_door_client::ReportDoorClient<Connection>;

/// HTTP/2 wants an authority; the socket makes it meaningless.
fn origin() -> Uri {
    Uri::from_static("http://jobyard")
}

/// A worker's door behind a socket.
pub struct WorkerDoorClient {
    address: Address,
}

impl WorkerDoorClient {
    /// Names the socket; the first call connects.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { address: Address::new(path.into()) }
    }

    async fn calls(&self) -> Result<WorkerCalls, DoorError> {
        let connection = self.address.connection().await?;
        Ok(WorkerCalls::with_origin(connection, origin())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES))
    }
}

#[async_trait]
impl WorkerDoor for WorkerDoorClient {
    async fn launch(&self, request: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError> {
        let mut calls = self.calls().await?;
        unproven(answered(&self.address, calls.launch(request)).await)
    }

    async fn stop(&self, request: proto::StopRequest) -> Result<proto::StopReply, DoorError> {
        let mut calls = self.calls().await?;
        unproven(answered(&self.address, calls.stop(request)).await)
    }
}

/// Once a launch or a stop has left, no status says that it did nothing: a worker refuses in its reply.
fn unproven<T>(result: Result<T, DoorError>) -> Result<T, DoorError> {
    result.map_err(|error| match error {
        DoorError::Refused { address, why } => DoorError::Unknown { address, why },
        error @ (DoorError::NotSent { .. } | DoorError::Unknown { .. }) => error,
    })
}

/// The report doors of several servers. A server that can't be reached is passed over; after a call without an
/// answer the next call goes to the next server.
pub struct ReportDoorClient {
    addresses: Vec<Address>,
    current: AtomicUsize,
}

impl ReportDoorClient {
    /// Names the servers' sockets; the first call connects.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { addresses: paths.into_iter().map(Address::new).collect(), current: AtomicUsize::new(0) }
    }

    /// The first server that can be connected to, beginning with the one that answered last.
    async fn calls(&self) -> Result<(&Address, ReportCalls), DoorError> {
        let mut error = DoorError::NotSent {
            address: "the report door".to_owned(),
            why: "no server's socket is set".to_owned(),
        };
        let first = self.current.load(Ordering::Relaxed);
        for turn in 0..self.addresses.len() {
            let at = (first + turn) % self.addresses.len();
            match self.addresses[at].connection().await {
                Ok(connection) => {
                    self.current.store(at, Ordering::Relaxed);
                    let calls = ReportCalls::with_origin(connection, origin())
                        .max_decoding_message_size(MAX_MESSAGE_BYTES)
                        .max_encoding_message_size(MAX_MESSAGE_BYTES);
                    return Ok((&self.addresses[at], calls));
                }
                Err(not_sent) => error = not_sent,
            }
        }
        Err(error)
    }

    fn noted<T>(&self, result: Result<T, DoorError>) -> Result<T, DoorError> {
        if let Err(DoorError::Unknown { .. }) = &result {
            self.current.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

#[async_trait]
impl ReportDoor for ReportDoorClient {
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.register(request)).await)
    }

    async fn heartbeat(&self, request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.heartbeat(request)).await)
    }

    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.report(request)).await)
    }

    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let (address, mut calls) = self.calls().await?;
        let chunks = self.noted(answered(address, calls.fetch_artifact(request)).await)?;
        Ok(chunks_of(chunks, address.name()))
    }

    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.missing_artifacts(request)).await)
    }

    async fn fetch_secrets(
        &self,
        request: proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.fetch_secrets(request)).await)
    }

    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let (address, mut calls) = self.calls().await?;
        let progress = Arc::new(Progress::default());
        let first = proto::StoreArtifactRequest { data: Bytes::new(), ..request };
        let piece = |data| proto::StoreArtifactRequest { data, ..Default::default() };
        let call = calls.store_artifact(outgoing(first, piece, data, Arc::clone(&progress)));
        self.noted(taken(address, &progress, call).await)
    }

    async fn find_objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError> {
        let (address, mut calls) = self.calls().await?;
        self.noted(answered(address, calls.find_objects(request)).await)
    }

    async fn fetch_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let (address, mut calls) = self.calls().await?;
        let chunks = self.noted(answered(address, calls.fetch_object(request)).await)?;
        Ok(chunks_of(chunks, address.name()))
    }

    async fn store_output(
        &self,
        request: proto::StoreOutputRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let (address, mut calls) = self.calls().await?;
        let progress = Arc::new(Progress::default());
        let first = proto::StoreOutputRequest { data: Bytes::new(), ..request };
        let piece = |data| proto::StoreOutputRequest { data, ..Default::default() };
        let call = calls.store_output(outgoing(first, piece, data, Arc::clone(&progress)));
        self.noted(taken(address, &progress, call).await)
    }
}

/// The answer to a call that sends bytes, as long as they are taken.
async fn taken<T>(
    address: &Address,
    progress: &Progress,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<(), DoorError> {
    tokio::pin!(call);
    let mut seen = 0;
    let answer = loop {
        if let Ok(answer) = timeout(CHUNK_DEADLINE, &mut call).await {
            break answer.map(|_| ()).map_err(|status| error_of(&status, address.name()));
        }
        let now = progress.pieces.load(Ordering::Relaxed);
        if now == seen {
            address.let_go().await;
            let why = format!("no bytes were taken in {} s", CHUNK_DEADLINE.as_secs());
            break Err(DoorError::Unknown { address: address.name(), why });
        }
        seen = now;
    };
    // A file that could not be read to its end was cut off: what the server said of the rest says nothing.
    match progress.broken.get() {
        Some(why) => Err(DoorError::Unknown { address: address.name(), why: why.clone() }),
        None => answer,
    }
}

/// How far an artifact on its way out is.
#[derive(Default)]
struct Progress {
    pieces: AtomicUsize,
    broken: OnceLock<String>,
}

/// The first message names the file, the others carry its bytes.
fn outgoing<M: Send + 'static>(
    first: M,
    message: impl Fn(Bytes) -> M + Send + 'static,
    data: BoxStream<'static, io::Result<Bytes>>,
    progress: Arc<Progress>,
) -> impl Stream<Item = M> + Send + 'static {
    let pieces = data.scan((), move |(), piece| {
        progress.pieces.fetch_add(1, Ordering::Relaxed);
        std::future::ready(match piece {
            Ok(data) => Some(message(data)),
            Err(error) => {
                let _ = progress.broken.set(error.to_string());
                None
            }
        })
    });
    futures_util::stream::iter([first]).chain(pieces)
}

/// The answer, within the deadline. From here on, an error leaves the call's fate open unless the other side gave a
/// reason that repeating won't change.
async fn answered<T>(
    address: &Address,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, DoorError> {
    match timeout(CALL_DEADLINE, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(error_of(&status, address.name())),
        Err(_) => {
            // It may be frozen: don't queue the next call behind this one.
            address.let_go().await;
            let why = format!("no answer in {} s", CALL_DEADLINE.as_secs());
            Err(DoorError::Unknown { address: address.name(), why })
        }
    }
}

fn chunks_of(
    chunks: Streaming<proto::ArtifactChunk>,
    address: String,
) -> BoxStream<'static, Result<Bytes, DoorError>> {
    let open = Some((chunks, address));
    futures_util::stream::unfold(open, |open| async {
        let (mut chunks, address) = open?;
        match timeout(CHUNK_DEADLINE, chunks.message()).await {
            Ok(Ok(None)) => None,
            Ok(Ok(Some(chunk))) => Some((Ok(chunk.data), Some((chunks, address)))),
            Ok(Err(status)) => Some((Err(error_of(&status, address)), None)),
            Err(_) => {
                let why = format!("no bytes in {} s", CHUNK_DEADLINE.as_secs());
                Some((Err(DoorError::Unknown { address, why }), None))
            }
        }
    })
    .boxed()
}

fn error_of(status: &Status, address: String) -> DoorError {
    let why = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    if CallError::is_not_sent(status) {
        return DoorError::NotSent { address, why };
    }
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => DoorError::Refused { address, why },
        _ => DoorError::Unknown { address, why },
    }
}
