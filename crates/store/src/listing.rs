//! What both dialects do alike when they list and count jobs.

use std::collections::BTreeMap;

use jobyard_model::lifecycle::RESTARTING;
use jobyard_model::{
    AttemptEnd, Exit, ExitFacts, Intent, JobId, JobKind, NodeId, Outcome, Phase, Status, Timestamp,
};
use uuid::Uuid;

use crate::encoding::{from_json, inconsistent, parse_fail_reason};
use crate::filter::{self, NODE_NAME, STATUS, Text, Uses, Words};
use crate::jobs::COUNT_BOUND;
use crate::rows::number;
use crate::{FailurePrint, JobCount, JobRow, StatusCount, StoreError};

/// How many jobs one page or count looks at, when the filter passes few.
pub(crate) const SCANNED: usize = 20_000;
/// The same where each one's command has to be read.
pub(crate) const SCANNED_TEXT: usize = 5_000;
/// As far as the sources of a page are measured, to find the narrowest.
pub(crate) const MEASURED: usize = 1_000;

/// A line of a list as it is selected; the columns are those of [`columns`].
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) id: Uuid,
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) kind: i16,
    pub(crate) submitted_by: String,
    pub(crate) pool: String,
    pub(crate) priority: i32,
    pub(crate) labels: String,
    pub(crate) max_retries: i32,
    pub(crate) created_ms: i64,
    pub(crate) status: Option<i16>,
    pub(crate) wait_since_ms: Option<i64>,
    pub(crate) artifact_missing: Option<bool>,
    pub(crate) phase: Option<i16>,
    pub(crate) is_restarting: Option<bool>,
    pub(crate) fail_reason: Option<String>,
    pub(crate) intent: Option<i16>,
    pub(crate) started_ms: Option<i64>,
    pub(crate) finished_ms: Option<i64>,
    pub(crate) retry_count: Option<i32>,
    pub(crate) round: Option<i32>,
    pub(crate) attempt: Option<i32>,
    pub(crate) node_id: Option<Uuid>,
    pub(crate) node_name: Option<String>,
    pub(crate) ended: Option<i32>,
    pub(crate) outcome: Option<i16>,
    pub(crate) end: Option<String>,
}

/// `SELECT … FROM job …`, to be followed by the ids that are wanted.
pub(crate) fn columns(words: Words) -> String {
    let text = Text::new(words);
    let (priority, labels) = (filter::priority(&text), filter::labels(&text));
    let max_retries = filter::max_retries(&text);
    let (labels, restarting) = filter::as_text_and_restarting(&text, &labels);
    let uses = Uses { hot: true, end: true, live: true, newest: true };
    format!(
        "SELECT job.id, owner.name, job.name, job.kind, job.submitted_by, pool.name, {priority}, {labels}, \
         {max_retries}, job.created_ms, {STATUS}, l.wait_since_ms, l.artifact_missing, a.phase, {restarting}, e.reason, \
         coalesce(l.intent, e.intent), coalesce(l.started_ms, e.started_ms), e.finished_ms, \
         coalesce(l.retry_count, e.retry_count), coalesce(l.round, e.round), coalesce(l.attempt, e.attempt), \
         coalesce(a.node_id, z.node_id), {NODE_NAME}, z.number, z.outcome, z.\"end\" \
         FROM job JOIN owner ON owner.owner_id = job.owner_id JOIN pool ON pool.pool_id = job.pool_id{}",
        uses.joins(words)
    )
}

