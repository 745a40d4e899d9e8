//! Between the doors' messages and the model. What comes in is checked: an error names the field and what it should
//! hold. What goes out can't fail.

use std::collections::BTreeMap;

use jobyard_model::node::NodeRegistration;
use jobyard_model::{
    ArtifactHash, AttemptEnd, EndedBy, Exit, ExitFacts, Intent, JobId, LastExit, LeaseId, NodeId, Outputs,
    Resources, Runtime, ServiceRun, SessionId, Timestamp, Usage,
};
use thiserror::Error;
use uuid::Uuid;

use crate::proto;
use crate::proto::exit_facts::Outputs as WireOutputs;

/// A message that does not say what it should.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ConvertError {
    /// Ids are 16 bytes, hashes 32.
    #[error("`{field}` holds {found} bytes instead of {expected}")]
    WrongLength {
        /// Which field.
        field: &'static str,
        /// How many it holds.
        found: usize,
        /// How many it should.
        expected: usize,
    },
    /// A field without which the message says nothing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A number or word that this version does not know.
    #[error("`{field}` holds `{found}`, which this version does not know")]
    Unknown {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
}

fn exactly<const LENGTH: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; LENGTH], ConvertError> {
    bytes.try_into().map_err(|_| ConvertError::WrongLength { field, found: bytes.len(), expected: LENGTH })
}

/// A job's id from its 16 bytes.
pub fn job_id(bytes: &[u8]) -> Result<JobId, ConvertError> {
    exactly("job_id", bytes).map(|bytes| JobId(Uuid::from_bytes(bytes)))
}

/// A lease's id from its 16 bytes.
pub fn lease_id(bytes: &[u8]) -> Result<LeaseId, ConvertError> {
    exactly("lease_id", bytes).map(|bytes| LeaseId(Uuid::from_bytes(bytes)))
}

/// A node's id from its 16 bytes.
pub fn node_id(bytes: &[u8]) -> Result<NodeId, ConvertError> {
    exactly("node_id", bytes).map(|bytes| NodeId(Uuid::from_bytes(bytes)))
}

/// A session's id from its 16 bytes.
pub fn session_id(bytes: &[u8]) -> Result<SessionId, ConvertError> {
    exactly("session", bytes).map(|bytes| SessionId(Uuid::from_bytes(bytes)))
}

/// An artifact's hash from its 32 bytes.
pub fn artifact_hash(bytes: &[u8]) -> Result<ArtifactHash, ConvertError> {
    exactly("sha256", bytes).map(ArtifactHash)
}

/// An id's bytes for the wire.
#[must_use]
pub fn id_bytes(id: Uuid) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(id.as_bytes())
}

/// The intent with this number.
pub fn intent(code: u32) -> Result<Intent, ConvertError> {
    i16::try_from(code)
        .ok()
        .and_then(Intent::from_code)
        .ok_or_else(|| ConvertError::Unknown { field: "intent", found: code.to_string() })
}

/// The number of an intent.
#[must_use]
pub fn intent_code(intent: Intent) -> u32 {
    u32::from(intent.code().unsigned_abs())
}

/// One thing a worker says about one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptReport {
    /// Which job.
    pub job_id: JobId,
    /// The attempt's number.
    pub attempt: u32,
    /// The fence.
    pub lease_id: LeaseId,
    /// What.
    pub what: Said,
}

/// What a worker says of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The worker took it.
    Accepted,
    /// The task process exists.
    Started,
    /// The task process ended, and its outputs are going up.
    Finishing,
    /// It lives.
    Renewed,
    /// Of a service: its task process left, or was started again.
    Service(ServiceRun),
    /// It is over.
    Ended(AttemptEnd),
}

impl From<&AttemptReport> for proto::Report {
    fn from(report: &AttemptReport) -> Self {
        use proto::report::What;
        let what = match &report.what {
            Said::Accepted => What::Accepted(proto::Accepted {}),
            Said::Started => What::Started(proto::Started {}),
            Said::Finishing => What::Finishing(proto::Finishing {}),
            Said::Renewed => What::Renewed(proto::Renewed {}),
            Said::Service(run) => What::Service(run.into()),
            Said::Ended(AttemptEnd::Exited(facts)) => What::Exited(facts.into()),
            Said::Ended(AttemptEnd::Vanished { why }) => What::Vanished(proto::Vanished { why: why.clone() }),
            Said::Ended(AttemptEnd::NotStarted { why }) => {
                What::NotStarted(proto::NotStarted { why: why.clone() })
            }
            // Silence is the datastore's verdict; nobody can report it. The nearest thing a witness can say:
            Said::Ended(AttemptEnd::Silent) => What::Vanished(proto::Vanished { why: "silent".to_owned() }),
        };
        Self {
            job_id: id_bytes(report.job_id.0),
            attempt: report.attempt,
            lease_id: id_bytes(report.lease_id.0),
            what: Some(what),
        }
    }
}

