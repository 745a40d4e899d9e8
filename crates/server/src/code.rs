//! The stable codes of problem documents. docs/errors.md is generated from here.

macro_rules! codes {
    ($($variant:ident $word:literal $status:literal $meaning:literal,)*) => {
        /// Which problem it is, for programs to branch on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The HTTP status it comes with.
            pub(crate) fn status(self) -> u16 {
                match self { $(Self::$variant => $status),* }
            }

            #[cfg(test)]
            fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400 "The request has faults; `errors` names each by its place. Mend them and send it again.",
    NotAvailableYet "not_available_yet" 400 "All that is wrong is that it asks for something that is planned and not built.",
    BodyBrokeOff "body_broke_off" 400 "The body ended early. Nothing was changed; send it again.",
    HashMismatch "hash_mismatch" 400 "The bytes of an artifact don't have the hash they were sent under. Nothing was stored; hash the file again.",
    Unauthenticated "unauthenticated" 401 "No token, or one that is unknown, revoked or past its end.",
    RoleTooWeak "role_too_weak" 403 "The token is valid, but its role may not make this call.",
    ForeignOrigin "foreign_origin" 403 "The call came with a browser's session, and not from a page of this server. Nothing was changed.",
    ForeignOwner "foreign_owner" 403 "The token does not act for the owner of the job.",
    NotFound "not_found" 404 "There is no such thing, or no such path.",
    MethodNotAllowed "method_not_allowed" 405 "The path exists, with another method.",
    HeadTooSlow "head_too_slow" 408 "The head of the request did not arrive in time. Nothing was changed; send it again.",
    BodyTooSlow "body_too_slow" 408 "The body did not arrive in time. Nothing was changed; send it again.",
    IdempotencyKeyReused "idempotency_key_reused" 409 "The key made another job, which `detail` names. Use a new key for a new job.",
    NotRetryable "not_retryable" 409 "Only a job that failed or was cancelled can be retried by hand.",
    TreeIncomplete "tree_incomplete" 409 "Files of the tree are not in the artifact store; `errors` names some. Nothing was kept; ask which with `POST /api/v1/artifacts/missing`, upload them, send the manifest again.",
    NotAService "not_a_service" 409 "Only a service can be stopped. A task ends by itself, or is cancelled.",
    NameTaken "name_taken" 409 "One of the principal's views has that name already.",
    CursorExpired "cursor_expired" 410 "The cursor is older than the events that are kept, or lies beyond the newest one: then another datastore gave it, or this one was restored from a backup. Read afresh what you follow, then follow without a cursor.",
    LogDropped "log_dropped" 410 "All of the log that was asked for is older than logs are kept.",
    ChangedMeanwhile "changed_meanwhile" 412 "It has another `ETag` than `If-Match` names: somebody changed it. Nothing was changed; read it afresh.",
    BodyTooLarge "body_too_large" 413 "The body has more bytes than `detail` says are allowed.",
    RangeNotSatisfiable "range_not_satisfiable" 416 "The range lies outside of the artifact.",
    TooBusy "too_busy" 429 "Too many calls of this kind at a time. Nothing was changed; wait for `Retry-After`.",
    TooManyJobs "too_many_jobs" 429 "The owner has as many jobs that are not over as are allowed.",
    Internal "internal" 500 "A defect of the server; its log says what.",
    DatastoreUnavailable "datastore_unavailable" 503 "The datastore can't be reached. Nothing was changed; try again.",
    ReadTooSlow "read_too_slow" 503 "A list, count or overview took longer than it may, or waited as long for its turn. Nothing else was held up; a narrower filter takes less.",
    OutcomeUnknown "outcome_unknown" 503 "The connection to the datastore broke while it was saving: the change may have been made. Calls with an idempotency key can be repeated without harm.",
    DatastoreFull "datastore_full" 503 "The datastore has no room. Nothing was accepted.",
    WrongSchema "wrong_schema" 503 "The datastore's schema doesn't fit the server's version: an operator has to run `jobyard migrate`, or upgrade.",
    ArtifactStoreUnavailable "artifact_store_unavailable" 503 "The artifact store can't be reached, or refuses the server: artifacts, and logs beyond their newest lines, can't be had. Nothing was changed; try again. Jobs are taken all the same.",
    ArtifactStoreFull "artifact_store_full" 503 "The artifact store has no room. Nothing was stored.",
    NotReady "not_ready" 503 "The server lives and can't serve (yet): from `/readyz`, and from every path while it waits for its datastore.",
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::Code;

    /// Run with `UPDATE_GOLDEN=1` to write it anew.
    #[test]
    fn docs_errors_md_is_what_the_code_says() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == page(), "docs/errors.md is out of date: run this test with UPDATE_GOLDEN=1");
    }

    fn page() -> String {
        let mut page = String::from(
            "# Errors\n\n\
         Every error answer is a problem document (RFC 9457, `application/problem+json`) with a stable `code`. Programs \
         branch on `code`; `detail` is for people and may change. Bad input also has `errors`, one entry a fault, with \
         `pointer` (a JSON pointer into the body, `?name` for a query parameter, `path`, or a header's name), `detail` \
         and a `code` of the fault. 429 and 503 come with `Retry-After`.\n\n\
         This page is generated from the code.\n\n\
         | status | code | meaning |\n|---|---|---|\n",
        );
        for code in Code::ALL {
            writeln!(page, "| {} | `{}` | {} |", code.status(), code.as_str(), code.meaning()).unwrap();
        }
        page.push_str("\n## Codes of faults\n\n| code | meaning |\n|---|---|\n");
        for code in jobyard_api::strict::FaultCode::ALL {
            writeln!(page, "| `{}` | {} |", code.as_str(), code.meaning()).unwrap();
        }
        page
    }
}
