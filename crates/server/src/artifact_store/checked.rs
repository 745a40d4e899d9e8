//! Bytes that are checked against the name they came under.

use bytes::Bytes;
use futures_util::StreamExt;
use jobyard_model::ArtifactHash;
use sha2::{Digest, Sha256};

use super::{ByteStream, PutError};

/// A body on its way into a store: bounded, and checked when it has ended.
pub(super) struct CheckedBody {
    named: ArtifactHash,
    body: ByteStream,
    most_bytes: u64,
    size_bytes: u64,
    hasher: Sha256,
}

impl CheckedBody {
    /// Of at most `most_bytes`, sent under this name.
    pub(super) fn new(named: ArtifactHash, body: ByteStream, most_bytes: u64) -> Self {
        Self { named, body, most_bytes, size_bytes: 0, hasher: Sha256::new() }
    }

    /// The next piece; `None` when all of it came and has the right name.
    ///
    /// # Errors
    /// What was read so far must not be kept.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, PutError> {
        let Some(piece) = self.body.next().await else {
            let hasher = std::mem::take(&mut self.hasher);
            return check(self.named, hasher).map(|()| None);
        };
        let piece = piece.map_err(PutError::BrokeOff)?;
        self.size_bytes += piece.len() as u64;
        if self.size_bytes > self.most_bytes {
            return Err(PutError::TooLarge { most_bytes: self.most_bytes });
        }
        self.hasher.update(&piece);
        Ok(Some(piece))
    }

    /// How many bytes came.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// A whole artifact in memory whose name is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedArtifact {
    hash: ArtifactHash,
    bytes: Bytes,
}

impl CheckedArtifact {
    /// Looks whether these bytes have that name.
    ///
    /// # Errors
    /// [`PutError::Mismatch`].
    pub fn new(named: ArtifactHash, bytes: Bytes) -> Result<Self, PutError> {
        check(named, Sha256::new_with_prefix(&bytes))?;
        Ok(Self { hash: named, bytes })
    }

    /// Its name.
    #[must_use]
    pub fn hash(&self) -> ArtifactHash {
        self.hash
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

fn check(named: ArtifactHash, hasher: Sha256) -> Result<(), PutError> {
    let found = ArtifactHash(hasher.finalize().into());
    if found == named { Ok(()) } else { Err(PutError::Mismatch { named, found }) }
}