impl TryFrom<&proto::Report> for AttemptReport {
    type Error = ConvertError;

    fn try_from(report: &proto::Report) -> Result<Self, ConvertError> {
        use proto::report::What;
        let what = match report.what.as_ref().ok_or(ConvertError::Missing("what"))? {
            What::Accepted(_) => Said::Accepted,
            What::Started(_) => Said::Started,
            What::Finishing(_) => Said::Finishing,
            What::Renewed(_) => Said::Renewed,
            What::Service(run) => Said::Service(run.try_into()?),
            What::Exited(facts) => Said::Ended(AttemptEnd::Exited(facts.try_into()?)),
            What::Vanished(vanished) => Said::Ended(AttemptEnd::Vanished { why: vanished.why.clone() }),
            What::NotStarted(not_started) => {
                Said::Ended(AttemptEnd::NotStarted { why: not_started.why.clone() })
            }
        };
        Ok(Self {
            job_id: job_id(&report.job_id)?,
            attempt: report.attempt,
            lease_id: lease_id(&report.lease_id)?,
            what,
        })
    }
}

impl From<&ServiceRun> for proto::ServiceRun {
    fn from(run: &ServiceRun) -> Self {
        use proto::service_run::LastExit as Wire;
        let last_exit = match run.last_exit.exit {
            Exit::Code(code) => Some(Wire::Code(code)),
            Exit::Signal(signal) => Some(Wire::Signal(signal)),
            // A process that never was can't leave.
            Exit::Unrunnable | Exit::LaunchFault => None,
        };
        Self {
            restarts: run.restarts,
            ended_by: ended_by_to_wire(run.last_exit.by).into(),
            exited_at: run.last_exit.at.0,
            next_start: run.next_start.map_or(0, |at| at.0),
            last_exit,
        }
    }
}

impl TryFrom<&proto::ServiceRun> for ServiceRun {
    type Error = ConvertError;

    fn try_from(run: &proto::ServiceRun) -> Result<Self, ConvertError> {
        use proto::service_run::LastExit as Wire;
        let exit = match run.last_exit.ok_or(ConvertError::Missing("last_exit"))? {
            Wire::Code(code) => Exit::Code(code),
            Wire::Signal(signal) => Exit::Signal(signal),
        };
        Ok(Self {
            restarts: run.restarts,
            last_exit: LastExit { exit, by: ended_by_from_wire(run.ended_by)?, at: Timestamp(run.exited_at) },
            next_start: (run.next_start != 0).then_some(Timestamp(run.next_start)),
        })
    }
}

impl From<&ExitFacts> for proto::ExitFacts {
    fn from(facts: &ExitFacts) -> Self {
        use proto::exit_facts::Exit as Wire;
        Self {
            ended_by: ended_by_to_wire(facts.ended_by).into(),
            exit: Some(match facts.exit {
                Exit::Code(code) => Wire::Code(code),
                Exit::Signal(signal) => Wire::Signal(signal),
                Exit::Unrunnable => Wire::Unrunnable(true),
                Exit::LaunchFault => Wire::Unrunnable(false),
            }),
            message: facts.message.clone(),
            started_at: facts.started_at.map_or(0, |at| at.0),
            ended_at: facts.ended_at.0,
            wall_ms: facts.usage.wall_ms,
            cpu_user_ms: facts.usage.cpu_user_ms,
            cpu_system_ms: facts.usage.cpu_system_ms,
            peak_memory_bytes: facts.usage.peak_memory_bytes,
            limits: facts.usage.limits.clone(),
            outputs: match facts.outputs {
                Outputs::None => None,
                Outputs::Kept(hash) => Some(WireOutputs::OutputsKept(hash.0.to_vec().into())),
                Outputs::Refused => Some(WireOutputs::OutputsRefused(true)),
                Outputs::Late => Some(WireOutputs::OutputsRefused(false)),
            },
        }
    }
}

