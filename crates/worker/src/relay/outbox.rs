//! What is to be said to the report door: at most one word of a kind, one end and one log an attempt, however long the
//! door is away. Decides what goes into a call and what follows from its answer; does no I/O.
//!
//! Invariant: an end leaves only after its log, unless the door puts the log off; it is kept until it is answered.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use jobyard_api::proto;
use jobyard_model::{AttemptEnd, LeaseId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answers::{Verdict, taken, wanted_stop};
use super::batch::{Batch, Item};
use super::tail::{Tail, Taken};
use super::words::{Word, Words};
use crate::keeper::Nudge;
use crate::launch::AttemptRef;

/// Reports in one call.
const MAX_ITEMS: usize = 1_000;
/// On a node with many attempts, a call with the words of few of them is followed by the next no sooner than this.
const GATHER: Duration = Duration::from_millis(10);
/// From so many attempts on words are gathered, and so many of them make a call worth while.
const MANY_ATTEMPTS: usize = 8;
/// Something the door put off is said again after this long.
const LATER: Duration = Duration::from_millis(500);
/// A log that was put off this often in a row holds its outcome no longer.
const MAX_HELD_BY_LOG: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    NotYet,
    Pending(AttemptEnd),
    Answered,
}

#[derive(Debug)]
struct Entry {
    attempt: AttemptRef,
    /// `None`: what an earlier worker left; nobody waits for the answer.
    keeper: Option<mpsc::UnboundedSender<Nudge>>,
    words: Words,
    end: End,
    spooled: bool,
    /// Away while a call is made.
    tail: Option<Tail>,
    file_bytes: u64,
    log_is_final: bool,
    log_is_told: bool,
    queued: Queued,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queued {
    No,
    ForLogs,
    ForReports,
}

/// What has to be done outside after a call.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    /// Outcomes to put on disk.
    pub(super) keep: Vec<(AttemptRef, AttemptEnd)>,
    /// Outcomes to take off it.
    pub(super) unkeep: Vec<LeaseId>,
    /// Parts of logs that are delivered.
    pub(super) given_back: Vec<PathBuf>,
    /// Logs of entries without a keeper that are delivered.
    pub(super) remove_logs: Vec<PathBuf>,
}

/// When the next call is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Now,
    At(Instant),
    Never,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    entries: HashMap<LeaseId, Entry>,
    reports: VecDeque<LeaseId>,
    logs: VecDeque<LeaseId>,
    later: VecDeque<(Instant, LeaseId)>,
    logs_due: Instant,
    log_pause: Duration,
    not_before: Instant,
    /// When the call that is being made was begun.
    called_at: Instant,
    in_call: bool,
}

impl Outbox {
    pub(super) fn new(log_pause: Duration, now: Instant) -> Self {
        Self {
            entries: HashMap::new(),
            reports: VecDeque::new(),
            logs: VecDeque::new(),
            later: VecDeque::new(),
            logs_due: now,
            log_pause,
            not_before: now,
            called_at: now,
            in_call: false,
        }
    }

    pub(super) fn open(
        &mut self,
        attempt: AttemptRef,
        tail: Tail,
        keeper: Option<mpsc::UnboundedSender<Nudge>>,
    ) {
        let entry = Entry {
            attempt,
            keeper,
            words: Words::default(),
            end: End::NotYet,
            spooled: false,
            tail: Some(tail),
            file_bytes: 0,
            log_is_final: false,
            log_is_told: false,
            queued: Queued::No,
        };
        self.entries.insert(attempt.lease_id, entry);
    }

    /// Nothing of this attempt is said any more.
    pub(super) fn close(&mut self, lease_id: LeaseId) {
        self.entries.remove(&lease_id);
    }

    pub(super) fn say(&mut self, lease_id: LeaseId, word: Word) {
        if let Some(entry) = self.entries.get_mut(&lease_id) {
            entry.words.add(word);
            self.queue(lease_id, Queued::ForReports);
        }
    }

    pub(super) fn log_grew(&mut self, lease_id: LeaseId, file_bytes: u64) {
        let Some(entry) = self.entries.get_mut(&lease_id) else { return };
        if file_bytes > entry.file_bytes {
            entry.file_bytes = file_bytes;
            self.queue(lease_id, Queued::ForLogs);
        }
    }

