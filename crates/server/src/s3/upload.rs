//! A stream on its way into an object.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::error::{S3Error, of_s3};

/// The least that S3 takes as a part, and so the least memory: one part is sent while the next one is filled. Objects of
/// up to 10,000 of them fit.
const PART_BYTES: usize = 5 << 20;

/// An object in the making; what was sent of it is given up when this is dropped unfinished. Holds at most two parts
/// in memory. What fits into one part is sent when it is finished, and not before.
pub(crate) struct Upload {
    bucket: Arc<AmazonS3>,
    key: Path,
    buffer: BytesMut,
    parts: Option<Parts>,
}

struct Parts {
    upload: Box<dyn MultipartUpload>,
    sending: Option<JoinHandle<object_store::Result<()>>>,
}

impl Upload {
    /// Sends nothing yet.
    pub(crate) fn new(bucket: Arc<AmazonS3>, key: Path) -> Self {
        Self { bucket, key, buffer: BytesMut::new(), parts: None }
    }

    /// Takes the next bytes.
    pub(crate) async fn write(&mut self, mut piece: Bytes) -> Result<(), S3Error> {
        while self.buffer.len() + piece.len() > PART_BYTES {
            let fitting = piece.split_to(PART_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(&fitting);
            self.send_part().await?;
        }
        self.buffer.extend_from_slice(&piece);
        Ok(())
    }

    /// Whether it is so large that it goes up in parts.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Gives it its name. When this returns, it is durable.
    pub(crate) async fn finish(mut self) -> Result<(), S3Error> {
        if self.parts.is_none() {
            let payload = PutPayload::from_bytes(self.buffer.split().freeze());
            return self.bucket.put(&self.key, payload).await.map(|_| ()).map_err(of_s3);
        }
        if !self.buffer.is_empty() {
            self.send_part().await?;
        }
        if let Some(parts) = &mut self.parts {
            parts.sent().await?;
            parts.upload.complete().await.map_err(of_s3)?;
        }
        // From here on there is nothing to give up.
        self.parts = None;
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), S3Error> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => {
                let upload = self.bucket.put_multipart(&self.key).await.map_err(of_s3)?;
                none.insert(Parts { upload, sending: None })
            }
        };
        parts.sent().await?;
        let part = parts.upload.put_part(PutPayload::from_bytes(self.buffer.split().freeze()));
        parts.sending = Some(tokio::spawn(part));
        Ok(())
    }
}

impl Parts {
    /// Until the part on its way has arrived.
    async fn sent(&mut self) -> Result<(), S3Error> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        // Taken only when it is over, so that giving up finds it.
        let over = sending.await;
        self.sending = None;
        match over {
            Ok(sent) => sent.map_err(of_s3),
            // Only a panic in there, or the end of everything, comes this way.
            Err(error) => Err(S3Error::Away(error.to_string())),
        }
    }

    async fn give_up(mut self, key: Path) {
        if let Some(sending) = self.sending.take() {
            // A part that arrives after the upload was given up would stay.
            let _arrived_or_not = sending.await;
        }
        if let Err(error) = self.upload.abort().await {
            let error = of_s3(error);
            tracing::warn!(%error, %key, "the parts of an unfinished upload stay, for the bucket's lifecycle rule");
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        // Without a runtime the process is at its end.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(parts.give_up(self.key.clone()));
        }
    }
}