impl TryFrom<&proto::ExitFacts> for ExitFacts {
    type Error = ConvertError;

    fn try_from(facts: &proto::ExitFacts) -> Result<Self, ConvertError> {
        use proto::exit_facts::Exit as Wire;
        let exit = match facts.exit.ok_or(ConvertError::Missing("exit"))? {
            Wire::Code(code) => Exit::Code(code),
            Wire::Signal(signal) => Exit::Signal(signal),
            Wire::Unrunnable(true) => Exit::Unrunnable,
            Wire::Unrunnable(false) => Exit::LaunchFault,
        };
        Ok(Self {
            ended_by: ended_by_from_wire(facts.ended_by)?,
            exit,
            message: facts.message.clone(),
            started_at: (facts.started_at != 0).then_some(Timestamp(facts.started_at)),
            ended_at: Timestamp(facts.ended_at),
            usage: Usage {
                wall_ms: facts.wall_ms,
                cpu_user_ms: facts.cpu_user_ms,
                cpu_system_ms: facts.cpu_system_ms,
                peak_memory_bytes: facts.peak_memory_bytes,
                limits: facts.limits.clone(),
            },
            outputs: match &facts.outputs {
                None => Outputs::None,
                Some(WireOutputs::OutputsKept(hash)) => Outputs::Kept(artifact_hash(hash)?),
                Some(WireOutputs::OutputsRefused(true)) => Outputs::Refused,
                Some(WireOutputs::OutputsRefused(false)) => Outputs::Late,
            },
        })
    }
}

fn ended_by_to_wire(ended_by: EndedBy) -> proto::EndedBy {
    match ended_by {
        EndedBy::Itself => proto::EndedBy::Itself,
        EndedBy::Stop => proto::EndedBy::Stop,
        EndedBy::Timeout => proto::EndedBy::Timeout,
        EndedBy::Memory => proto::EndedBy::Memory,
        EndedBy::Shutdown => proto::EndedBy::Shutdown,
        EndedBy::Lease => proto::EndedBy::Lease,
    }
}

fn ended_by_from_wire(code: i32) -> Result<EndedBy, ConvertError> {
    let known = proto::EndedBy::try_from(code)
        .map_err(|_| ConvertError::Unknown { field: "ended_by", found: code.to_string() })?;
    Ok(match known {
        proto::EndedBy::Itself => EndedBy::Itself,
        proto::EndedBy::Stop => EndedBy::Stop,
        proto::EndedBy::Timeout => EndedBy::Timeout,
        proto::EndedBy::Memory => EndedBy::Memory,
        proto::EndedBy::Shutdown => EndedBy::Shutdown,
        proto::EndedBy::Lease => EndedBy::Lease,
    })
}

impl From<&NodeRegistration> for proto::RegisterRequest {
    fn from(node: &NodeRegistration) -> Self {
        Self {
            node_id: id_bytes(node.node_id.0),
            session: id_bytes(node.session.0),
            boot_id: node.boot_id.clone(),
            name: node.name.clone(),
            pool: node.pool.clone(),
            cpu_milli: node.capacity.cpu_milli,
            memory_bytes: node.capacity.memory_bytes,
            max_attempts: node.max_attempts,
            labels: node.labels.clone().into_iter().collect(),
            runtimes: node.runtimes.iter().map(|runtime| runtime.as_str().to_owned()).collect(),
            containment: node.containment.clone(),
            door: node.door.clone(),
            version: node.version.clone(),
        }
    }
}

impl TryFrom<&proto::RegisterRequest> for NodeRegistration {
    type Error = ConvertError;

    fn try_from(node: &proto::RegisterRequest) -> Result<Self, ConvertError> {
        if node.boot_id.is_empty() {
            return Err(ConvertError::Missing("boot_id"));
        }
        Ok(Self {
            node_id: node_id(&node.node_id)?,
            session: session_id(&node.session)?,
            boot_id: node.boot_id.clone(),
            name: node.name.clone(),
            pool: node.pool.clone(),
            capacity: Resources { cpu_milli: node.cpu_milli, memory_bytes: node.memory_bytes },
            max_attempts: node.max_attempts,
            labels: node.labels.clone().into_iter().collect::<BTreeMap<_, _>>(),
            // A newer worker may offer what this server can't place yet.
            runtimes: node.runtimes.iter().filter_map(|name| runtime(name).ok()).collect(),
            containment: node.containment.clone(),
            door: node.door.clone(),
            version: node.version.clone(),
        })
    }
}

