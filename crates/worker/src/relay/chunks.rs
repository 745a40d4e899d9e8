//! The pieces of a log that go into one call.

use bytes::{Bytes, BytesMut};
use jobyard_handoff::log::{Record, Stream};

/// The most bytes of one chunk.
const MAX_CHUNK_BYTES: usize = 256 << 10;
/// From this many chunks of one attempt in one call on, the order between the two streams is given up to keep their
/// number down.
pub(super) const MANY_CHUNKS: usize = 32;

/// Consecutive bytes of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) stream: Stream,
    /// Offset in the stream.
    pub(super) from: u64,
    /// When the sidecar read the first byte, unix ms.
    pub(super) at_ms: u64,
    pub(super) data: Bytes,
}

/// What has been read for one call.
#[derive(Default)]
pub(super) struct Gathered {
    chunks: Vec<Draft>,
    bytes: usize,
}

struct Draft {
    stream: Stream,
    from: u64,
    at_ms: u64,
    data: BytesMut,
}

impl Draft {
    fn finish(self) -> Chunk {
        let Self { stream, from, at_ms, data } = self;
        Chunk { stream, from, at_ms, data: data.freeze() }
    }
}

impl Gathered {
    /// Of all chunks.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn finish(self) -> Vec<Chunk> {
        self.chunks.into_iter().map(Draft::finish).collect()
    }

    /// Adds a record that begins at `from` of its stream, but for what lies before `taken`.
    pub(super) fn add(&mut self, record: &Record<'_>, from: u64, taken: u64) {
        let known = usize::try_from(taken.saturating_sub(from)).unwrap_or(usize::MAX);
        let Some(data) = record.bytes.get(known..).filter(|data| !data.is_empty()) else { return };
        self.bytes += data.len();
        let fits = |draft: &&mut Draft| {
            draft.stream == record.stream && draft.data.len() + data.len() <= MAX_CHUNK_BYTES
        };
        let many = self.chunks.len() >= MANY_CHUNKS;
        let last = if many {
            self.chunks.iter_mut().rev().find(|draft| draft.stream == record.stream)
        } else {
            self.chunks.last_mut()
        };
        match last.filter(fits) {
            Some(draft) => draft.data.extend_from_slice(data),
            None => self.chunks.push(Draft {
                stream: record.stream,
                from: from + known as u64,
                at_ms: record.at_ms,
                data: data.into(),
            }),
        }
    }
}
