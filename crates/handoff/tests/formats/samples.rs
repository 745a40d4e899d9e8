//! One of each, with every field set to something that could be mixed up with nothing else.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use jobyard_handoff::{
    AttemptIdentity, Containment, EndedBy, Environment, ExecPlan, ExitRecord, Fault, FaultCode, FromSidecar,
    Groups, Hello, LogPlan, RestartPlan, ServiceState, SidecarPhase, StopReason, TaskExit, Times, ToSidecar,
    Usage, UserIds,
};

pub(crate) fn identity() -> AttemptIdentity {
    AttemptIdentity {
        job_id: "0192f0c1-7c1e-7000-8000-000000000001".into(),
        attempt: 3,
        lease_id: "5a7e".into(),
    }
}

pub(crate) fn plan() -> ExecPlan {
    ExecPlan {
        boot_id: "b3c1f2a0-0000-4000-8000-00000000000b".into(),
        identity: identity(),
        program: "/bin/sh".into(),
        arguments: vec!["sh".into(), OsString::from_vec(b"not \xff utf-8\n".to_vec()), "".into()],
        directory: "/scratch/17/work".into(),
        scratch: Some("/scratch/17".into()),
        user: Some(UserIds { uid: 700_017, gid: 700_018, private: true }),
        containment: Containment::Cgroup,
        groups: Groups {
            memory_v1: Some("/sys/fs/cgroup/memory/jobyard-n1/a17".into()),
            cpu_v1: Some("/sys/fs/cgroup/cpu/jobyard-n1/a17".into()),
            pids_v1: Some("/sys/fs/cgroup/pids/jobyard-n1/a17".into()),
            unified: Some("/sys/fs/cgroup/unified/jobyard-n1/a17".into()),
            unified_memory: false,
        },
        memory_limit_bytes: Some(128 << 20),
        times: Times {
            timeout_ms: 1,
            stop_grace_ms: 2,
            heartbeat_ms: 3,
            lease_ms: 4,
            lease_margin_ms: 5,
            orphan_limit_ms: 6,
        },
        exclusive: true,
        restart: None,
        log: LogPlan { path: "/var/lib/jobyard/logs/17".into(), limit_bytes: 7 },
    }
}

pub(crate) fn service_plan() -> ExecPlan {
    let restart = RestartPlan {
        first_delay_ms: 21,
        longest_delay_ms: 22,
        calm_ms: 23,
        final_exit_codes: vec![64, 255],
    };
    ExecPlan { restart: Some(restart), ..plan() }
}

pub(crate) fn environment() -> Environment {
    let odd = OsString::from_vec(b"a=b\n\xfe".to_vec());
    Environment {
        secret: false,
        variables: vec![("PATH".into(), "/bin".into()), ("ODD".into(), odd), ("E".into(), "".into())],
    }
}

pub(crate) fn record() -> ExitRecord {
    ExitRecord {
        ended_by: EndedBy::Timeout,
        exit: Some(TaskExit::Signal(9)),
        fault: None,
        message: Some("it ran longer than its limit of 5 s".into()),
        started_at_ms: Some(1_790_000_000_000),
        ended_at_ms: 1_790_000_005_100,
        usage: Usage {
            wall_ms: 5_100,
            cpu_user_ms: 11,
            cpu_system_ms: 12,
            peak_memory_bytes: 13,
            stdout_bytes: 14,
            stderr_bytes: 15,
            log_file_bytes: 61,
            log_truncated: true,
        },
        limits: "cgroup-v1".into(),
        survivors: 2,
    }
}

pub(crate) fn failed_launch() -> ExitRecord {
    let mut record = ExitRecord::new(EndedBy::Itself, 1_790_000_000_001);
    let message = "no such program: /no/such does not exist on the node".into();
    record.fault = Some(Fault { code: FaultCode::NoSuchProgram, message });
    record
}

pub(crate) fn to_sidecar() -> Vec<ToSidecar> {
    let mut frames = vec![
        ToSidecar::Go { sent_at_boottime_ms: 1 },
        ToSidecar::Renewed { sent_at_boottime_ms: u64::MAX },
        ToSidecar::AckOutcome,
    ];
    for reason in [StopReason::Stop, StopReason::Evict, StopReason::Cancel, StopReason::Stale] {
        frames.push(ToSidecar::Stop { reason, grace_ms: 10_000 });
    }
    let directory = OsString::from_vec(b"/run/not \xff utf-8/17".to_vec()).into();
    frames.push(ToSidecar::Begin { directory });
    frames
}

pub(crate) fn from_sidecar() -> Vec<FromSidecar> {
    let hello = |phase, started_at_ms| {
        FromSidecar::Hello(Hello {
            identity: identity(),
            phase,
            started_at_ms,
            main_pid: 4_242,
            log_file_bytes: 61,
        })
    };
    vec![
        hello(SidecarPhase::Waiting, None),
        hello(SidecarPhase::Starting, None),
        hello(SidecarPhase::Running, Some(1_790_000_000_000)),
        hello(SidecarPhase::Ending, Some(1_790_000_000_000)),
        hello(SidecarPhase::Ended, Some(1_790_000_000_000)),
        FromSidecar::Started { started_at_ms: 1_790_000_000_000, main_pid: 4_242 },
        FromSidecar::Heartbeat { sent_at_boottime_ms: 99 },
        FromSidecar::LogGrew { file_bytes: 61 },
        FromSidecar::Ended(Box::new(record())),
        FromSidecar::Ended(Box::new(failed_launch())),
        FromSidecar::Idle,
    ]
}

/// Those of a service.
pub(crate) fn from_service() -> Vec<FromSidecar> {
    let left = ServiceState {
        restarts: 2,
        last_exit: TaskExit::Signal(9),
        out_of_memory: true,
        last_exit_at_ms: 1_790_000_000_500,
        next_start_at_ms: Some(1_790_000_004_500),
    };
    let up = ServiceState { restarts: 3, next_start_at_ms: None, ..left };
    let hello = Hello {
        identity: identity(),
        phase: SidecarPhase::BackingOff,
        started_at_ms: Some(1_790_000_000_000),
        main_pid: 0,
        log_file_bytes: 61,
    };
    vec![
        FromSidecar::Hello(hello),
        FromSidecar::Service(left),
        FromSidecar::Service(up),
        FromSidecar::Service(ServiceState { last_exit: TaskExit::Code(255), out_of_memory: false, ..up }),
    ]
}

/// A log of two streams with bytes that are not text.
pub(crate) fn log() -> Vec<u8> {
    use jobyard_handoff::log::{Stream, header};
    let mut bytes = Vec::new();
    for (at_ms, stream, data) in [
        (1_790_000_000_010, Stream::Stdout, &b"hello\n"[..]),
        (1_790_000_000_020, Stream::Stderr, b"\xff\0\n"),
        (1_790_000_000_030, Stream::Stdout, b"no newline"),
    ] {
        bytes.extend_from_slice(&header(at_ms, stream, data.len()));
        bytes.extend_from_slice(data);
    }
    bytes
}
