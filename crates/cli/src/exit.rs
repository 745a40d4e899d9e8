//! What the command line's exit codes mean.
//!
//! Owns every number. Invariant: a command ends 0 only when what it was asked for is done.

use jobyard_client::Status;
use jobyard_client::json::Job;

/// The job failed, or the server refused.
pub(crate) const FAILED: u8 = 1;
/// The command line can't be carried out as it was written.
pub(crate) const USAGE: u8 = 2;
/// The server was not reached.
pub(crate) const UNREACHABLE: u8 = 3;
/// `wait --timeout`: the time was over first; coreutils' `timeout` says the same.
pub(crate) const TIME_OVER: u8 = 124;
/// The job has no exit code of its own.
pub(crate) const NO_CODE: u8 = 125;
/// Left by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// What `jobyard help exit-codes` prints.
pub(crate) const TOPIC: &str = "\
Exit codes of jobyard:

    0    done
    1    the job failed, or the server refused the call
    2    usage: the command line, a file or a setting can't be used as it is
    3    the server was not reached

`run`, `submit --wait` and `wait` of one job end with the job's own code:

    0          it succeeded
    1-255      the code its task process left with
    128+n      its task process died of signal n
    125        it failed without a code of its own (expired, lost, not started, cancelled before it ran)

`wait` of several jobs ends 0 when all succeeded, else 1. `wait --timeout` ends 124 when the time was over first.
A command that is left by Ctrl-C ends 130.";

/// The exit code of `run` and `wait` for one job that is over. Exit code 0 of a job that did not succeed (stopped,
/// timed out) would say the wrong thing, so that is 125 too.
pub(crate) fn of_job(job: &Job) -> u8 {
    if job.status == Status::Success {
        return 0;
    }
    let Some(result) = &job.result else { return NO_CODE };
    let code = result.exit_code.or_else(|| result.signal.map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(NO_CODE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ended(status: &str, result: &Value) -> Job {
        serde_json::from_value(json!({
            "id": "01890a5d-ac96-774b-bcce-b302099a8057", "owner_id": "o", "submitted_by": "p", "name": "n",
            "kind": "task", "status": status, "reason": "", "binary_url": null, "command": ["x"],
            "created_time": "2026-05-01T09:30:00Z", "started_time": null, "finished_time": null, "run_at": null,
            "start_within": null, "retry_count": 0, "max_retries": 3, "backoff": 1, "no_retry_exit_codes": [],
            "platform_failures": 0, "evictions": 0, "round": 1, "timeout": null, "stop_grace": 10,
            "resources": {"cpu": 1, "memory": 1, "cpu_limit": null}, "io_class": "mixed", "runtime": "process",
            "priority": 50, "preemptible": false, "exclusive": false, "pool": "default", "node_labels": {},
            "labels": {}, "origin": null, "idempotency_key": null, "intent": "run", "attempt": 1, "result": result,
        }))
        .unwrap()
    }

    fn result(outcome: &str, exit_code: Option<i32>, signal: Option<i32>) -> Value {
        json!({"attempt": 1, "outcome": outcome, "exit_code": exit_code, "signal": signal, "message": "", "usage": null})
    }

    #[test]
    fn a_job_ends_the_command_with_its_own_code() {
        for (status, outcome, exit_code, signal, wanted) in [
            ("success", "succeeded", Some(0), None, 0),
            ("success", "stopped", None, Some(15), 0),
            ("final_failed", "failed", Some(3), None, 3),
            ("final_failed", "failed", Some(255), None, 255),
            ("final_failed", "failed", None, Some(11), 139),
            ("final_failed", "oom_killed", None, Some(9), 137),
            // Ended well, but too late: exit code 0 would lie.
            ("final_failed", "timed_out", Some(0), None, 125),
            ("final_failed", "lost", None, None, 125),
            ("final_failed", "failed", Some(-1), None, 125),
            ("final_failed", "failed", None, Some(200), 125),
            ("cancelled", "cancelled", None, Some(15), 143),
            ("cancelled", "cancelled", Some(0), None, 125),
        ] {
            let job = ended(status, &result(outcome, exit_code, signal));
            assert_eq!(of_job(&job), wanted, "{status} {outcome} {exit_code:?} {signal:?}");
        }
    }

    #[test]
    fn a_job_that_never_ran_has_no_code_of_its_own() {
        assert_eq!(of_job(&ended("cancelled", &Value::Null)), 125);
        assert_eq!(of_job(&ended("final_failed", &Value::Null)), 125);
    }
}
