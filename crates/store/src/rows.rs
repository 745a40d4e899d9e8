//! Rows as both dialects load and write them, and what they are in the model.
//!
//! A field is a column of the same name and an SQL type of the same width; `*_ms` are unix milliseconds. Knows no SQL.

use jobyard_model::lifecycle::{End, EndedAttempt, JobState, Policy};
use jobyard_model::retry::{Accounts, Budgets};
use jobyard_model::{
    Intent, Job, JobId, JobKind, LeaseId, LiveAttempt, NodeId, Phase, Priority, Resources, ServiceRun,
    SessionId, ShapeId, Status, Timestamp,
};
use uuid::Uuid;

use crate::StoreError;
use crate::encoding::{amount, column, from_json, inconsistent, parse_fail_reason, to_json};

/// Where a job belongs; never changes after the insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Who is accounted for.
    pub(crate) owner_id: i32,
    /// Where it waits.
    pub(crate) pool_id: i32,
    /// What it needs.
    pub(crate) shape_id: ShapeId,
    /// How urgent it is.
    pub(crate) priority: Priority,
}

/// A row of `job_live`: one for each job that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobRow {
    pub(crate) id: Uuid,
    pub(crate) status: i16,
    pub(crate) kind: i16,
    pub(crate) pool_id: i32,
    pub(crate) shape_id: i32,
    pub(crate) owner_id: i32,
    pub(crate) lane: i16,
    pub(crate) priority: i16,
    /// Set while waiting.
    pub(crate) wait_since_ms: Option<i64>,
    /// Set in `retry`, and in `ready` while `run_at` lies ahead.
    pub(crate) due_ms: Option<i64>,
    pub(crate) artifact_missing: bool,
    pub(crate) start_deadline_ms: Option<i64>,
    /// The newest attempt's number.
    pub(crate) attempt: i32,
    /// Set while running.
    pub(crate) lease_id: Option<Uuid>,
    pub(crate) intent: i16,
    pub(crate) round: i32,
    pub(crate) retry_count: i32,
    pub(crate) platform_failures: i32,
    pub(crate) platform_since_ms: Option<i64>,
    pub(crate) unpaid_in_row: i32,
    pub(crate) evictions: i32,
    pub(crate) avoid_node: Option<Uuid>,
    pub(crate) max_retries: i32,
    pub(crate) backoff_ms: i64,
    /// A JSON array; null when there are none.
    pub(crate) no_retry_exit_codes: Option<String>,
    pub(crate) start_within_ms: Option<i64>,
    pub(crate) exclusive: bool,
    /// When the first attempt of the round was `running`.
    pub(crate) started_ms: Option<i64>,
}

/// A row of `attempt_live`: one for each job in `running`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptRow {
    pub(crate) job_id: Uuid,
    pub(crate) number: i32,
    pub(crate) lease_id: Uuid,
    pub(crate) node_id: Uuid,
    pub(crate) session: Uuid,
    pub(crate) phase: i16,
    pub(crate) placed_ms: i64,
    pub(crate) accepted_ms: Option<i64>,
    pub(crate) started_ms: Option<i64>,
    pub(crate) lease_until_ms: i64,
    /// The last sign of life, by the datastore's clock; the view `job_table` shows it as `last_heartbeat`.
    pub(crate) heard_ms: i64,
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    /// JSON of a `model::ServiceRun`; null for a task, and until a service's first exit.
    pub(crate) service: Option<String>,
}

/// A row of `attempt`, the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryRow {
    pub(crate) job_id: Uuid,
    pub(crate) number: i32,
    pub(crate) round: i32,
    pub(crate) lease_id: Uuid,
    /// The column `node_name` beside it is filled from `node` by the insert; empty when that has gone.
    pub(crate) node_id: Uuid,
    pub(crate) session: Uuid,
    pub(crate) placed_ms: i64,
    pub(crate) accepted_ms: Option<i64>,
    pub(crate) started_ms: Option<i64>,
    pub(crate) ended_ms: i64,
    pub(crate) outcome: i16,
    /// The column `end`: JSON of a `model::AttemptEnd`, its text cleaned.
    pub(crate) end_json: String,
    pub(crate) fingerprint: i64,
    pub(crate) retryable: bool,
    /// Where it was when it ended.
    pub(crate) phase: i16,
    pub(crate) lease_until_ms: i64,
    /// As in `attempt_live`.
    pub(crate) service: Option<String>,
}

