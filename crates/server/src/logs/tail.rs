//! The last lines of a log: looking back from its end, more each time, up to a bound.

use std::collections::VecDeque;

use jobyard_store::LogChunk;
use jobyard_store::logs::LogQuery;

use super::reader::bytes_of;
use crate::error::ApiError;
use crate::server::Server;

/// How many of the newest chunks are looked at, one after the other, until the lines are found.
const LOOKS: [u32; 3] = [64, 512, 4_096];

/// Where the last lines begin.
pub(super) struct Tail {
    /// The chunks that hold them, in order of arrival.
    pub(super) chunks: VecDeque<LogChunk>,
    /// Bytes of the first one that come before.
    pub(super) skip: u64,
}

/// Finds the last `lines` lines; fewer when the log has fewer, or when they lie further back than the last 4,096
/// chunks.
pub(super) async fn find(server: &Server, query: LogQuery, lines: usize) -> Result<Tail, ApiError> {
    if lines == 0 {
        let newest = LogQuery { newest: true, limit: 1, ..query };
        let chunks: VecDeque<_> = server.store().log_chunks(&newest).await?.into();
        let skip = chunks.front().map_or(0, |chunk| chunk.to - chunk.from);
        return Ok(Tail { chunks, skip });
    }
    let mut found = Tail { chunks: VecDeque::new(), skip: 0 };
    for limit in LOOKS {
        let newest = LogQuery { newest: true, limit, ..query.clone() };
        let chunks = server.store().log_chunks(&newest).await?;
        let is_all = chunks.len() < limit as usize;
        let begin = last_lines(server, &chunks, lines).await?;
        let is_found = begin.is_some();
        let (index, skip) = begin.unwrap_or((0, 0));
        found = Tail { chunks: chunks.into_iter().skip(index).collect(), skip };
        if is_found || is_all {
            break;
        }
    }
    Ok(found)
}

/// The chunk, and the byte in it, that the last `lines` lines begin with; `None` when there are fewer. A line end at
/// the very end begins no further line.
async fn last_lines(
    server: &Server,
    chunks: &[LogChunk],
    lines: usize,
) -> Result<Option<(usize, u64)>, ApiError> {
    let mut ends_seen = 0;
    let mut at_end = true;
    for (index, chunk) in chunks.iter().enumerate().rev() {
        let bytes = match bytes_of(server, &chunk.body, 0, chunk.to - chunk.from).await {
            // There is nothing before it either.
            Err(ApiError::LogDropped { .. }) => return Ok(None),
            bytes => bytes?,
        };
        for (offset, byte) in bytes.iter().enumerate().rev() {
            if *byte == b'\n' && !at_end {
                ends_seen += 1;
                if ends_seen == lines {
                    return Ok(Some((index, offset as u64 + 1)));
                }
            }
            at_end = false;
        }
    }
    Ok(None)
}
