//! What follows an ended attempt, and who pays for it.

use crate::lifecycle::Policy;
use crate::{AttemptEnd, EndedBy, Exit, Intent, JobKind, Moment, Outcome, Timestamp};

/// The longest delay before a retry.
pub const MAX_DELAY_MS: u64 = 60_000;
/// How many further attempts the platform's failures may cost a job.
pub const PLATFORM_LIMIT: u32 = 3;
/// For a service the platform's failures are counted within this window.
pub const SERVICE_PLATFORM_WINDOW_MS: u64 = 10 * 60 * 1000;

/// What a job has spent in its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Accounts {
    /// Retries bought by the user's failures.
    pub retry_count: u32,
    /// Retries bought by the platform's failures.
    pub platform_failures: u32,
    /// When the first of those counted was; services forget them after a while.
    pub platform_since: Option<Timestamp>,
    /// Attempts in a row that ended for nobody's fault.
    pub unpaid_in_row: u32,
    /// Evictions in this round; they cost nothing.
    pub evictions: u32,
}

/// How much a job may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// For the user's failures.
    pub max_retries: u32,
    /// Delay before the first retry, in milliseconds.
    pub backoff_ms: u64,
    /// Exit codes after which another attempt is pointless.
    pub no_retry_exit_codes: Vec<i32>,
}

/// Whose failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payer {
    /// `failed`, `timed_out`, `oom_killed`: against `max_retries`.
    User,
    /// `lost`, `launch_failed`: against [`PLATFORM_LIMIT`].
    Platform,
    /// `evicted`, `not_started`.
    Nobody,
}

/// Why a job ended badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailReason {
    /// The user's failures used up `max_retries`.
    RetriesExhausted,
    /// It can't work again.
    NotRetryable,
    /// The platform's failures used up their limit.
    PlatformFailures,
    /// `start_within` was over.
    Expired,
}

impl FailReason {
    /// The word in a job's `reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "retries_exhausted",
            Self::NotRetryable => "not_retryable",
            Self::PlatformFailures => "platform_failures",
            Self::Expired => "expired",
        }
    }
}

/// What follows an ended attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// The job ended well.
    Succeed,
    /// The job ended because somebody wanted it to.
    Cancel,
    /// Back to `waiting`, for nobody's fault; claimable after the delay.
    Wait {
        /// 0 for the first in a row.
        delay_ms: u64,
    },
    /// To `retry` for the delay, charged to the payer.
    Retry {
        /// Base × 2ⁿ, capped.
        delay_ms: u64,
        /// Whose account it goes to: user or platform.
        payer: Payer,
    },
    /// The job ended badly.
    Fail(FailReason),
}

/// An ended attempt, as far as what follows depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// What made it end; `None` without a witness.
    pub ended_by: Option<EndedBy>,
    /// Whether another attempt could end otherwise.
    pub retryable: bool,
}

impl Ended {
    /// Reads the facts once: `retryable` is false for what can't be run and for the job's own `no_retry_exit_codes`.
    #[must_use]
    pub fn new(end: &AttemptEnd, outcome: Outcome, budgets: &Budgets) -> Self {
        let AttemptEnd::Exited(facts) = end else {
            return Self { outcome, ended_by: None, retryable: true };
        };
        let retryable = match facts.exit {
            Exit::Unrunnable => false,
            Exit::Code(code) => !budgets.no_retry_exit_codes.contains(&code),
            Exit::Signal(_) | Exit::LaunchFault => true,
        };
        Self { outcome, ended_by: Some(facts.ended_by), retryable }
    }
}

