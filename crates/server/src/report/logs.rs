//! Log bytes: small pieces inline, the rest of a request as one segment of the artifact store.

use bytes::{Bytes, BytesMut};
use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, LogVerdict};
use jobyard_model::Timestamp;
use jobyard_store::{LogAnswer, LogBody, LogChunk, LogStream, StoreError};

use super::desk::ReportDesk;
use crate::artifact_store::ArtifactStoreError;

/// Below this many bytes a chunk lies in the index itself (design §9).
const INLINE_BELOW_BYTES: usize = 4 << 10;

impl ReportDesk {
    /// One answer a chunk, in order.
    pub(super) async fn append_logs(
        &self,
        messages: Vec<proto::LogChunk>,
    ) -> Result<Vec<proto::LogAnswer>, StoreError> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = vec![answer(LogVerdict::Refused, 0); messages.len()];
        let segment = self.store_segment(&messages).await;
        let (mut places, mut chunks) = (Vec::new(), Vec::new());
        let mut segment_offset = 0;
        for (place, message) in messages.into_iter().enumerate() {
            let length = message.data.len() as u64;
            let is_inline = is_inline(&message);
            let body = match (&segment, is_inline) {
                (_, true) => LogBody::Inline(message.data.clone()),
                (Some(name), false) => LogBody::Segment { name: name.clone(), offset: segment_offset },
                (None, false) => {
                    answers[place] = answer(LogVerdict::Later, message.from);
                    continue;
                }
            };
            segment_offset += if is_inline { 0 } else { length };
            if let Some(chunk) = chunk(&message, body) {
                places.push(place);
                chunks.push(chunk);
            }
        }
        let appended = match self.store.append_logs(chunks).await {
            Ok(appended) => appended,
            Err(error) => {
                self.give_up_segment(segment, &error).await;
                return Err(error);
            }
        };
        for (place, appended) in places.into_iter().zip(appended) {
            answers[place] = match appended {
                LogAnswer::End(end) => answer(LogVerdict::End, end),
                LogAnswer::Gap(end) => answer(LogVerdict::Gap, end),
                LogAnswer::Refused => answer(LogVerdict::Refused, 0),
            };
        }
        Ok(answers)
    }

    /// Nothing refers to a segment whose index was refused, and the worker sends it again as another: without this an
    /// outage of the datastore would fill the disk. After a commit whose fate is unknown something may.
    async fn give_up_segment(&self, segment: Option<String>, error: &StoreError) {
        let Some(name) = segment.filter(|_| !matches!(error, StoreError::Unknown { .. })) else { return };
        if let Err(error) = self.artifacts.remove_segment(&name).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                name,
                "a log segment that nobody needs stays"
            );
        }
    }

    /// Writes all larger chunks of the request as one object; `None` when there are none, or it could not be written.
    async fn store_segment(&self, messages: &[proto::LogChunk]) -> Option<String> {
        let large: Vec<&Bytes> =
            messages.iter().filter(|message| !is_inline(message)).map(|message| &message.data).collect();
        if large.is_empty() {
            return None;
        }
        let mut segment = BytesMut::with_capacity(large.iter().map(|data| data.len()).sum());
        large.into_iter().for_each(|data| segment.extend_from_slice(data));
        let name = self.retention.today().segment();
        match self.artifacts.put_segment(&name, segment.freeze()).await {
            Ok(()) => Some(name),
            // Said once by the store itself; the workers keep theirs.
            Err(ArtifactStoreError::Away(_) | ArtifactStoreError::Refused(_)) => None,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a log segment could not be stored");
                None
            }
        }
    }
}

fn is_inline(message: &proto::LogChunk) -> bool {
    message.data.len() < INLINE_BELOW_BYTES
}

fn chunk(message: &proto::LogChunk, body: LogBody) -> Option<LogChunk> {
    let stream = match message.stream {
        1 => LogStream::Stdout,
        2 => LogStream::Stderr,
        _ => return None,
    };
    Some(LogChunk {
        job_id: convert::job_id(&message.job_id).ok()?,
        attempt: message.attempt,
        lease_id: convert::lease_id(&message.lease_id).ok()?,
        stream,
        from: message.from,
        to: message.from.checked_add(message.data.len() as u64)?,
        at: Timestamp(message.at),
        seq: 0,
        body,
    })
}

fn answer(verdict: LogVerdict, end: u64) -> proto::LogAnswer {
    proto::LogAnswer { verdict: verdict.into(), end }
}