/// The runtime with this name.
pub fn runtime(name: &str) -> Result<Runtime, ConvertError> {
    match name {
        "process" => Ok(Runtime::Process),
        _ => Err(ConvertError::Unknown { field: "runtime", found: name.chars().take(80).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(what: Said) -> AttemptReport {
        let id = Uuid::from_u128(7);
        AttemptReport { job_id: JobId(id), attempt: 3, lease_id: LeaseId(id), what }
    }

    fn facts(exit: Exit, ended_by: EndedBy) -> ExitFacts {
        let usage = Usage { wall_ms: 1, cpu_user_ms: 2, limits: "none".to_owned(), ..Usage::default() };
        let (started_at, ended_at) = (Some(Timestamp(5)), Timestamp(9));
        let outputs = Outputs::None;
        ExitFacts { ended_by, exit, message: "m".to_owned(), started_at, ended_at, usage, outputs }
    }

    #[test]
    fn a_report_reads_back_as_it_was_said() {
        let mut said = vec![
            Said::Accepted,
            Said::Started,
            Said::Finishing,
            Said::Renewed,
            Said::Ended(AttemptEnd::Vanished { why: "v".to_owned() }),
            Said::Ended(AttemptEnd::NotStarted { why: "n".to_owned() }),
        ];
        for (exit, by) in [(Exit::Code(0), EndedBy::Itself), (Exit::Signal(9), EndedBy::Memory)] {
            let last_exit = LastExit { exit, by, at: Timestamp(7) };
            for next_start in [None, Some(Timestamp(8))] {
                said.push(Said::Service(ServiceRun { restarts: 2, last_exit, next_start }));
            }
        }
        for exit in [Exit::Code(0), Exit::Code(255), Exit::Signal(9), Exit::Unrunnable, Exit::LaunchFault] {
            for ended_by in EndedBy::ALL {
                said.push(Said::Ended(AttemptEnd::Exited(facts(exit, ended_by))));
            }
        }
        for outputs in [Outputs::Kept(ArtifactHash([7; 32])), Outputs::Refused, Outputs::Late] {
            let facts = ExitFacts { outputs, ..facts(Exit::Code(0), EndedBy::Itself) };
            said.push(Said::Ended(AttemptEnd::Exited(facts)));
        }
        for said in said {
            let report = report(said);
            assert_eq!(AttemptReport::try_from(&proto::Report::from(&report)), Ok(report));
        }
    }

    #[test]
    fn a_malformed_report_is_refused_and_says_where() {
        let good = proto::Report::from(&report(Said::Accepted));
        let short = proto::Report { lease_id: bytes::Bytes::from_static(b"short"), ..good.clone() };
        let told = AttemptReport::try_from(&short).unwrap_err().to_string();
        assert_eq!(told, "`lease_id` holds 5 bytes instead of 16");
        let empty = proto::Report { what: None, ..good.clone() };
        assert_eq!(AttemptReport::try_from(&empty), Err(ConvertError::Missing("what")));
        let exited = proto::report::What::Exited(proto::ExitFacts::default());
        let without = proto::Report { what: Some(exited), ..good.clone() };
        assert_eq!(AttemptReport::try_from(&without), Err(ConvertError::Missing("exit")));
        let service = proto::report::What::Service(proto::ServiceRun::default());
        let without = proto::Report { what: Some(service), ..good };
        assert_eq!(AttemptReport::try_from(&without), Err(ConvertError::Missing("last_exit")));
        let foreign = proto::ExitFacts {
            exit: Some(proto::exit_facts::Exit::Code(1)),
            ended_by: 99,
            ..proto::ExitFacts::default()
        };
        let told = ExitFacts::try_from(&foreign).unwrap_err().to_string();
        assert_eq!(told, "`ended_by` holds `99`, which this version does not know");
    }

    #[test]
    fn intents_keep_their_numbers_and_others_are_refused() {
        for wanted in Intent::ALL {
            assert_eq!(intent(intent_code(wanted)), Ok(wanted));
        }
        assert!(intent(4).is_err());
        assert!(intent(u32::MAX).is_err());
    }
}