/// A row of `job_end`: one for each round that is over. The insert sets the column `current`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndRow {
    pub(crate) job_id: Uuid,
    pub(crate) round: i32,
    pub(crate) status: i16,
    /// The word of a `FailReason`, for `final_failed` only.
    pub(crate) reason: Option<String>,
    pub(crate) finished_ms: i64,
    pub(crate) started_ms: Option<i64>,
    /// The last attempt's number.
    pub(crate) attempt: i32,
    pub(crate) intent: i16,
    pub(crate) retry_count: i32,
    pub(crate) platform_failures: i32,
    pub(crate) unpaid_in_row: i32,
    pub(crate) evictions: i32,
    pub(crate) platform_since_ms: Option<i64>,
}

/// A row of `event`, without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRow {
    pub(crate) at_ms: i64,
    pub(crate) job_id: Uuid,
    pub(crate) attempt: Option<i32>,
    pub(crate) who: String,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) why: String,
}

impl JobRow {
    /// The hot row of a job that is not over; `None` for one that is.
    pub(crate) fn new(job: &Job, seat: Seat, started_at: Option<Timestamp>) -> Option<Self> {
        let mut row = Self::without_state(job, seat, started_at);
        match &job.state {
            JobState::Ready { due, artifact_missing } => {
                row.due_ms = due.map(|due| due.0);
                row.artifact_missing = *artifact_missing;
            }
            JobState::Waiting { since } => row.wait_since_ms = Some(since.0),
            JobState::Running(attempt) => row.lease_id = Some(attempt.lease_id.0),
            JobState::Retry { due } => row.due_ms = Some(due.0),
            JobState::Ended(_) => return None,
        }
        Some(row)
    }

    fn without_state(job: &Job, seat: Seat, started_at: Option<Timestamp>) -> Self {
        let budgets = &job.policy.budgets;
        let codes = &budgets.no_retry_exit_codes;
        Self {
            id: job.id.0,
            status: job.status().code(),
            kind: job.policy.kind.code(),
            pool_id: seat.pool_id,
            shape_id: seat.shape_id.0,
            owner_id: seat.owner_id,
            lane: i16::from(seat.priority.lane().value()),
            priority: i16::from(seat.priority.value()),
            wait_since_ms: None,
            due_ms: None,
            artifact_missing: false,
            start_deadline_ms: job.start_deadline.map(|deadline| deadline.0),
            attempt: number_column(job.last_attempt),
            lease_id: None,
            intent: job.intent.code(),
            round: number_column(job.round),
            retry_count: number_column(job.accounts.retry_count),
            platform_failures: number_column(job.accounts.platform_failures),
            platform_since_ms: job.accounts.platform_since.map(|since| since.0),
            unpaid_in_row: number_column(job.accounts.unpaid_in_row),
            evictions: number_column(job.accounts.evictions),
            avoid_node: job.avoid_node.map(|node| node.0),
            max_retries: number_column(budgets.max_retries),
            backoff_ms: column(budgets.backoff_ms),
            no_retry_exit_codes: (!codes.is_empty()).then(|| format!("{codes:?}")),
            start_within_ms: job.policy.start_within_ms.map(column),
            exclusive: job.policy.exclusive,
            started_ms: started_at.map(|started| started.0),
        }
    }

    /// The job that the row and its live attempt hold.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when the row breaks our own rules.
    pub(crate) fn to_job(&self, attempt: Option<&AttemptRow>) -> Result<Job, StoreError> {
        let bad = |what: &str| inconsistent("job_live", self.id, what);
        Ok(Job {
            id: JobId(self.id),
            policy: self.policy()?,
            round: number(self.round),
            last_attempt: number(self.attempt),
            accounts: Accounts {
                retry_count: number(self.retry_count),
                platform_failures: number(self.platform_failures),
                platform_since: self.platform_since_ms.map(Timestamp),
                unpaid_in_row: number(self.unpaid_in_row),
                evictions: number(self.evictions),
            },
            intent: Intent::from_code(self.intent).ok_or_else(|| bad("no such intent"))?,
            start_deadline: self.start_deadline_ms.map(Timestamp),
            avoid_node: self.avoid_node.map(NodeId),
            state: self.state(attempt)?,
        })
    }

