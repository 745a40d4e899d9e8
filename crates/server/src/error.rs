//! Everything a call can be answered instead of what it asked for: a variant for each thing a client does
//! differently, and the one mapping to HTTP (RFC 9457).
//!
//! Invariant: an answer never holds more than the client may know; what else there is to say goes to the log, once,
//! here.

use std::error::Error as StdError;
use std::io;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jobyard_api::json::{PROBLEM_CONTENT_TYPE, Problem, ProblemError};
use jobyard_api::strict::{Fault, FaultCode, Faults, Pointer};
use jobyard_model::{JobId, Role, Status};
use jobyard_store::StoreError;
use jobyard_tree::ManifestError;
use thiserror::Error;

use crate::artifact_store::{ArtifactStoreError, PutError};
use crate::code::Code;
use crate::secrets::SealError;
use crate::trees::KeepTreeError;

/// See the module.
#[derive(Debug, Error)]
pub(crate) enum ApiError {
    #[error("the request has faults")]
    Faults(Faults),
    #[error("no token, or none that is valid")]
    Unauthenticated,
    #[error("a page elsewhere asks")]
    ForeignOrigin,
    #[error("needs the role {needed:?}")]
    WrongRole { needed: Role },
    #[error("acts for other owners")]
    ForeignOwner { errors: Vec<ProblemError> },
    #[error("there is no such {what}")]
    NotFound { what: &'static str },
    #[error("the path exists, with another method")]
    WrongMethod,
    #[error("the key was used for {job_id}")]
    KeyConflict { job_id: JobId, pointer: String },
    #[error("a job in status {status} can't be retried")]
    NotOver { status: Status },
    #[error("a task can't be stopped")]
    NotAService,
    #[error("owner {owner} has {limit} jobs")]
    TooManyJobs { owner: String, limit: u64 },
    #[error("another view has that name")]
    NameTaken,
    #[error("the view was changed since it was read")]
    ChangedMeanwhile,
    #[error("the door for {calls} is full")]
    Busy { calls: &'static str },
    #[error("the body has more than {most_bytes} bytes")]
    BodyTooLarge { most_bytes: u64 },
    #[error("the head did not come in time")]
    HeadTooSlow,
    #[error("the body did not come in time")]
    BodyTooSlow,
    #[error("the body broke off")]
    BodyBrokeOff(#[source] axum::Error),
    #[error("the range lies outside of {size_bytes} bytes")]
    RangeNotSatisfiable { size_bytes: u64 },
    #[error("the server can't serve: {why}")]
    NotReady { why: &'static str },
    #[error("the cursor is older than what is kept, or of another datastore")]
    CursorExpired,
    #[error("the log was dropped after {keep_days} days")]
    LogDropped { keep_days: u32 },
    #[error("the upload failed")]
    Upload(#[from] PutError),
    #[error("the tree was not kept")]
    Tree(#[from] KeepTreeError),
    #[error("the datastore failed")]
    Store(#[from] StoreError),
    #[error("the job's secrets were not kept")]
    Seal(#[from] SealError),
    #[error("the artifact store failed while {doing}")]
    ArtifactStore {
        doing: &'static str,
        #[source]
        source: ArtifactStoreError,
    },
}

impl ApiError {
    /// One fault of a query parameter, a path part or a header.
    pub(crate) fn fault(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Self {
        Self::Faults(Faults::from(Fault { pointer: pointer.into(), code, detail: detail.into() }))
    }
}

impl From<Faults> for ApiError {
    fn from(faults: Faults) -> Self {
        Self::Faults(faults)
    }
}

/// What an error becomes.
struct Answer {
    code: Code,
    detail: String,
    retry_after_seconds: Option<u32>,
    errors: Vec<ProblemError>,
}

fn answer(code: Code, detail: impl Into<String>) -> Answer {
    Answer { code, detail: detail.into(), retry_after_seconds: None, errors: Vec::new() }
}

impl Answer {
    fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_seconds: Some(seconds), ..self }
    }

    fn errors(self, errors: Vec<ProblemError>) -> Self {
        Self { errors, ..self }
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Faults(faults) => bad_input(&faults),
            ApiError::Unauthenticated => answer(
                Code::Unauthenticated,
                "this call needs a valid token: send it as `Authorization: Bearer <token>`, or sign in",
            ),
            ApiError::ForeignOrigin => answer(
                Code::ForeignOrigin,
                "a session's cookie serves only pages of this server: a change must say that it comes from one (`Sec-Fetch-Site: same-origin`, or an `Origin` that is the `Host`); programs send a token instead",
            ),
            ApiError::WrongRole { needed } => {
                let detail = format!("this call needs a token with the role `{}` or above", needed.as_str());
                answer(Code::RoleTooWeak, detail)
            }
            ApiError::ForeignOwner { errors } => answer(
                Code::ForeignOwner,
                "the token does not act for the owner of this job; see the owners it acts for with GET /api/v1/me",
            )
            .errors(errors),
            ApiError::NotFound { what } => {
                answer(Code::NotFound, format!("there is no such {what}"))
            }
            ApiError::WrongMethod => answer(
                Code::MethodNotAllowed,
                "this path does not take that method; see /api/v1/openapi.json",
            ),
            ApiError::KeyConflict { .. }
            | ApiError::NotOver { .. }
            | ApiError::NotAService
            | ApiError::NameTaken
            | ApiError::ChangedMeanwhile
            | ApiError::CursorExpired => conflict(error),
            ApiError::LogDropped { keep_days } => {
                let detail = format!("this log was dropped: logs are kept for {keep_days} days (`server.keep_logs_days`)");
                answer(Code::LogDropped, detail)
            }
            ApiError::NotReady { why } => {
                answer(Code::NotReady, why).retry_after(1)
            }
            ApiError::TooManyJobs { owner, limit } => {
                let detail = format!("owner `{owner}` has {limit} jobs that are not over, the most allowed; wait for some to end, or cancel some");
                answer(Code::TooManyJobs, detail).retry_after(30)
            }
            ApiError::Busy { calls } => {
                let detail = format!("too many {calls} at a time; try again after the time in Retry-After");
                answer(Code::TooBusy, detail).retry_after(1)
            }
            ApiError::BodyTooLarge { .. }
            | ApiError::HeadTooSlow
            | ApiError::BodyTooSlow
            | ApiError::BodyBrokeOff(_)
            | ApiError::RangeNotSatisfiable { .. } => transfer(&error),
            ApiError::Upload(error) => upload(&error),
            ApiError::Tree(error) => tree(&error),
            ApiError::Store(error) => store(&error),
            ApiError::Seal(_) => internal(&error),
            ApiError::ArtifactStore { ref source, .. } => artifact_store(source, &error),
        }
    }
}

fn bad_input(faults: &Faults) -> Answer {
    let listed = faults.listed();
    let only_later = listed.iter().all(|fault| fault.code == FaultCode::NotAvailableYet);
    let code = if only_later { Code::NotAvailableYet } else { Code::InvalidRequest };
    let detail = match (listed, faults.left_out()) {
        ([only], 0) if only.pointer.is_empty() => only.detail.clone(),
        ([only], 0) => format!("{}: {}", only.pointer, only.detail),
        (_, 0) => format!("the request has {} faults; see `errors`", listed.len()),
        (_, left_out) => {
            format!("the request has {} faults; `errors` has the first ones", listed.len() + left_out)
        }
    };
    let errors = listed.iter().map(|fault| ProblemError {
        pointer: fault.pointer.clone(),
        detail: fault.detail.clone(),
        code: fault.code.as_str().to_owned(),
    });
    answer(code, detail).errors(errors.collect())
}

fn conflict(error: ApiError) -> Answer {
    match error {
        ApiError::KeyConflict { job_id, pointer } => {
            let detail =
                format!("this idempotency key made another job, {job_id}; use a new key for a new job");
            let errors =
                vec![ProblemError { pointer, detail: detail.clone(), code: "key_reused".to_owned() }];
            answer(Code::IdempotencyKeyReused, detail).errors(errors)
        }
        ApiError::NotOver { status } => {
            let detail =
                format!("only a job that failed or was cancelled can be retried; this one is `{status}`");
            answer(Code::NotRetryable, detail)
        }
        ApiError::NotAService => answer(
            Code::NotAService,
            "only a service can be stopped, and ends well then; this job is a task, which can be cancelled",
        ),
        ApiError::NameTaken => answer(
            Code::NameTaken,
            "another view of its maker has that name; choose another, or change that one",
        ),
        ApiError::ChangedMeanwhile => answer(
            Code::ChangedMeanwhile,
            "it was changed since it was read; nothing was changed now: read it afresh",
        ),
        _ => answer(
            Code::CursorExpired,
            "this cursor is older than the events that are kept, or of another datastore: read afresh what you follow, then follow without a cursor",
        ),
    }
}

const BODY_TOO_SLOW: &str = "the body did not arrive in time; nothing was changed, send it again";

fn transfer(error: &ApiError) -> Answer {
    match error {
        ApiError::BodyTooLarge { most_bytes } => {
            let detail = format!("the body may have at most {most_bytes} bytes");
            answer(Code::BodyTooLarge, detail)
        }
        ApiError::HeadTooSlow => {
            answer(Code::HeadTooSlow, "the request's head did not arrive in time; send it again")
        }
        ApiError::BodyTooSlow => answer(Code::BodyTooSlow, BODY_TOO_SLOW),
        ApiError::RangeNotSatisfiable { size_bytes } => {
            let detail = format!("the range lies outside of the artifact's {size_bytes} bytes");
            answer(Code::RangeNotSatisfiable, detail)
        }
        _ => answer(Code::BodyBrokeOff, "the body broke off; nothing was changed"),
    }
}

fn upload(error: &PutError) -> Answer {
    match error {
        PutError::Mismatch { .. } => answer(
            Code::HashMismatch,
            format!("{error}; the file may have changed while it was sent: hash it again"),
        ),
        PutError::TooLarge { .. } => answer(Code::BodyTooLarge, error.to_string()),
        PutError::BrokeOff(why) if why.kind() == io::ErrorKind::TimedOut => {
            answer(Code::BodyTooSlow, BODY_TOO_SLOW)
        }
        PutError::BrokeOff(_) => answer(Code::BodyBrokeOff, "the upload broke off; nothing was stored"),
        PutError::Store(source) => artifact_store(source, error),
    }
}

/// `error` also says what was being done.
fn artifact_store(source: &ArtifactStoreError, error: &(dyn StdError + 'static)) -> Answer {
    match source {
        ArtifactStoreError::Full(_) => {
            tracing::error!(error = chain(error), "the artifact store is full");
            let detail = "the artifact store is full; nothing was stored";
            answer(Code::ArtifactStoreFull, detail).retry_after(30)
        }
        ArtifactStoreError::Away(_) => {
            tracing::warn!(error = chain(error), "a call failed for the artifact store's sake");
            let detail = "the artifact store can't be reached; nothing was changed, try again";
            answer(Code::ArtifactStoreUnavailable, detail).retry_after(5)
        }
        ArtifactStoreError::Refused(_) => {
            tracing::error!(error = chain(error), "a call failed for the artifact store's sake");
            let detail = "the artifact store refuses this server: an operator has to act, and finds what to do in its log; nothing was changed";
            answer(Code::ArtifactStoreUnavailable, detail).retry_after(30)
        }
        ArtifactStoreError::Failed(_) => internal(error),
    }
}

fn tree(error: &KeepTreeError) -> Answer {
    match error {
        KeepTreeError::Mismatch { .. } => answer(Code::HashMismatch, error.to_string()),
        KeepTreeError::Manifest(ManifestError::TooLarge) => answer(Code::BodyTooLarge, error.to_string()),
        KeepTreeError::Manifest(_) | KeepTreeError::WrongSize { .. } => {
            answer(Code::InvalidRequest, chain(error))
        }
        KeepTreeError::Lacking(lacking) => {
            let named = lacking.named.iter().map(|(path, hash)| ProblemError {
                pointer: Pointer::Root.field("files").field(path).to_string(),
                detail: format!("the artifact {hash} is missing"),
                code: "missing".to_owned(),
            });
            let detail = format!("{error}: upload them, then send the manifest again");
            answer(Code::TreeIncomplete, detail).errors(named.collect())
        }
        KeepTreeError::Put(error) => upload(error),
        KeepTreeError::Store(error) => store(error),
    }
}

fn store(error: &StoreError) -> Answer {
    let unavailable = |code: Code, detail, seconds| {
        tracing::warn!(error = chain(error), code = code.as_str(), "a call failed for the datastore's sake");
        answer(code, detail).retry_after(seconds)
    };
    match error {
        StoreError::Unavailable { .. } | StoreError::Refused { .. } => unavailable(
            Code::DatastoreUnavailable,
            "the datastore can't be reached; nothing was changed, try again",
            1,
        ),
        StoreError::Unknown { .. } => unavailable(
            Code::OutcomeUnknown,
            "the connection to the datastore broke while it was saving: the change may have been made; the call can be repeated without harm if it has an idempotency key",
            1,
        ),
        StoreError::Full { .. } => {
            unavailable(Code::DatastoreFull, "the datastore is full; nothing was accepted", 30)
        }
        StoreError::TooSlow { .. } => unavailable(
            Code::ReadTooSlow,
            "this look over many rows took longer than it may; a narrower filter takes less, and nothing else was held up",
            2,
        ),
        StoreError::SchemaTooOld { .. } | StoreError::BinaryTooOld { .. } => unavailable(
            Code::WrongSchema,
            "the datastore's schema does not fit this server; an operator has to act",
            30,
        ),
        StoreError::Inconsistent { .. }
        | StoreError::Locked { .. }
        | StoreError::NotEmpty { .. }
        | StoreError::StillRunning { .. }
        | StoreError::CutOff { .. }
        | StoreError::Statement { .. } => internal(error),
    }
}

fn internal(error: &(dyn StdError + 'static)) -> Answer {
    tracing::error!(error = chain(error), "a call failed for a reason of ours");
    answer(Code::Internal, "something went wrong on the server; its log says what")
}

/// An error and its sources in one line.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl Answer {
    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn problem(self) -> Problem {
        let status = self.status();
        Problem {
            type_url: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code: self.code.as_str().to_owned(),
            detail: self.detail,
            errors: self.errors,
        }
    }
}

impl ApiError {
    /// The problem document alone.
    pub(crate) fn problem(self) -> Problem {
        Answer::from(self).problem()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let answer = Answer::from(self);
        let (status, code, retry_after_seconds) = (answer.status(), answer.code, answer.retry_after_seconds);
        let mut response = (status, axum::Json(answer.problem())).into_response();
        // For the layers: which error it was.
        response.extensions_mut().insert(code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
        if let Some(seconds) = retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
