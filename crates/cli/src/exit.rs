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