impl Line {
    /// The line in the model's words.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when its rows make no sense.
    pub(crate) fn into_row(self, now: Timestamp) -> Result<JobRow, StoreError> {
        let bad = |what: &str| inconsistent("job", self.id, what);
        let status = self.status.ok_or_else(|| bad("neither live nor ended"))?;
        let status = Status::from_code(status).ok_or_else(|| bad("no such status"))?;
        let labels: BTreeMap<String, String> = from_json("job", self.id, &self.labels)?;
        let intent = self.intent.and_then(Intent::from_code).ok_or_else(|| bad("no such intent"))?;
        let last_end = match (self.ended, self.outcome, &self.end) {
            (Some(ended), Some(outcome), Some(end)) => {
                let outcome = Outcome::from_code(outcome).ok_or_else(|| bad("no such outcome"))?;
                let end: AttemptEnd = from_json("attempt", self.id, end)?;
                Some((number(ended), outcome, end))
            }
            _ => None,
        };
        let time = |ms: Option<i64>| ms.map(Timestamp);
        Ok(JobRow {
            id: JobId(self.id),
            kind: JobKind::from_code(self.kind).ok_or_else(|| bad("no such kind"))?,
            status,
            reason: self.reason(status, now),
            priority: u8::try_from(self.priority).map_err(|_| bad("no such priority"))?,
            labels,
            max_retries: number(self.max_retries),
            intent,
            created_at: Timestamp(self.created_ms),
            started_at: time(self.started_ms),
            finished_at: time(self.finished_ms),
            waiting_since: time(self.wait_since_ms),
            retry_count: self.retry_count.map_or(0, number),
            round: self.round.map_or(0, number),
            attempt: self.attempt.map_or(0, number),
            node: self.node_id.map(|id| (NodeId(id), self.node_name.unwrap_or_default())),
            last_end,
            owner: self.owner,
            name: self.name,
            submitted_by: self.submitted_by,
            pool: self.pool,
        })
    }

    fn reason(&self, status: Status, now: Timestamp) -> &'static str {
        match status {
            Status::Running if self.is_restarting == Some(true) => RESTARTING,
            Status::Running => self.phase.and_then(Phase::from_code).map_or("", Phase::as_str),
            Status::Ready if self.artifact_missing == Some(true) => "artifact_missing",
            Status::Ready => "run_at",
            Status::Waiting if self.wait_since_ms.is_some_and(|since| since > now.0) => "backing_off",
            Status::Waiting => "",
            Status::Retry => "backing_off",
            Status::Success | Status::FinalFailed | Status::Cancelled => {
                self.fail_reason.as_deref().and_then(parse_fail_reason).map_or("", |reason| reason.as_str())
            }
        }
    }
}

/// A failure as it is selected.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) job_id: Uuid,
    pub(crate) reason: Option<String>,
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) outcome: Option<i16>,
    pub(crate) end: Option<String>,
}

impl Failed {
    /// What tells it apart.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when its rows make no sense.
    pub(crate) fn print(self) -> Result<FailurePrint, StoreError> {
        let reason = self.reason.as_deref().and_then(parse_fail_reason);
        let end: Option<AttemptEnd> =
            self.end.map(|end| from_json("attempt", self.job_id, &end)).transpose()?;
        let (exit_code, signal) = match end {
            Some(AttemptEnd::Exited(ExitFacts { exit: Exit::Code(code), .. })) => (Some(code), None),
            Some(AttemptEnd::Exited(ExitFacts { exit: Exit::Signal(signal), .. })) => (None, Some(signal)),
            _ => (None, None),
        };
        Ok(FailurePrint {
            owner: self.owner,
            name: self.name,
            reason: reason.ok_or_else(|| inconsistent("job_end", self.job_id, "no such reason"))?,
            outcome: self.outcome.and_then(Outcome::from_code),
            exit_code,
            signal,
        })
    }
}

/// The arguments of a command in a row, from their JSON.
pub(crate) fn command_line(json: &str) -> String {
    serde_json::from_str::<Vec<String>>(json).unwrap_or_default().join(" ")
}

/// What was counted, by status; `found` counts one status once.
pub(crate) fn counted(found: &BTreeMap<i16, u64>, was_whole: bool) -> JobCount {
    let total: u64 = found.values().sum();
    let by_status = Status::ALL.map(|status| {
        let count = found.get(&status.code()).copied().unwrap_or(0);
        StatusCount { status, count: count.min(COUNT_BOUND), capped: count > COUNT_BOUND }
    });
    let capped = total > COUNT_BOUND;
    JobCount {
        count: total.min(COUNT_BOUND),
        capped,
        complete: was_whole && !capped,
        by_status: by_status.into(),
    }
}
