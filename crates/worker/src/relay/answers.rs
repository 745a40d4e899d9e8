//! What the report door's answers mean for whoever waits for them.

use jobyard_api::proto::{self, LogVerdict, ReportVerdict};
use jobyard_handoff::StopReason;

use super::tail::Taken;

pub(super) enum Verdict {
    Done,
    Known,
    Gone,
    Later,
}

impl Verdict {
    /// An answer this version doesn't know is no answer.
    pub(super) fn of(verdict: ReportVerdict) -> Self {
        match verdict {
            ReportVerdict::Accepted => Self::Done,
            ReportVerdict::Already => Self::Known,
            ReportVerdict::Stale | ReportVerdict::Unknown => Self::Gone,
            ReportVerdict::Later | ReportVerdict::Unspecified => Self::Later,
        }
    }
}

pub(super) fn taken(answer: &proto::LogAnswer) -> Taken {
    match answer.verdict() {
        LogVerdict::End | LogVerdict::Gap => Taken::End(answer.end),
        LogVerdict::Refused => Taken::Refused,
        LogVerdict::Later | LogVerdict::Unspecified => Taken::Later,
    }
}

pub(super) fn wanted_stop(intent: u32) -> Option<StopReason> {
    match intent {
        0 => None,
        1 => Some(StopReason::Evict),
        2 => Some(StopReason::Stop),
        _ => Some(StopReason::Cancel),
    }
}
