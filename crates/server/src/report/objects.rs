//! What a job names in S3, read and written for its live attempt: its executable, its input, its outputs.

use std::io;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::DoorError;
use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, ObjectUse};
use jobyard_model::{ArtifactHash, BinaryUrl, InputPath, S3Url};
use jobyard_store::LeasedAttempt;
use jobyard_tree::check_path;
use sha2::{Digest, Sha256};

use super::artifacts::{broken, refused};
use super::desk::{ReportDesk, malformed, unanswered};
use crate::s3::{FoundObject, S3Access, S3Error};

/// What the manifest of outputs is called. It is written last.
const MANIFEST: &str = "_manifest.json";

impl ReportDesk {
    /// What is there now, some of it at a time.
    pub(super) async fn objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError> {
        let leased = self.leased(&request.lease_id).await?;
        let place = self.read_by(&leased, request.r#use())?;
        let after = Some(request.after.as_str()).filter(|after| !after.is_empty());
        let page = self.buckets.find(&place, after).await.map_err(|error| of_s3(&place, &error))?;
        Ok(proto::FindObjectsReply {
            objects: page.objects.into_iter().map(object_message).collect(),
            next: page.next.unwrap_or_default(),
        })
    }

    /// The bytes of one of those objects, from an offset on.
    pub(super) async fn open_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let leased = self.leased(&request.lease_id).await?;
        let named = self.read_by(&leased, request.r#use())?;
        let place = match named.is_prefix() {
            true => named.below(&request.path).map_err(|error| refused(&error.to_string()))?,
            false => named,
        };
        if place.is_prefix() || request.etag.is_empty() {
            return Err(refused("an object is named by its path and its tag"));
        }
        let opened = self.buckets.open(&place, &request.etag, request.offset).await;
        let bytes = opened.map_err(|error| of_s3(&place, &error))?;
        Ok(bytes.map(|piece| piece.map_err(|error| broken(&error))).boxed())
    }

    /// Keeps a file, or at last the manifest, of a live attempt's outputs.
    pub(super) async fn keep_output(
        &self,
        request: &proto::StoreOutputRequest,
        mut data: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let leased = self.leased(&request.lease_id).await?;
        let hash = convert::artifact_hash(&request.sha256).map_err(|error| malformed(&error))?;
        let place = self.written_by(&leased, &request.path, request.manifest)?;
        let fault = |error| of_s3(&place, &error);
        let mut upload = self.buckets.upload(&place).map_err(fault)?;
        let (mut hasher, mut size_bytes) = (Sha256::new(), 0_u64);
        while let Some(piece) = data.next().await {
            let piece = piece.map_err(|error| broken(&error))?;
            size_bytes += piece.len() as u64;
            if size_bytes > self.artifact_bytes {
                return Err(refused(&format!("a file has at most {} bytes", self.artifact_bytes)));
            }
            hasher.update(&piece);
            upload.write(piece).await.map_err(fault)?;
        }
        let found = ArtifactHash(hasher.finalize().into());
        if found != hash {
            return Err(refused(&format!("{} changed while it was sent", request.path)));
        }
        if request.manifest {
            // The files took their time: another attempt may have taken its place.
            self.leased(&request.lease_id).await?;
        }
        upload.finish().await.map_err(fault)
    }

    async fn leased(&self, lease_id: &[u8]) -> Result<LeasedAttempt, DoorError> {
        let lease_id = convert::lease_id(lease_id).map_err(|error| malformed(&error))?;
        let leased = self.store.leased_attempt(lease_id).await.map_err(|error| unanswered(&error))?;
        leased.ok_or_else(|| refused("the lease is not live: a later attempt may have taken its place"))
    }

    /// The place that the job reads.
    fn read_by(&self, leased: &LeasedAttempt, used_as: ObjectUse) -> Result<S3Url, DoorError> {
        let named = match used_as {
            ObjectUse::Executable => match &leased.spec.binary {
                Some(BinaryUrl::S3(place)) => Some(place),
                Some(BinaryUrl::Artifact(_) | BinaryUrl::File(_)) | None => None,
            },
            ObjectUse::Input => match &leased.spec.input_path {
                Some(InputPath::S3(place)) => Some(place),
                Some(InputPath::Stored(_)) | None => None,
            },
        };
        let place = named.ok_or_else(|| refused("the job names nothing of this kind in S3"))?;
        self.allowed(leased, place, S3Access::Read)?;
        Ok(place.clone())
    }

    /// Where a file of its outputs goes: below a folder that no other attempt has.
    fn written_by(&self, leased: &LeasedAttempt, path: &str, is_manifest: bool) -> Result<S3Url, DoorError> {
        let place = leased.spec.output_path.as_ref();
        let place = place.ok_or_else(|| refused("the job names no place for its outputs"))?.as_prefix();
        self.allowed(leased, &place, S3Access::ReadWrite)?;
        check_path(path).map_err(|error| refused(&error.to_string()))?;
        if is_manifest != (path == MANIFEST) {
            return Err(refused("`_manifest.json` is the name of the manifest itself"));
        }
        let below = format!("{}/{}/{path}", leased.job_id, leased.attempt);
        place.below(&below).map_err(|error| refused(&format!("{path}: {error}")))
    }

    fn allowed(&self, leased: &LeasedAttempt, place: &S3Url, access: S3Access) -> Result<(), DoorError> {
        self.buckets.check(&leased.spec.owner, place, access).map_err(|why| refused(&why))
    }
}

fn object_message(object: FoundObject) -> proto::FoundObject {
    proto::FoundObject { path: object.path, size: object.size_bytes, etag: object.etag }
}

/// What is not there, or not open to us, is the user's to mend; the rest is ours.
fn of_s3(place: &S3Url, error: &S3Error) -> DoorError {
    match error {
        S3Error::Missing | S3Error::Refused(_) => refused(&format!("{place}: {error}")),
        S3Error::Changed | S3Error::OutOfRange | S3Error::Misconfigured(_) | S3Error::Away(_) => {
            tracing::warn!(%error, %place, "S3 did not do what a job needs");
            DoorError::Unknown { address: "report door".to_owned(), why: format!("{place}: {error}") }
        }
    }
}