    /// The attempt is over. `end`: what to report, when it is still to be reported. The log has `file_bytes`, or
    /// whatever its file has.
    pub(super) fn end(&mut self, lease_id: LeaseId, end: Option<AttemptEnd>, file_bytes: Option<u64>) {
        let Some(entry) = self.entries.get_mut(&lease_id) else { return };
        entry.end = end.map_or(End::Answered, End::Pending);
        entry.file_bytes = file_bytes.unwrap_or(u64::MAX);
        entry.log_is_final = true;
        self.queue(lease_id, Queued::ForReports);
    }

    /// This outcome is on disk already.
    pub(super) fn is_kept(&mut self, lease_id: LeaseId) {
        if let Some(entry) = self.entries.get_mut(&lease_id) {
            entry.spooled = true;
        }
    }

    /// Outcomes that are neither answered nor on disk.
    pub(super) fn unkept(&self) -> Vec<(AttemptRef, AttemptEnd)> {
        let pending = self.entries.values().filter(|entry| !entry.spooled);
        pending
            .filter_map(|entry| match &entry.end {
                End::Pending(end) => Some((entry.attempt, end.clone())),
                End::NotYet | End::Answered => None,
            })
            .collect()
    }

    /// Outcomes left by an earlier worker that are not answered.
    pub(super) fn left_overs(&self) -> usize {
        let left = self.entries.values().filter(|entry| entry.keeper.is_none());
        left.filter(|entry| matches!(entry.end, End::Pending(_))).count()
    }

    /// Nothing waits and no call is being made.
    pub(super) fn is_empty(&self) -> bool {
        !self.in_call && self.reports.is_empty() && self.logs.is_empty() && self.later.is_empty()
    }

    fn queue(&mut self, lease_id: LeaseId, wanted: Queued) {
        let Some(entry) = self.entries.get_mut(&lease_id) else { return };
        if entry.queued == Queued::ForReports || entry.queued == wanted {
            return;
        }
        entry.queued = wanted;
        match wanted {
            Queued::ForReports => self.reports.push_back(lease_id),
            Queued::ForLogs => self.logs.push_back(lease_id),
            Queued::No => {}
        }
    }

    pub(super) fn due(&self, now: Instant) -> Due {
        if !self.reports.is_empty() {
            let is_worth_it = self.entries.len() < MANY_ATTEMPTS || self.reports.len() >= MANY_ATTEMPTS;
            return if is_worth_it || self.not_before <= now { Due::Now } else { Due::At(self.not_before) };
        }
        let logs = (!self.logs.is_empty()).then_some(self.logs_due);
        let later = self.later.front().map(|(at, _)| *at);
        match logs.into_iter().chain(later).min() {
            Some(at) if at <= now => Due::Now,
            Some(at) => Due::At(at),
            None => Due::Never,
        }
    }

    /// Takes what goes into the next call. Its answer, or that there is none, comes back by [`Outbox::settle`] or
    /// [`Outbox::put_back`] before the next one is taken.
    pub(super) fn take(&mut self, now: Instant) -> Batch {
        self.in_call = true;
        self.called_at = now;
        self.not_before = now + GATHER;
        while let Some((_, lease_id)) = self.later.pop_front_if(|(at, _)| *at <= now) {
            self.queue(lease_id, Queued::ForReports);
        }
        let mut items = Vec::new();
        while items.len() < MAX_ITEMS
            && let Some(lease_id) = self.reports.pop_front()
        {
            items.extend(self.take_item(lease_id));
        }
        if self.logs_due <= now {
            while items.len() < MAX_ITEMS
                && let Some(lease_id) = self.logs.pop_front()
            {
                items.extend(self.take_item(lease_id));
            }
        }
        if items.iter().any(Item::has_log) {
            self.logs_due = now + self.log_pause;
        }
        Batch { items }
    }

