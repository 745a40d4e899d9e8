//! The doors as servers on a socket.

use std::io;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_MESSAGE_BYTES, socket};
use crate::doors::{DoorError, ReportDoor, WorkerDoor};
use crate::proto;
use crate::proto::report_door_server::ReportDoorServer;
use crate::proto::worker_door_server::WorkerDoorServer;

/// Serves a worker's door until `shutdown`, then finishes the calls in hand.
///
/// # Errors
/// When the listener fails.
pub async fn serve_worker_door(
    listener: UnixListener,
    door: Arc<dyn WorkerDoor>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let service = WorkerDoorServer::new(Served(door))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    transport().add_service(service).serve_with_incoming_shutdown(ours(listener), shutdown).await
}

/// Serves the report door until `shutdown`, then finishes the calls in hand.
///
/// # Errors
/// When the listener fails.
pub async fn serve_report_door(
    listener: UnixListener,
    door: Arc<dyn ReportDoor>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let service = ReportDoorServer::new(Served(door))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    transport().add_service(service).serve_with_incoming_shutdown(ours(listener), shutdown).await
}

fn transport() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20)
}

/// Connections of this user and of root; others are closed at once.
fn ours(listener: UnixListener) -> impl Stream<Item = io::Result<UnixStream>> {
    UnixListenerStream::new(listener).filter(|accepted| {
        let keep = accepted.as_ref().map_or(true, socket::is_ours);
        if !keep {
            tracing::warn!("closed a connection to a door: its user is neither ours nor root");
        }
        std::future::ready(keep)
    })
}

struct Served<D: ?Sized>(Arc<D>);

#[async_trait]
impl proto::worker_door_server::WorkerDoor for Served<dyn WorkerDoor> {
    async fn launch(
        &self,
        request: Request<proto::LaunchRequest>,
    ) -> Result<Response<proto::LaunchReply>, Status> {
        self.0.launch(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn stop(&self, request: Request<proto::StopRequest>) -> Result<Response<proto::StopReply>, Status> {
        self.0.stop(request.into_inner()).await.map(Response::new).map_err(status_of)
    }
}

#[async_trait]
impl proto::report_door_server::ReportDoor for Served<dyn ReportDoor> {
    type FetchArtifactStream = BoxStream<'static, Result<proto::ArtifactChunk, Status>>;
    type FetchObjectStream = BoxStream<'static, Result<proto::ArtifactChunk, Status>>;

    async fn register(
        &self,
        request: Request<proto::RegisterRequest>,
    ) -> Result<Response<proto::RegisterReply>, Status> {
        self.0.register(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn heartbeat(
        &self,
        request: Request<proto::HeartbeatRequest>,
    ) -> Result<Response<proto::HeartbeatReply>, Status> {
        self.0.heartbeat(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn report(
        &self,
        request: Request<proto::ReportRequest>,
    ) -> Result<Response<proto::ReportReply>, Status> {
        self.0.report(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn fetch_artifact(
        &self,
        request: Request<proto::FetchArtifactRequest>,
    ) -> Result<Response<Self::FetchArtifactStream>, Status> {
        let chunks = self.0.fetch_artifact(request.into_inner()).await.map_err(status_of)?;
        let chunks = chunks.map(|chunk| chunk.map(|data| proto::ArtifactChunk { data }).map_err(status_of));
        Ok(Response::new(chunks.boxed()))
    }

    async fn missing_artifacts(
        &self,
        request: Request<proto::MissingArtifactsRequest>,
    ) -> Result<Response<proto::MissingArtifactsReply>, Status> {
        self.0.missing_artifacts(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn fetch_secrets(
        &self,
        request: Request<proto::FetchSecretsRequest>,
    ) -> Result<Response<proto::FetchSecretsReply>, Status> {
        self.0.fetch_secrets(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn store_artifact(
        &self,
        request: Request<Streaming<proto::StoreArtifactRequest>>,
    ) -> Result<Response<proto::StoreArtifactReply>, Status> {
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| Status::invalid_argument("it names nothing"))?;
        let data = messages.map(|message| match message {
            Ok(message) => Ok(message.data),
            Err(status) => Err(io::Error::other(status)),
        });
        self.0.store_artifact(first, data.boxed()).await.map_err(status_of)?;
        Ok(Response::new(proto::StoreArtifactReply {}))
    }

    async fn find_objects(
        &self,
        request: Request<proto::FindObjectsRequest>,
    ) -> Result<Response<proto::FindObjectsReply>, Status> {
        self.0.find_objects(request.into_inner()).await.map(Response::new).map_err(status_of)
    }

    async fn fetch_object(
        &self,
        request: Request<proto::FetchObjectRequest>,
    ) -> Result<Response<Self::FetchObjectStream>, Status> {
        let chunks = self.0.fetch_object(request.into_inner()).await.map_err(status_of)?;
        let chunks = chunks.map(|chunk| chunk.map(|data| proto::ArtifactChunk { data }).map_err(status_of));
        Ok(Response::new(chunks.boxed()))
    }

    async fn store_output(
        &self,
        request: Request<Streaming<proto::StoreOutputRequest>>,
    ) -> Result<Response<proto::StoreArtifactReply>, Status> {
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| Status::invalid_argument("it names nothing"))?;
        let data = messages.map(|message| match message {
            Ok(message) => Ok(message.data),
            Err(status) => Err(io::Error::other(status)),
        });
        self.0.store_output(first, data.boxed()).await.map_err(status_of)?;
        Ok(Response::new(proto::StoreArtifactReply {}))
    }
}

fn status_of(error: DoorError) -> Status {
    match error {
        DoorError::Refused { why, .. } => Status::failed_precondition(why),
        // To our caller neither proves that nothing happened: this side did receive the call.
        DoorError::NotSent { why, .. } | DoorError::Unknown { why, .. } => Status::unavailable(why),
    }
}
