//! Bodies on their way in: never more than allowed, never for longer than allowed.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use crate::error::ApiError;

/// How much of a body may come, and how long that may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit {
    pub(crate) most_bytes: usize,
    pub(crate) within: Duration,
}

/// Reads a whole body. One that says that it is too large is refused before a byte of it is read.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: BodyLimit) -> Result<Bytes, ApiError> {
    let announced = announced_bytes(headers);
    let too_large = || ApiError::BodyTooLarge { most_bytes: limit.most_bytes as u64 };
    if announced.is_some_and(|bytes| bytes > limit.most_bytes as u64) {
        return Err(too_large());
    }
    let collect = async {
        let mut pieces = body.into_data_stream();
        let mut whole = BytesMut::with_capacity(announced.map_or(0, |bytes| bytes as usize).min(1 << 20));
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(ApiError::BodyBrokeOff)?;
            if whole.len() + piece.len() > limit.most_bytes {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    tokio::time::timeout(limit.within, collect).await.map_err(|_| ApiError::BodyTooSlow)?
}

/// The length that the sender announced.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
