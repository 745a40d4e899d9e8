//! What a sidecar recorded, in the words of the report door.

use jobyard_handoff::{self as handoff, ExitRecord, FaultClass, ServiceState, TaskExit};
use jobyard_model::{AttemptEnd, EndedBy, Exit, ExitFacts, LastExit, Outputs, ServiceRun, Timestamp, Usage};

/// The end that a record tells of.
pub(crate) fn end_of(record: &ExitRecord) -> AttemptEnd {
    let exit = match (&record.fault, record.exit) {
        (Some(fault), _) if fault.code.class() == FaultClass::User => Exit::Unrunnable,
        (Some(_), _) => Exit::LaunchFault,
        (None, Some(exit)) => exit_of_task(exit),
        // Ended before there was a process: a stop, or a lease that ran out while it waited.
        (None, None) => {
            let why = record
                .message
                .clone()
                .unwrap_or_else(|| format!("ended before it started, by: {}", record.ended_by.name()));
            return AttemptEnd::NotStarted { why };
        }
    };
    AttemptEnd::Exited(ExitFacts {
        ended_by: ended_by(record.ended_by),
        exit,
        message: message(record),
        started_at: record.started_at_ms.map(timestamp),
        ended_at: timestamp(record.ended_at_ms),
        usage: Usage {
            wall_ms: record.usage.wall_ms,
            cpu_user_ms: record.usage.cpu_user_ms,
            cpu_system_ms: record.usage.cpu_system_ms,
            peak_memory_bytes: record.usage.peak_memory_bytes,
            limits: record.limits.clone(),
        },
        outputs: Outputs::None,
    })
}

fn exit_of_task(exit: TaskExit) -> Exit {
    match exit {
        TaskExit::Code(code) => Exit::Code(code),
        TaskExit::Signal(signal) => Exit::Signal(signal),
    }
}

/// How a service stands.
pub(crate) fn service_run(state: &ServiceState) -> ServiceRun {
    ServiceRun {
        restarts: state.restarts,
        last_exit: LastExit {
            exit: exit_of_task(state.last_exit),
            by: if state.out_of_memory { EndedBy::Memory } else { EndedBy::Itself },
            at: timestamp(state.last_exit_at_ms),
        },
        next_start: state.next_start_at_ms.map(timestamp),
    }
}

/// An end without a process, for a reason found by the worker itself.
pub(crate) fn launch_fault(exit: Exit, message: String, now: Timestamp) -> AttemptEnd {
    AttemptEnd::Exited(ExitFacts {
        ended_by: EndedBy::Itself,
        exit,
        message,
        started_at: None,
        ended_at: now,
        usage: Usage { limits: "none".to_owned(), ..Usage::default() },
        outputs: Outputs::None,
    })
}

/// The end that a fault found before the sidecar's start tells of.
pub(crate) fn end_of_fault(fault: &handoff::Fault, now: Timestamp) -> AttemptEnd {
    let exit = match fault.code.class() {
        FaultClass::User => Exit::Unrunnable,
        FaultClass::Platform => Exit::LaunchFault,
    };
    launch_fault(exit, fault.message.clone(), now)
}

fn message(record: &ExitRecord) -> String {
    let fault = record.fault.as_ref().map(|fault| fault.message.as_str());
    let mut parts: Vec<&str> = fault.into_iter().chain(record.message.as_deref()).collect();
    let survivors = format!("{} of its processes could not be killed", record.survivors);
    if record.survivors > 0 {
        parts.push(&survivors);
    }
    parts.join("; ")
}

fn ended_by(by: handoff::EndedBy) -> EndedBy {
    match by {
        handoff::EndedBy::Itself => EndedBy::Itself,
        handoff::EndedBy::Stop => EndedBy::Stop,
        handoff::EndedBy::Timeout => EndedBy::Timeout,
        handoff::EndedBy::Memory => EndedBy::Memory,
        handoff::EndedBy::Shutdown => EndedBy::Shutdown,
        handoff::EndedBy::Lease => EndedBy::Lease,
    }
}

fn timestamp(unix_ms: u64) -> Timestamp {
    Timestamp(i64::try_from(unix_ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use jobyard_handoff::{Fault, FaultCode};

    use super::*;

    fn exit_of(change: impl FnOnce(&mut ExitRecord)) -> AttemptEnd {
        let mut record = ExitRecord::new(handoff::EndedBy::Itself, 9);
        change(&mut record);
        end_of(&record)
    }

    #[test]
    fn a_record_without_a_process_says_whose_fault_it_is() {
        let fault = |code| Some(Fault { code, message: "why".to_owned() });
        let user = exit_of(|record| record.fault = fault(FaultCode::NoSuchProgram));
        let platform = exit_of(|record| record.fault = fault(FaultCode::ForkFailed));
        let AttemptEnd::Exited(user) = user else { unreachable!("{user:?}") };
        let AttemptEnd::Exited(platform) = platform else { unreachable!("{platform:?}") };
        assert_eq!((user.exit, user.message.as_str()), (Exit::Unrunnable, "why"));
        assert_eq!(platform.exit, Exit::LaunchFault);
    }

    #[test]
    fn what_was_stopped_before_it_started_was_not_started() {
        let end = exit_of(|record| record.ended_by = handoff::EndedBy::Stop);
        assert!(matches!(&end, AttemptEnd::NotStarted { why } if why.contains("stop")), "{end:?}");
    }

    #[test]
    fn survivors_are_told() {
        let end = exit_of(|record| {
            record.exit = Some(TaskExit::Code(0));
            record.survivors = 2;
        });
        let AttemptEnd::Exited(facts) = end else { unreachable!("{end:?}") };
        assert_eq!(facts.message, "2 of its processes could not be killed");
    }
}
