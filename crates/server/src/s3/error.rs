//! What an error of S3 means, and what to do about it.

use std::error::Error;

use thiserror::Error;

/// Why S3 did not do what it was asked.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum S3Error {
    /// No such object.
    #[error("it does not exist")]
    Missing,
    /// The object is no longer the one that was meant.
    #[error("it was changed meanwhile")]
    Changed,
    /// The object has no such bytes.
    #[error("it has no such bytes")]
    OutOfRange,
    /// It is not there as a whole, or not open to us: whoever named it has to act.
    #[error("{0}")]
    Refused(String),
    /// Our credentials or our clock are wrong: an operator has to act.
    #[error("{0}")]
    Misconfigured(String),
    /// It does not answer, or is overloaded: it can be asked again.
    #[error("it can't be reached: {0}")]
    Away(String),
}

/// Codes that speak of what was asked for.
const ABOUT_THE_PLACE: &[&str] = &[
    "NoSuchBucket",
    "AccessDenied",
    "InvalidBucketName",
    "EntityTooLarge",
    "KeyTooLongError",
    "QuotaExceeded",
];

/// Codes of S3's error documents that no waiting mends, and what mends them.
const ADVICE: &[(&str, &str)] = &[
    ("NoSuchBucket", "the bucket does not exist: create it, or mend its name"),
    ("KeyTooLongError", "a key is too long: at most 1,024 bytes"),
    (
        "InvalidAccessKeyId",
        "the access key id is not known there: mend s3.access_key_id or AWS_ACCESS_KEY_ID",
    ),
    (
        "SignatureDoesNotMatch",
        "the secret does not belong to the access key: mend s3.secret_access_key_file or AWS_SECRET_ACCESS_KEY",
    ),
    ("NotSignedUp", "the account of the access key has no S3: sign it up, or mend s3.access_key_id"),
    ("RequestTimeTooSkewed", "this machine's clock is more than 15 minutes off: set it (NTP)"),
    ("ExpiredToken", "the session's credentials have expired: renew them"),
    ("InvalidToken", "the session token is not valid: renew the credentials"),
    (
        "AccessDenied",
        "access denied: the credentials need s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, \
         s3:DeleteObject and s3:AbortMultipartUpload on what is below the prefix",
    ),
    ("AuthorizationHeaderMalformed", "the bucket is in another region: set s3.region"),
    (
        "PermanentRedirect",
        "the bucket is in another region, or has another address: set s3.region or s3.endpoint",
    ),
    ("InvalidBucketName", "there can't be a bucket of this name: mend it in the settings"),
    ("EntityTooLarge", "the store does not take objects this large"),
    ("QuotaExceeded", "the quota of the bucket is used up: raise it, or remove something"),
];

/// From whatever `object_store` says.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
pub(crate) fn of_s3(error: object_store::Error) -> S3Error {
    let text = text_of(&error);
    let is_named = |code: &str| text.contains(&format!("<Code>{code}</Code>"));
    if let Some((code, _)) = ADVICE.iter().find(|(code, _)| is_named(code)) {
        return advised(code);
    }
    match error {
        object_store::Error::NotFound { .. } => S3Error::Missing,
        object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. } => {
            S3Error::Changed
        }
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            advised("AccessDenied")
        }
        object_store::Error::InvalidPath { .. }
        | object_store::Error::NotSupported { .. }
        | object_store::Error::NotImplemented { .. }
        | object_store::Error::UnknownConfigurationKey { .. } => S3Error::Refused(text),
        _ if text.contains("redirect without LOCATION") => advised("PermanentRedirect"),
        _ if text.contains("status code: 416") => S3Error::OutOfRange,
        // Listing says it only in its text.
        _ if text.contains("status code: 403") || text.contains("status code: 401") => {
            advised("AccessDenied")
        }
        // A request that is not understood today is not understood tomorrow.
        _ if text.contains("status code: 400") => S3Error::Refused(text),
        _ => S3Error::Away(text),
    }
}

fn advised(code: &str) -> S3Error {
    let advice = ADVICE.iter().find(|(known, _)| *known == code);
    let advice = advice.map_or_else(String::new, |(_, advice)| (*advice).to_owned());
    if ABOUT_THE_PLACE.contains(&code) { S3Error::Refused(advice) } else { S3Error::Misconfigured(advice) }
}

/// An error and its sources in one line; each is said once, though most repeat their sources.
pub(crate) fn text_of(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_waiting_mends_says_what_to_do() {
        for (code, advice) in ADVICE {
            let body =
                format!("Server returned non-2xx status code: 403: <Error><Code>{code}</Code></Error>");
            let denied =
                object_store::Error::PermissionDenied { path: "x".to_owned(), source: body.clone().into() };
            assert_eq!(of_s3(denied), advised(code));
            assert_eq!(advised(code).to_string(), *advice);
            let missing = object_store::Error::NotFound { path: "x".to_owned(), source: body.into() };
            assert_eq!(of_s3(missing), advised(code));
        }
        assert!(matches!(advised("AccessDenied"), S3Error::Refused(_)));
        assert!(matches!(advised("RequestTimeTooSkewed"), S3Error::Misconfigured(_)));
        let missing = "<Error><Code>NoSuchKey</Code></Error>";
        let missing = object_store::Error::NotFound { path: "x".to_owned(), source: missing.into() };
        assert_eq!(of_s3(missing), S3Error::Missing);
        let busy = "Server returned non-2xx status code: 503: <Error><Code>SlowDown</Code></Error>";
        let busy = object_store::Error::Generic { store: "S3", source: busy.into() };
        assert!(matches!(of_s3(busy), S3Error::Away(_)));
    }
}
