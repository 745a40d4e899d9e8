//! What is submitted, as it is stored, and what becomes of it. Made by the caller's own task, before the call queues.

use std::sync::Arc;

use serde_json::Value;

use super::fault::{Fault, Shared};
use crate::encoding::{Prepared, from_json, to_json};
use crate::{Actor, NewJob, StoreError, SubmitError, Submitted};

const DOING: &str = "accepting jobs";

/// One call to `submit`, prepared by its caller.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) jobs: Arc<Vec<Prepared>>,
    pub(super) by: Actor,
}

/// What became of a call.
#[derive(Debug)]
pub(super) enum Answer {
    Done(Vec<Submitted>),
    Refused(SubmitError),
    Failed(Fault),
}

impl Call {
    /// Turns specs into what is stored.
    ///
    /// # Errors
    /// [`StoreError::Inconsistent`] when a spec has no JSON form.
    pub(super) fn new(jobs: Vec<NewJob>, by: &Actor) -> Result<Self, StoreError> {
        let prepare = |job: NewJob| {
            let prepared = Prepared::new(job)?;
            Ok(Prepared { spec: storable(prepared.spec)?, ..prepared })
        };
        let jobs = jobs.into_iter().map(prepare).collect::<Result<_, StoreError>>()?;
        Ok(Self { jobs: Arc::new(jobs), by: by.clone() })
    }

    /// How many jobs.
    pub(super) fn weight(&self) -> usize {
        self.jobs.len()
    }
}

/// JSON as PostgreSQL stores it: NUL, which the doors refuse, becomes visible instead of failing the statement.
fn storable(json: String) -> Result<String, StoreError> {
    if !json.contains("\\u0000") {
        return Ok(json);
    }
    let value: Value = from_json("job", "a new row", &json)?;
    to_json("job", &without_nul(value))
}

fn without_nul(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nul).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (visible(&key), without_nul(value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Text with NUL made visible.
pub(super) fn visible(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl Answer {
    /// As the caller sees it.
    pub(super) fn into_result(self) -> Result<Vec<Submitted>, SubmitError> {
        match self {
            Self::Done(submitted) => Ok(submitted),
            Self::Refused(error) => Err(error),
            Self::Failed(fault) => Err(fault.during(DOING).into()),
        }
    }

    /// A call that came to no end; whether it was carried out can't be told.
    pub(super) fn unknown() -> Self {
        Self::Failed(Fault::Unknown(Shared::new("the transaction was abandoned")))
    }
}