    /// Where the job belongs.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] for a priority above 100.
    pub(crate) fn seat(&self) -> Result<Seat, StoreError> {
        let priority = u8::try_from(self.priority).ok().and_then(Priority::new);
        let priority = priority.ok_or_else(|| inconsistent("job_live", self.id, "no such priority"))?;
        Ok(Seat {
            owner_id: self.owner_id,
            pool_id: self.pool_id,
            shape_id: ShapeId(self.shape_id),
            priority,
        })
    }

    fn policy(&self) -> Result<Policy, StoreError> {
        let codes = self.no_retry_exit_codes.as_deref().unwrap_or("[]");
        Ok(Policy {
            kind: JobKind::from_code(self.kind)
                .ok_or_else(|| inconsistent("job_live", self.id, "no such kind"))?,
            budgets: Budgets {
                max_retries: number(self.max_retries),
                backoff_ms: amount(self.backoff_ms),
                no_retry_exit_codes: from_json("job_live", self.id, codes)?,
            },
            start_within_ms: self.start_within_ms.map(amount),
            exclusive: self.exclusive,
        })
    }

    fn state(&self, attempt: Option<&AttemptRow>) -> Result<JobState, StoreError> {
        let bad = |what: &str| inconsistent("job_live", self.id, what);
        match Status::from_code(self.status) {
            Some(Status::Ready) => Ok(JobState::Ready {
                due: self.due_ms.map(Timestamp),
                artifact_missing: self.artifact_missing,
            }),
            Some(Status::Waiting) => {
                let since = self.wait_since_ms.ok_or_else(|| bad("waits since never"))?;
                Ok(JobState::Waiting { since: Timestamp(since) })
            }
            Some(Status::Running) => {
                let attempt = attempt.ok_or_else(|| bad("runs without a live attempt"))?;
                if Some(attempt.lease_id) != self.lease_id || attempt.number != self.attempt {
                    return Err(bad("its live attempt has another lease or number"));
                }
                attempt.to_live().map(JobState::Running)
            }
            Some(Status::Retry) => {
                let due = self.due_ms.ok_or_else(|| bad("retries never"))?;
                Ok(JobState::Retry { due: Timestamp(due) })
            }
            _ => Err(bad("no such status of an un-ended job")),
        }
    }
}

impl AttemptRow {
    /// The row of a live attempt that reserves `reserved` and was last heard at `heard_at`.
    pub(crate) fn new(
        job_id: JobId,
        attempt: &LiveAttempt,
        reserved: Resources,
        heard_at: Timestamp,
    ) -> Self {
        Self {
            job_id: job_id.0,
            number: number_column(attempt.number),
            lease_id: attempt.lease_id.0,
            node_id: attempt.node_id.0,
            session: attempt.session.0,
            phase: attempt.phase.code(),
            placed_ms: attempt.placed_at.0,
            accepted_ms: attempt.accepted_at.map(|at| at.0),
            started_ms: attempt.started_at.map(|at| at.0),
            lease_until_ms: attempt.lease_until.0,
            heard_ms: heard_at.0,
            cpu_milli: column(reserved.cpu_milli),
            memory_bytes: column(reserved.memory_bytes),
            service: attempt.service.as_ref().map(service_column),
        }
    }

    /// What it reserves on its node.
    pub(crate) fn reserved(&self) -> Resources {
        Resources { cpu_milli: amount(self.cpu_milli), memory_bytes: amount(self.memory_bytes) }
    }

    /// The attempt that the row holds.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] for a phase that does not exist.
    pub(crate) fn to_live(&self) -> Result<LiveAttempt, StoreError> {
        let phase = Phase::from_code(self.phase);
        Ok(LiveAttempt {
            number: number(self.number),
            lease_id: LeaseId(self.lease_id),
            node_id: NodeId(self.node_id),
            session: SessionId(self.session),
            phase: phase.ok_or_else(|| inconsistent("attempt_live", self.job_id, "no such phase"))?,
            placed_at: Timestamp(self.placed_ms),
            accepted_at: self.accepted_ms.map(Timestamp),
            started_at: self.started_ms.map(Timestamp),
            lease_until: Timestamp(self.lease_until_ms),
            service: service("attempt_live", self.job_id, self.service.as_deref())?,
        })
    }
}

