//! What of a server can be set.

use std::str::FromStr;
use std::time::Duration;

use jobyard_api::submit::FileUrls;
use thiserror::Error;

/// What of a server can be set. The defaults are meant to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Whether `file://` executables are accepted.
    pub file_urls: FileUrls,
    /// The largest body of a call with one job or less.
    pub body_bytes: usize,
    /// The largest body of a batch.
    pub batch_body_bytes: usize,
    /// The largest artifact.
    pub artifact_bytes: u64,
    /// How long a body may take to arrive; an artifact's, how long between two pieces.
    pub body_within: Duration,
    /// For how many days before today logs are kept.
    pub keep_logs_days: u32,
    /// From one comment on a silent event stream to the next.
    pub stream_heartbeat: Duration,
    /// Below which path a reverse proxy shows the server.
    pub base_path: BasePath,
    /// Whether session cookies go over TLS alone, also where no proxy says that it ends TLS.
    pub secure_cookies: bool,
    /// How long a session lasts.
    pub session_lasts_ms: u64,
    /// How many calls each door takes.
    pub doors: DoorSettings,
}

/// The path below which a reverse proxy shows the server: none, or such as `/jobyard`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BasePath(String);

/// The text is no base path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "is no path such as /jobyard: it begins with `/`, and its parts are letters, digits, `-`, `_`, `.` and `~`"
)]
pub struct InvalidBasePath;

impl BasePath {
    /// What stands before every path: empty, or such as `/jobyard`.
    #[must_use]
    pub fn as_prefix(&self) -> &str {
        &self.0
    }

    /// What cookies are for.
    pub(crate) fn as_cookie_path(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }

    /// What addresses in pages are relative to; ends with `/`.
    pub(crate) fn as_base(&self) -> String {
        format!("{}/", self.0)
    }

    /// The path without the prefix; `None` where it isn't below it.
    pub(crate) fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        match path.strip_prefix(&self.0)? {
            "" => Some("/"),
            rest if rest.starts_with('/') => Some(rest),
            _ => None,
        }
    }
}

impl FromStr for BasePath {
    type Err = InvalidBasePath;

    /// Slashes at the end are dropped.
    fn from_str(text: &str) -> Result<Self, InvalidBasePath> {
        let text = text.trim_end_matches('/');
        let is_plain = |part: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            !matches!(part, "" | "." | "..") && part.bytes().all(letter)
        };
        match text.strip_prefix('/') {
            None if text.is_empty() => Ok(Self::default()),
            Some(parts) if parts.split('/').all(is_plain) => Ok(Self(text.to_owned())),
            _ => Err(InvalidBasePath),
        }
    }
}

/// What a listener bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Connections open at once; those above are answered 429.
    pub at_once: usize,
    /// How long a request's head may take to arrive, and how long a connection may be idle.
    pub head_within: Duration,
    /// How long a client may take nothing of its answer; then its connection is closed.
    pub stall_within: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self { at_once: 10_000, head_within: Duration::from_secs(10), stall_within: Duration::from_secs(60) }
    }
}

/// How many calls are in hand at once, and how many more wait before the door answers 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorLimit {
    /// In hand at once.
    pub at_once: usize,
    /// Waiting besides.
    pub queued: usize,
}

/// A limit a kind of call, so that none crowds out another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorSettings {
    /// Submissions of one job.
    pub submit: DoorLimit,
    /// Batches; each may be large.
    pub batch: DoorLimit,
    /// Other calls that change something.
    pub change: DoorLimit,
    /// Reads of one thing.
    pub read: DoorLimit,
    /// Lists, counts and overviews.
    pub look: DoorLimit,
    /// Artifacts on their way in or out.
    pub artifact: DoorLimit,
    /// Many small artifacts in a call, on their way in; each is held in memory.
    pub artifact_batch: DoorLimit,
    /// Event streams and followed logs; they stay open, so none waits.
    pub stream: DoorLimit,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            file_urls: FileUrls::Refused,
            body_bytes: 4 << 20,
            batch_body_bytes: 64 << 20,
            artifact_bytes: 16 << 30,
            body_within: Duration::from_secs(60),
            keep_logs_days: 30,
            stream_heartbeat: Duration::from_secs(15),
            base_path: BasePath::default(),
            secure_cookies: false,
            session_lasts_ms: 7 * 24 * 60 * 60 * 1_000,
            doors: DoorSettings::default(),
        }
    }
}

impl Default for DoorSettings {
    fn default() -> Self {
        let limit = |at_once, queued| DoorLimit { at_once, queued };
        Self {
            submit: limit(256, 4_096),
            batch: limit(4, 64),
            change: limit(64, 1_024),
            read: limit(128, 2_048),
            look: limit(16, 1_024),
            artifact: limit(32, 256),
            artifact_batch: limit(8, 256),
            stream: limit(2_000, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_plain_and_stripped_whole() {
        for (text, prefix) in [("", ""), ("/", ""), ("/x", "/x"), ("/x/", "/x"), ("/x/y-1", "/x/y-1")] {
            assert_eq!(text.parse::<BasePath>().expect("fine").as_prefix(), prefix, "{text}");
        }
        for text in ["x", "//x", "/x//y", "/x/../y", "/x y", "/x;y", "/x\"y", "/é", "https://x/y"] {
            assert!(text.parse::<BasePath>().is_err(), "{text}");
        }
        let base: BasePath = "/x".parse().expect("fine");
        for (path, rest) in
            [("/x", Some("/")), ("/x/", Some("/")), ("/x/api", Some("/api")), ("/xy", None), ("/", None)]
        {
            assert_eq!(base.strip(path), rest, "{path}");
        }
    }
}