    fn take_item(&mut self, lease_id: LeaseId) -> Option<Item> {
        let entry = self.entries.get_mut(&lease_id)?;
        let was_queued = std::mem::replace(&mut entry.queued, Queued::No);
        if was_queued == Queued::No {
            return None;
        }
        let words = std::mem::take(&mut entry.words);
        let end = match &entry.end {
            End::Pending(end) => Some(end.clone()),
            End::NotYet | End::Answered => None,
        };
        // Without an end the log waits for its own turn, so that a busy node doesn't send crumbs.
        let with_log = entry.log_is_final || was_queued == Queued::ForLogs;
        let has_more = entry.tail.as_ref().is_some_and(|tail| tail.has_more(entry.file_bytes));
        let tail = if with_log { entry.tail.take() } else { None };
        let item = Item::new(entry.attempt, (words, end), tail, entry.file_bytes);
        if has_more && !with_log {
            self.queue(lease_id, Queued::ForLogs);
        }
        Some(item)
    }

    /// There was more than a call holds: the next one need not wait for more to come. It comes after as much time as
    /// this one took, so that what else there is to say finds the door free half of the time.
    fn hurry_logs(&mut self, now: Instant) {
        let took = now.saturating_duration_since(self.called_at);
        self.logs_due = self.logs_due.min(now + took);
    }

    /// The call has no answer: all is said again.
    pub(super) fn put_back(&mut self, batch: Batch) -> Aftermath {
        self.in_call = false;
        let mut aftermath = Aftermath::default();
        for mut item in batch.items {
            item.tail.iter_mut().for_each(Tail::rewind);
            let lease_id = item.attempt.lease_id;
            let Some(entry) = self.entries.get_mut(&lease_id) else { continue };
            entry.tail = item.tail.or(entry.tail.take());
            entry.words.add_all(item.words);
            if let Some(end) = item.end.filter(|_| !entry.spooled) {
                entry.spooled = true;
                aftermath.keep.push((entry.attempt, end));
            }
            self.queue_rest(lease_id);
        }
        aftermath
    }

    /// What became of each chunk and report of the call.
    pub(super) fn settle(&mut self, batch: Batch, reply: &proto::ReportReply, sent_at_ms: u64) -> Aftermath {
        self.in_call = false;
        if batch.has_logs() {
            self.hurry_logs(Instant::now());
        }
        let mut aftermath = Aftermath::default();
        let mut logs = reply.logs.iter();
        let mut reports = reply.reports.iter();
        // Whoever found no room in this call is first in the next one.
        for lease_id in
            batch.items.iter().filter(|item| item.is_passed_over()).map(|item| item.attempt.lease_id)
        {
            self.queue(lease_id, Queued::ForLogs);
        }
        for mut item in batch.items {
            let taken: Vec<_> = item
                .chunks
                .iter()
                .map(|chunk| (chunk.stream, logs.next().map_or(Taken::Later, taken)))
                .collect();
            if let Some(tail) = &mut item.tail {
                tail.settle(taken);
                aftermath.given_back.extend(tail.give_back());
            }
            let mut next = || reports.next().copied().unwrap_or_default();
            let words: Vec<_> = item.words.in_order().map(|word| (word, next())).collect();
            let end = item.sent_end.then(next);
            self.settle_item(item, (words, end), sent_at_ms, &mut aftermath);
        }
        aftermath
    }

    fn settle_item(
        &mut self,
        item: Item,
        (words, end): (Vec<(Word, proto::ReportAnswer)>, Option<proto::ReportAnswer>),
        sent_at_ms: u64,
        aftermath: &mut Aftermath,
    ) {
        let lease_id = item.attempt.lease_id;
        let Some(entry) = self.entries.get_mut(&lease_id) else { return };
        entry.tail = item.tail.or(entry.tail.take());
        let mut put_off = false;
        for (word, answer) in words {
            match Verdict::of(answer.verdict()) {
                Verdict::Done => entry.tell(Nudge::Renewed { sent_at_boottime_ms: sent_at_ms }),
                Verdict::Known => entry.tell(Nudge::Known),
                Verdict::Gone => entry.tell(Nudge::Gone),
                Verdict::Later => {
                    entry.words.add(word);
                    put_off = true;
                }
            }
            if let Some(reason) = wanted_stop(answer.intent) {
                entry.tell(Nudge::Stop { reason, grace_ms: None });
            }
        }
        if let Some(answer) = end {
            match Verdict::of(answer.verdict()) {
                Verdict::Done | Verdict::Known | Verdict::Gone => {
                    entry.end = End::Answered;
                    entry.tell(Nudge::EndAnswered);
                    if entry.spooled {
                        aftermath.unkeep.push(lease_id);
                    }
                }
                Verdict::Later => {
                    put_off = true;
                    if let Some(end) = item.end.filter(|_| !entry.spooled) {
                        entry.spooled = true;
                        aftermath.keep.push((entry.attempt, end));
                    }
                }
            }
        }
        put_off |= entry.tail.as_ref().is_some_and(|tail| tail.delays() > 0);
        if put_off {
            self.later.push_back((Instant::now() + LATER, lease_id));
        } else {
            self.queue_rest(lease_id);
        }
        self.conclude(lease_id, aftermath);
    }

