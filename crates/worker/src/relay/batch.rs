//! One call of the report door in the making.

use bytes::Bytes;
use jobyard_api::grpc::convert::{self, AttemptReport, Said};
use jobyard_api::proto;
use jobyard_handoff::log::Stream;
use jobyard_model::AttemptEnd;

use super::chunks::Chunk;
use super::outbox::log_holds_end;
use super::tail::Tail;
use super::words::{Word, Words};
use crate::identity::Identity;
use crate::launch::AttemptRef;

/// Log bytes in one call, of all attempts. This is all the memory that logs take.
const CALL_LOG_BYTES: usize = 4 << 20;
/// Log bytes in one call, of one attempt, so that a loud one doesn't silence the others: its share, and at least this.
const MIN_ATTEMPT_LOG_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
}

/// What one attempt has to say in this call.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) attempt: AttemptRef,
    pub(super) words: Words,
    pub(super) end: Option<AttemptEnd>,
    pub(super) tail: Option<Tail>,
    pub(super) chunks: Vec<Chunk>,
    /// The end went into the call: all of its log had gone before, or went with it.
    pub(super) sent_end: bool,
    file_bytes: u64,
}

impl Item {
    pub(super) fn new(
        attempt: AttemptRef,
        (words, end): (Words, Option<AttemptEnd>),
        tail: Option<Tail>,
        file_bytes: u64,
    ) -> Self {
        Self { attempt, words, end, tail, chunks: Vec::new(), sent_end: false, file_bytes }
    }

    /// Whether its log file has something for this call.
    pub(super) fn has_log(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.has_more(self.file_bytes))
    }

    /// There was no room for any of its log.
    pub(super) fn is_passed_over(&self) -> bool {
        self.end.is_none() && self.chunks.is_empty() && self.has_log()
    }

    fn may_end(&self) -> bool {
        let held = self.tail.as_ref().is_some_and(|tail| log_holds_end(tail, self.file_bytes));
        self.end.is_some() && !held
    }
}

impl Batch {
    pub(super) fn has_logs(&self) -> bool {
        self.items.iter().any(Item::has_log)
    }

    /// Reads the logs' next pieces, those of ended attempts first. Touches files.
    pub(super) fn read_logs(&mut self) {
        let mut left = CALL_LOG_BYTES;
        let logs = self.items.iter().filter(|item| item.has_log()).count().max(1);
        let share = (CALL_LOG_BYTES / logs).max(MIN_ATTEMPT_LOG_BYTES);
        for wants_end in [true, false] {
            for item in self.items.iter_mut().filter(|item| item.end.is_some() == wants_end) {
                if left == 0 {
                    return;
                }
                if let Some(tail) = item.tail.as_mut().filter(|tail| tail.has_more(item.file_bytes)) {
                    item.chunks = tail.read(item.file_bytes, left.min(share));
                    let bytes: usize = item.chunks.iter().map(|chunk| chunk.data.len()).sum();
                    left = left.saturating_sub(bytes);
                }
            }
        }
    }

    /// Call it when the logs are read; from then on the items say what was sent.
    pub(super) fn request(&mut self, identity: &Identity) -> proto::ReportRequest {
        let mut logs = Vec::new();
        let mut reports = Vec::new();
        for item in &mut self.items {
            item.sent_end = item.may_end();
            logs.extend(item.chunks.iter().map(|chunk| log_chunk(&item.attempt, chunk)));
            reports.extend(item.words.in_order().map(|word| report(&item.attempt, said(word))));
            if let Some(end) = item.end.as_ref().filter(|_| item.sent_end) {
                reports.push(report(&item.attempt, Said::Ended(end.clone())));
            }
        }
        proto::ReportRequest {
            node_id: convert::id_bytes(identity.node_id.0),
            session: convert::id_bytes(identity.session.0),
            logs,
            reports,
        }
    }
}

fn said(word: Word) -> Said {
    match word {
        Word::Renewed => Said::Renewed,
        Word::Accepted => Said::Accepted,
        Word::Started => Said::Started,
        Word::Finishing => Said::Finishing,
        Word::Service(run) => Said::Service(run),
    }
}

fn report(attempt: &AttemptRef, what: Said) -> proto::Report {
    let AttemptRef { job_id, number, lease_id } = *attempt;
    proto::Report::from(&AttemptReport { job_id, attempt: number, lease_id, what })
}

fn log_chunk(attempt: &AttemptRef, chunk: &Chunk) -> proto::LogChunk {
    proto::LogChunk {
        job_id: convert::id_bytes(attempt.job_id.0),
        attempt: attempt.number,
        lease_id: convert::id_bytes(attempt.lease_id.0),
        stream: match chunk.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        },
        from: chunk.from,
        at: i64::try_from(chunk.at_ms).unwrap_or(i64::MAX),
        data: Bytes::clone(&chunk.data),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use jobyard_handoff::log::{MAX_DATA_BYTES, header};
    use jobyard_model::{JobId, LeaseId};
    use tokio::time::Instant;
    use uuid::Uuid;

    use super::*;
    use crate::relay::outbox::{Due, Outbox};

    fn lease(number: usize) -> LeaseId {
        LeaseId(Uuid::from_u128(number as u128))
    }

    /// Attempts whose logs are longer than a call, taken in turns: what each call carries, and when the next is due.
    #[test]
    fn loud_attempts_take_turns_and_need_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let record = [&header(7, Stream::Stdout, MAX_DATA_BYTES)[..], &[b'x'; MAX_DATA_BYTES]].concat();
        let (attempts, file) = (100, record.repeat(8));
        let now = Instant::now();
        let mut outbox = Outbox::new(Duration::from_secs(3_600), now);
        for number in 0..attempts {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, &file).unwrap();
            let attempt = AttemptRef { job_id: JobId(Uuid::nil()), number: 1, lease_id: lease(number) };
            outbox.open(attempt, Tail::of(path), None);
            outbox.log_grew(lease(number), file.len() as u64);
        }
        let mut heard = HashMap::<LeaseId, usize>::new();
        for _ in 0..2 {
            let at = match outbox.due(now) {
                Due::Now => now,
                Due::At(at) => at,
                Due::Never => panic!("nothing is due"),
            };
            assert!(at < now + Duration::from_secs(3_600), "the usual pause");
            let mut batch = outbox.take(at);
            batch.read_logs();
            let mut reply = proto::ReportReply::default();
            for item in &batch.items {
                for chunk in &item.chunks {
                    *heard.entry(item.attempt.lease_id).or_default() += chunk.data.len();
                    let end = chunk.from + chunk.data.len() as u64;
                    let verdict = proto::LogVerdict::End.into();
                    reply.logs.push(proto::LogAnswer { verdict, end });
                }
            }
            outbox.settle(batch, &reply, 0);
        }
        assert_eq!(heard.len(), attempts, "each was heard within two calls");
        assert!(heard.values().all(|bytes| *bytes <= 3 * MAX_DATA_BYTES), "{heard:?}");
    }
}
