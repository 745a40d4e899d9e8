//! S3-compatible stores: how a bucket is reached, how a stream becomes an object in bounded memory, and what an error of
//! theirs means.
//!
//! Owns no bytes and no rule about who may use which bucket. Invariant: **an object gets its name only when all of its
//! bytes are there**; an upload that is given up leaves nothing under it.

mod error;
mod jobs;
mod transport;
mod upload;

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, RetryConfig};

use transport::Transport;

pub use error::S3Error;
pub(crate) use error::{of_s3, text_of};
pub(crate) use jobs::FoundObject;
pub use jobs::{JobBuckets, S3Access, S3Allow};
pub(crate) use upload::Upload;

/// How S3 is reached. Everything is optional with Amazon's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Settings {
    /// Such as `https://s3.example.org`; without it Amazon's of the region.
    pub endpoint: Option<String>,
    /// Without it that of the environment, else `us-east-1`.
    pub region: Option<String>,
    /// Without it what the environment has: `AWS_*` variables, a web identity, the machine's role.
    pub key: Option<S3Key>,
    /// Whether an endpoint without TLS is accepted.
    pub allow_http: bool,
    /// Whether the bucket stands in the path of requests, not in the host's name.
    pub path_style: bool,
    /// Every limit of time.
    pub times: S3Times,
}

/// A static key.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Key {
    /// Its public part.
    pub id: String,
    /// Its secret part.
    pub secret: String,
}

impl std::fmt::Debug for S3Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("S3Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How long S3 is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct S3Times {
    /// For a connection.
    pub connect: Duration,
    /// For an answer, and between two pieces of one; a large request is given more.
    pub answer: Duration,
    /// From the first try of a request on, after which it is not tried again.
    pub retry: Duration,
    /// For a log segment, which is tried once: workers' heartbeats wait behind it, and they send it again.
    pub segment: Duration,
    /// After a log segment found the store away, for which no further one is tried.
    pub pause: Duration,
}

impl Default for S3Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            answer: Duration::from_secs(8),
            retry: Duration::from_secs(8),
            segment: Duration::from_secs(5),
            pause: Duration::from_secs(5),
        }
    }
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            key: None,
            allow_http: false,
            path_style: true,
            times: S3Times::default(),
        }
    }
}

/// What is wrong with the settings of S3.
#[derive(Debug, thiserror::Error)]
pub enum S3SettingsError {
    /// Plain HTTP without leave.
    #[error(
        "s3.endpoint {0} has no TLS: use https, or set s3.allow_http = true where the way to it is trusted"
    )]
    PlainHttp(String),
    /// Not a URL of a server.
    #[error("s3.endpoint {0} is not a URL such as https://s3.example.org")]
    Endpoint(String),
    /// The client could not be made.
    #[error("S3 can't be used: {0}")]
    Client(String),
}

impl S3Settings {
    /// A client of one bucket. Makes no request.
    ///
    /// # Errors
    /// The settings make no sense, or the machine's certificates can't be read.
    pub(crate) fn bucket(&self, name: &str) -> Result<AmazonS3, S3SettingsError> {
        self.bucket_with(name, 10)
    }

    /// As [`Self::bucket`], with no request tried twice.
    pub(crate) fn bucket_once(&self, name: &str) -> Result<AmazonS3, S3SettingsError> {
        self.bucket_with(name, 0)
    }

    fn bucket_with(&self, name: &str, max_retries: usize) -> Result<AmazonS3, S3SettingsError> {
        let endpoint =
            self.endpoint.as_deref().map(|endpoint| self.endpoint_of(endpoint, name)).transpose()?;
        let builder = match &self.key {
            Some(key) => AmazonS3Builder::new()
                .with_access_key_id(key.id.clone())
                .with_secret_access_key(key.secret.clone()),
            None => AmazonS3Builder::from_env(),
        };
        let retry = RetryConfig {
            backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() },
            max_retries,
            retry_timeout: self.times.retry,
        };
        let is_https = endpoint.as_deref().is_none_or(|endpoint| endpoint.starts_with("https://"));
        let mut builder = builder
            .with_bucket_name(name)
            .with_allow_http(self.allow_http)
            .with_virtual_hosted_style_request(!self.path_style)
            .with_retry(retry)
            .with_http_connector(Transport { times: self.times, is_https });
        if let Some(region) = &self.region {
            builder = builder.with_region(region.clone());
        }
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        builder.build().map_err(|error| S3SettingsError::Client(text_of(&error)))
    }

    /// With the bucket in its host, where it is to stand there.
    fn endpoint_of(&self, endpoint: &str, bucket: &str) -> Result<String, S3SettingsError> {
        let (scheme, host) = match endpoint.split_once("://") {
            Some(("https", host)) => ("https", host),
            Some(("http", host)) if self.allow_http => ("http", host),
            Some(("http", _)) => return Err(S3SettingsError::PlainHttp(endpoint.to_owned())),
            _ => return Err(S3SettingsError::Endpoint(endpoint.to_owned())),
        };
        let host = host.trim_end_matches('/');
        if host.is_empty() || host.contains(['@', '?', '#', ' ']) {
            return Err(S3SettingsError::Endpoint(endpoint.to_owned()));
        }
        let bucket = if self.path_style { String::new() } else { format!("{bucket}.") };
        Ok(format!("{scheme}://{bucket}{host}"))
    }
}
