//! B065: delays that overflow, and with them a retry at once, for ever.

use jobyard_model::lifecycle::Policy;
use jobyard_model::retry::{
    Accounts, Budgets, Ended, MAX_DELAY_MS, NextStep, Payer, next_step, retry_delay_ms,
};
use jobyard_model::{EndedBy, Intent, JobKind, Moment, Outcome, Timestamp};

#[test]
fn delays_double_to_the_longest_and_stay_there() {
    for base_ms in [1, 1_000, 7_919, MAX_DELAY_MS, u64::MAX] {
        let mut last_ms = 0;
        for retries in (0..2_000).chain([u32::MAX - 1, u32::MAX]) {
            let (least, most) =
                (retry_delay_ms(base_ms, retries, 0), retry_delay_ms(base_ms, retries, u32::MAX));
            let doubled = (0..retries.min(64)).fold(base_ms, |delay, _| delay.saturating_mul(2));
            assert_eq!(least, doubled.min(MAX_DELAY_MS), "base {base_ms}, {retries} retries");
            assert!(
                least >= base_ms.min(MAX_DELAY_MS) && least >= last_ms,
                "base {base_ms}, {retries} retries"
            );
            assert!(
                (least..=least + least / 10).contains(&most),
                "base {base_ms}, {retries} retries: {most}"
            );
            last_ms = least;
        }
    }
}

#[test]
fn a_job_that_has_failed_as_often_as_can_be_counted_still_waits_its_longest_delay() {
    let often = Accounts {
        retry_count: u32::MAX,
        platform_failures: 0,
        platform_since: None,
        unpaid_in_row: u32::MAX,
        evictions: u32::MAX,
    };
    let budgets = Budgets { max_retries: 0, backoff_ms: 1_000, no_retry_exit_codes: Vec::new() };
    let policy = Policy { kind: JobKind::Service, budgets, start_within_ms: None, exclusive: false };
    let moment = Moment { now: Timestamp(0), chance: 0 };
    for (outcome, payer) in [
        (Outcome::Failed, Some(Payer::User)),
        (Outcome::Lost, Some(Payer::Platform)),
        (Outcome::Evicted, None),
        (Outcome::NotStarted, None),
    ] {
        let ended = Ended { outcome, ended_by: Some(EndedBy::Itself), retryable: true };
        let step = next_step(Intent::Run, ended, &often, &policy, moment);
        let expected = match payer {
            Some(Payer::Platform) => NextStep::Retry { delay_ms: 1_000, payer: Payer::Platform },
            Some(payer) => NextStep::Retry { delay_ms: MAX_DELAY_MS, payer },
            None => NextStep::Wait { delay_ms: MAX_DELAY_MS },
        };
        assert_eq!(step, expected, "{outcome:?}");
        let charged = often.charged(outcome, step, moment.now);
        assert!(charged.retry_count == u32::MAX && charged.evictions == u32::MAX, "{outcome:?}: {charged:?}");
    }
}