/// The one function from (intent, outcome, ended_by, policy: budgets and kind) to what follows (design §3). `accounts` are those
/// from before the attempt ended. Its whole table stands in docs/job-states.md.
///
/// "Exit 0 by itself → `success` whatever the intent" is the outcome `succeeded`.
#[must_use]
pub fn next_step(
    intent: Intent,
    ended: Ended,
    accounts: &Accounts,
    policy: &Policy,
    moment: Moment,
) -> NextStep {
    match (ended.outcome, intent) {
        (Outcome::Succeeded, _) => NextStep::Succeed,
        (_, Intent::Cancel) | (Outcome::Cancelled, _) => NextStep::Cancel,
        (_, Intent::Stop) | (Outcome::Stopped, _) => NextStep::Succeed,
        (Outcome::Evicted | Outcome::NotStarted, _) => unpaid(accounts),
        (Outcome::Failed | Outcome::TimedOut | Outcome::OomKilled, _) => {
            user_failure(ended, accounts, policy, moment)
        }
        (Outcome::Lost | Outcome::LaunchFailed, _) => platform_failure(accounts, &policy.budgets, moment),
    }
}

fn unpaid(accounts: &Accounts) -> NextStep {
    let delay_ms = match accounts.unpaid_in_row {
        0 => 0,
        in_row => doubled(1_000, in_row - 1),
    };
    NextStep::Wait { delay_ms }
}

fn user_failure(ended: Ended, accounts: &Accounts, policy: &Policy, moment: Moment) -> NextStep {
    if !ended.retryable {
        return NextStep::Fail(FailReason::NotRetryable);
    }
    // A service is meant to stay up: no number of failures is the last one.
    if policy.kind == JobKind::Task && accounts.retry_count >= policy.budgets.max_retries {
        return NextStep::Fail(FailReason::RetriesExhausted);
    }
    let delay_ms = retry_delay_ms(policy.budgets.backoff_ms, accounts.retry_count, moment.chance);
    NextStep::Retry { delay_ms, payer: Payer::User }
}

fn platform_failure(accounts: &Accounts, budgets: &Budgets, moment: Moment) -> NextStep {
    if accounts.platform_failures >= PLATFORM_LIMIT {
        return NextStep::Fail(FailReason::PlatformFailures);
    }
    let delay_ms = retry_delay_ms(budgets.backoff_ms, accounts.platform_failures, moment.chance);
    NextStep::Retry { delay_ms, payer: Payer::Platform }
}

/// Base × 2ⁿ capped at [`MAX_DELAY_MS`], plus up to a tenth of jitter; never below the (capped) base.
#[must_use]
pub fn retry_delay_ms(base_ms: u64, retries_so_far: u32, chance: u32) -> u64 {
    let delay_ms = doubled(base_ms, retries_so_far);
    delay_ms + (u128::from(delay_ms) * u128::from(chance) / 10 / u128::from(u32::MAX)) as u64
}

fn doubled(base_ms: u64, times: u32) -> u64 {
    2_u64.saturating_pow(times).saturating_mul(base_ms).min(MAX_DELAY_MS)
}

impl Accounts {
    /// The accounts that count at `now`: a service forgets old platform failures.
    #[must_use]
    pub fn at(self, kind: JobKind, now: Timestamp) -> Self {
        let forgets = kind == JobKind::Service
            && self.platform_since.is_some_and(|since| now.ms_since(since) > SERVICE_PLATFORM_WINDOW_MS);
        if forgets { Self { platform_failures: 0, platform_since: None, ..self } } else { self }
    }

    /// The accounts after an attempt ended and `step` followed.
    #[must_use]
    pub fn charged(self, outcome: Outcome, step: NextStep, now: Timestamp) -> Self {
        let evictions = self.evictions.saturating_add(u32::from(outcome == Outcome::Evicted));
        let paid = Self { evictions, unpaid_in_row: 0, ..self };
        match step {
            NextStep::Wait { .. } => {
                Self { evictions, unpaid_in_row: self.unpaid_in_row.saturating_add(1), ..self }
            }
            NextStep::Retry { payer: Payer::User, .. } => {
                Self { retry_count: self.retry_count.saturating_add(1), ..paid }
            }
            NextStep::Retry { .. } => Self {
                platform_failures: self.platform_failures.saturating_add(1),
                platform_since: self.platform_since.or(Some(now)),
                ..paid
            },
            NextStep::Succeed | NextStep::Cancel | NextStep::Fail(_) => paid,
        }
    }
}