    /// Queues what the last call left.
    fn queue_rest(&mut self, lease_id: LeaseId) {
        let Some(entry) = self.entries.get(&lease_id) else { return };
        let has_more = entry.tail.as_ref().is_some_and(|tail| tail.has_more(entry.file_bytes));
        if !entry.words.is_empty() || matches!(entry.end, End::Pending(_)) {
            self.queue(lease_id, Queued::ForReports);
        } else if has_more {
            self.queue(lease_id, Queued::ForLogs);
        }
    }

    /// Says once that the log is delivered; an entry without a keeper goes when nothing of it is left.
    fn conclude(&mut self, lease_id: LeaseId, aftermath: &mut Aftermath) {
        let Some(entry) = self.entries.get_mut(&lease_id) else { return };
        let Some(tail) = entry.tail.as_ref().filter(|_| entry.log_is_final) else { return };
        if !tail.is_delivered(entry.file_bytes) || entry.log_is_told {
            return;
        }
        match (&entry.keeper, &entry.end) {
            (Some(_), _) => {
                entry.log_is_told = true;
                entry.tell(Nudge::LogDelivered);
            }
            (None, End::Pending(_)) => {}
            (None, End::NotYet | End::Answered) => {
                aftermath.remove_logs.push(tail.path().to_owned());
                self.entries.remove(&lease_id);
            }
        }
    }
}

impl Entry {
    fn tell(&self, nudge: Nudge) {
        if let Some(keeper) = &self.keeper {
            // A keeper that is gone has nothing left to do.
            let _ = keeper.send(nudge);
        }
    }
}

/// Whether a log still holds its outcome: there is more of it, or it isn't sure that what goes with this call is taken.
pub(super) fn log_holds_end(tail: &Tail, file_bytes: u64) -> bool {
    let is_behind = tail.has_more(file_bytes) || (tail.is_unsure() && !tail.is_delivered(file_bytes));
    is_behind && tail.delays() < MAX_HELD_BY_LOG
}

#[cfg(test)]
mod tests {
    use jobyard_model::JobId;
    use uuid::Uuid;

    use super::*;

    fn lease(number: usize) -> LeaseId {
        LeaseId(Uuid::from_u128(number as u128))
    }

    /// So many attempts, and a call with the words of the first one just made.
    fn called_with(attempts: usize, now: Instant) -> Outbox {
        let mut outbox = Outbox::new(Duration::from_millis(100), now);
        for number in 0..attempts {
            let attempt = AttemptRef { job_id: JobId(Uuid::nil()), number: 1, lease_id: lease(number) };
            outbox.open(attempt, Tail::of("/nowhere".into()), None);
        }
        outbox.say(lease(0), Word::Accepted);
        assert_eq!(outbox.due(now), Due::Now);
        let batch = outbox.take(now);
        outbox.settle(batch, &proto::ReportReply::default(), 0);
        outbox.later.clear();
        outbox
    }

    #[test]
    fn few_attempts_never_wait_for_company() {
        let now = Instant::now();
        let mut outbox = called_with(MANY_ATTEMPTS - 1, now);
        outbox.say(lease(1), Word::Started);
        assert_eq!(outbox.due(now), Due::Now);
    }

    #[test]
    fn among_many_attempts_a_word_waits_a_moment_or_for_enough_others() {
        let now = Instant::now();
        let mut outbox = called_with(100, now);
        outbox.say(lease(1), Word::Started);
        assert_eq!(outbox.due(now), Due::At(now + GATHER));
        assert_eq!(outbox.due(now + GATHER), Due::Now);
        (1..=MANY_ATTEMPTS).for_each(|number| outbox.say(lease(number), Word::Started));
        assert_eq!(outbox.due(now), Due::Now);
    }
}
