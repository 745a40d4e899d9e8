//! The two doors between our roles, as traits, so that no code knows whether the other side is a function call
//! away (`jobyard up`) or behind a socket.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use thiserror::Error;

use crate::proto;

/// Why a call got no answer.
#[derive(Debug, Error)]
pub enum DoorError {
    /// The connect failed before a byte of the request was written: the other side surely knows nothing of it.
    #[error("could not connect to {address}: {why}")]
    NotSent {
        /// Where to.
        address: String,
        /// The connect's error.
        why: String,
    },
    /// The request may or may not have arrived.
    #[error("no answer from {address}: {why}")]
    Unknown {
        /// Where to.
        address: String,
        /// What is known.
        why: String,
    },
    /// The other side answered that it can't, for a reason that repeating won't change.
    #[error("{address} refused the call: {why}")]
    Refused {
        /// Where to.
        address: String,
        /// Its words.
        why: String,
    },
}

/// The worker's door; informers push to it.
#[async_trait]
pub trait WorkerDoor: Send + Sync + 'static {
    /// Starts attempts. Idempotent by lease: one that is known is accepted again.
    async fn launch(&self, request: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError>;

    /// Stops attempts. Idempotent by lease: an unknown one leaves a tombstone.
    async fn stop(&self, request: proto::StopRequest) -> Result<proto::StopReply, DoorError>;
}

/// The server's door for workers.
#[async_trait]
pub trait ReportDoor: Send + Sync + 'static {
    /// A worker's start.
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError>;

    /// A node heartbeat.
    async fn heartbeat(&self, request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError>;

    /// What happened to attempts, and their logs.
    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError>;

    /// The bytes of an executable, by the right of a lease.
    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError>;

    /// Which of these artifacts have to be sent, by the right of a live lease.
    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError>;

    /// Keeps an artifact of a live attempt's outputs. What the request carries as data is not looked at: the bytes come
    /// in `data`. When this returns, it is durable. [`DoorError::Refused`]: it can't be kept.
    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError>;

    /// The secrets of a job, by the right of the lease of an attempt that was accepted and has not started.
    async fn fetch_secrets(
        &self,
        request: proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError>;

    /// The objects in S3 that a live attempt's job names, as they are now. [`DoorError::Refused`]: they are not there, or
    /// not to be had.
    async fn find_objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError>;

    /// The bytes of one of them from an offset on, as long as it is the one that was found.
    async fn fetch_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError>;

    /// Keeps a file of a live attempt's outputs, or their manifest, where its job says. As [`ReportDoor::store_artifact`].
    async fn store_output(
        &self,
        request: proto::StoreOutputRequest,
        data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError>;
}