impl HistoryRow {
    /// The row of an attempt of `round` that ended; its text must be clean already.
    ///
    /// # Errors
    /// As [`to_json`].
    pub(crate) fn new(job_id: JobId, round: u32, ended: &EndedAttempt) -> Result<Self, StoreError> {
        let attempt = &ended.attempt;
        Ok(Self {
            job_id: job_id.0,
            number: number_column(attempt.number),
            round: number_column(round),
            lease_id: attempt.lease_id.0,
            node_id: attempt.node_id.0,
            session: attempt.session.0,
            placed_ms: attempt.placed_at.0,
            accepted_ms: attempt.accepted_at.map(|at| at.0),
            started_ms: attempt.started_at.map(|at| at.0),
            ended_ms: ended.ended_at.0,
            outcome: ended.outcome.code(),
            end_json: to_json("attempt", &ended.end)?,
            fingerprint: ended.end.fingerprint(),
            retryable: ended.retryable,
            phase: attempt.phase.code(),
            lease_until_ms: attempt.lease_until.0,
            service: attempt.service.as_ref().map(service_column),
        })
    }
}

impl EndRow {
    /// The row of a round that is over; `None` while it isn't.
    pub(crate) fn new(job: &Job, started_at: Option<Timestamp>) -> Option<Self> {
        let JobState::Ended(end) = &job.state else { return None };
        Some(Self {
            job_id: job.id.0,
            round: number_column(job.round),
            status: end.status.code(),
            reason: end.reason.map(|reason| reason.as_str().to_owned()),
            finished_ms: end.finished_at.0,
            started_ms: started_at.map(|started| started.0),
            attempt: number_column(job.last_attempt),
            intent: job.intent.code(),
            retry_count: number_column(job.accounts.retry_count),
            platform_failures: number_column(job.accounts.platform_failures),
            unpaid_in_row: number_column(job.accounts.unpaid_in_row),
            evictions: number_column(job.accounts.evictions),
            platform_since_ms: job.accounts.platform_since.map(|since| since.0),
        })
    }

    /// The ended job that the row and its spec's policy make.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when the row breaks our own rules.
    pub(crate) fn to_job(&self, policy: Policy) -> Result<Job, StoreError> {
        let bad = |what: &str| inconsistent("job_end", self.job_id, what);
        let status = Status::from_code(self.status).filter(|status| status.is_end());
        let reason = match self.reason.as_deref() {
            Some(word) => Some(parse_fail_reason(word).ok_or_else(|| bad("no such reason"))?),
            None => None,
        };
        let end = End {
            status: status.ok_or_else(|| bad("no such end"))?,
            reason,
            finished_at: Timestamp(self.finished_ms),
        };
        Ok(Job {
            id: JobId(self.job_id),
            policy,
            round: number(self.round),
            last_attempt: number(self.attempt),
            accounts: Accounts {
                retry_count: number(self.retry_count),
                platform_failures: number(self.platform_failures),
                platform_since: self.platform_since_ms.map(Timestamp),
                unpaid_in_row: number(self.unpaid_in_row),
                evictions: number(self.evictions),
            },
            intent: Intent::from_code(self.intent).ok_or_else(|| bad("no such intent"))?,
            start_deadline: None,
            avoid_node: None,
            state: JobState::Ended(end),
        })
    }
}

/// What a service went through, as a column.
fn service_column(run: &ServiceRun) -> String {
    // Plain numbers and words: they always have a JSON form.
    serde_json::to_string(run).unwrap_or_default()
}

/// What a service went through, from a column.
///
/// # Errors
/// [`StoreError::Inconsistent`] when the text is not what we wrote.
pub(crate) fn service(
    table: &'static str,
    job_id: Uuid,
    column: Option<&str>,
) -> Result<Option<ServiceRun>, StoreError> {
    column.map(|text| from_json(table, job_id, text)).transpose()
}

/// A count or number as a column.
pub(crate) fn number_column(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A count or number from a column.
pub(crate) fn number(column: i32) -> u32 {
    u32::try_from(column).unwrap_or(0)
}
