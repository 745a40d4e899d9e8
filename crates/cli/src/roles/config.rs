//! Settings of a role: defaults, then the file, then `JOBYARD_*` variables, then flags.
//!
//! The file is TOML with a table a part. Unknown keys are refused: a setting that is misspelt must not be silently off.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jobyard_informer::Webhook;
use jobyard_model::{InvalidS3Url, LeaseSettings};
use jobyard_server::s3::S3SettingsError;
use jobyard_server::{BasePath, InvalidBasePath, SecretKeys};
use serde::Deserialize;
use thiserror::Error;

use super::artifacts::S3Config;

/// Flags and variables that every role takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct RoleArguments {
    /// Settings file (TOML)
    #[arg(long, value_name = "FILE", env = "JOBYARD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// PostgreSQL, such as postgres://jobyard@db/jobyard
    #[arg(long, value_name = "URL", env = "JOBYARD_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Where the server listens for HTTP
    #[arg(long, value_name = "ADDRESS", env = "JOBYARD_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    /// The report door's unix socket; its directory is made private
    #[arg(long, value_name = "PATH", env = "JOBYARD_REPORT_SOCKET")]
    pub(crate) report_socket: Option<PathBuf>,
    /// Where the server keeps artifacts and log segments
    #[arg(long, value_name = "DIR", env = "JOBYARD_ARTIFACT_DIR")]
    pub(crate) artifact_dir: Option<PathBuf>,
    /// The bucket and prefix for them instead, such as s3://bucket/prefix
    #[arg(long, value_name = "URL", env = "JOBYARD_ARTIFACT_URL")]
    pub(crate) artifact_url: Option<String>,
    /// Below which path a reverse proxy shows the server, such as /jobyard
    #[arg(long, value_name = "PATH", env = "JOBYARD_BASE_PATH")]
    pub(crate) base_path: Option<String>,
    /// Keys that jobs' secrets are kept with; every server of an installation needs the same file
    #[arg(long, value_name = "FILE", env = "JOBYARD_SECRET_KEY_FILE")]
    pub(crate) secret_key_file: Option<PathBuf>,
    /// Where the worker keeps its identity, logs and undelivered outcomes
    #[arg(long, value_name = "DIR", env = "JOBYARD_WORKER_DATA_DIR")]
    pub(crate) worker_data_dir: Option<PathBuf>,
    /// The worker's door, a unix socket; its directory is made private
    #[arg(long, value_name = "PATH", env = "JOBYARD_DOOR_SOCKET")]
    pub(crate) door_socket: Option<PathBuf>,
    /// Where informer and worker serve /healthz and /metrics, without a token; nowhere unless set
    #[arg(long, value_name = "ADDRESS", env = "JOBYARD_METRICS_LISTEN")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// The pool this worker serves
    #[arg(long, value_name = "NAME", env = "JOBYARD_POOL")]
    pub(crate) pool: Option<String>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) datastore: DatastoreConfig,
    pub(crate) leases: LeaseConfig,
    pub(crate) server: ServerConfig,
    pub(crate) informer: InformerConfig,
    pub(crate) worker: WorkerConfig,
    pub(crate) metrics: MetricsConfig,
    pub(crate) webhook: WebhookConfig,
    pub(crate) s3: S3Config,
}

/// Who is told of jobs that failed for good.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WebhookConfig {
    pub(crate) url: Option<String>,
    /// Signs what is told; space around it is dropped.
    pub(crate) key_file: Option<PathBuf>,
}

/// Of roles that have no other HTTP door.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricsConfig {
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DatastoreConfig {
    /// `postgres://…`.
    pub(crate) url: Option<String>,
    /// Connections of one process.
    pub(crate) pool_size: usize,
    /// Un-ended jobs an owner may have.
    pub(crate) max_unended_jobs_per_owner: u64,
    /// Where lists and dashboards are read from: a standby. `url` unless set.
    pub(crate) dashboard_url: Option<String>,
    /// Connections of one process for that.
    pub(crate) dashboard_pool_size: usize,
    /// The most one such read may take.
    pub(crate) dashboard_timeout_seconds: f64,
}

impl Default for DatastoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            pool_size: 8,
            max_unended_jobs_per_owner: 2_000_000,
            dashboard_url: None,
            dashboard_pool_size: 4,
            dashboard_timeout_seconds: 3.0,
        }
    }
}

impl DatastoreConfig {
    /// The most that a list or dashboard may take to be read.
    pub(crate) fn dashboard_timeout(&self) -> Result<Duration, ConfigError> {
        match self.dashboard_timeout_seconds {
            seconds if (0.1..=600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
            _ => Err(ConfigError::DashboardTimeout),
        }
    }
}

/// Seconds; the same for every role of an installation.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LeaseConfig {
    pub(crate) claim_lease_seconds: Option<f64>,
    pub(crate) lease_seconds: Option<f64>,
    pub(crate) heartbeat_seconds: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) report_socket: Option<PathBuf>,
    pub(crate) artifact_dir: Option<PathBuf>,
    /// `s3://…`; instead of `artifact_dir`.
    pub(crate) artifact_url: Option<String>,
    /// Whether `file://` executables are accepted.
    pub(crate) allow_file_urls: bool,
    /// For how many days before today logs are kept.
    pub(crate) keep_logs_days: Option<u32>,
    /// Connections open at once.
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// How long a client may take nothing of its answer.
    pub(crate) stall_seconds: Option<NonZeroU32>,
    /// Below which path a reverse proxy shows the server, such as `/jobyard`.
    pub(crate) base_path: Option<String>,
    /// Whether session cookies go over TLS alone.
    pub(crate) secure_cookies: bool,
    /// How long a session of the dashboard lasts.
    pub(crate) session_hours: Option<NonZeroU32>,
    /// What jobs' secrets are kept with.
    pub(crate) secret_key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InformerConfig {
    /// Empty: all.
    pub(crate) pools: Vec<String>,
    pub(crate) keep_jobs_days: Option<u64>,
    pub(crate) keep_keys_days: Option<u64>,
    pub(crate) keep_audit_days: Option<u64>,
    pub(crate) keep_artifacts_days: Option<u64>,
    pub(crate) keep_minutes_days: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkerConfig {
    pub(crate) data_dir: Option<PathBuf>,
    /// Where state lies that need not survive the machine; a tmpfs.
    pub(crate) state_dir: Option<PathBuf>,
    /// Where task processes have their working directories and executables.
    pub(crate) task_dir: Option<PathBuf>,
    pub(crate) door_socket: Option<PathBuf>,
    pub(crate) report_sockets: Vec<PathBuf>,
    pub(crate) pool: Option<String>,
    pub(crate) name: Option<String>,
    /// Cores; what the machine has, unless set.
    pub(crate) cpu: Option<f64>,
    /// Bytes; what the machine has, unless set.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) sidecar: Option<PathBuf>,
    /// Bytes of log kept of one attempt.
    pub(crate) log_limit_bytes: Option<u64>,
    /// Bytes of outputs kept of one attempt.
    pub(crate) output_limit_bytes: Option<u64>,
    /// What the cache of executables and inputs may hold.
    pub(crate) cache_limit_bytes: Option<u64>,
    /// What an attempt's outputs may take to go up.
    pub(crate) upload_seconds: Option<u64>,
}

/// What is wrong with the settings, and what to do about it.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    #[error("could not read the settings file {path}")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the settings file {path} is not valid: {why}")]
    Invalid { path: PathBuf, why: String },
    #[error("`{setting}` is not set: put it into the file given by --config, or use {flag}")]
    Missing { setting: &'static str, flag: &'static str },
    #[error("webhook.url and webhook.key_file go together: set both or none")]
    HalfWebhook,
    #[error("could not read {setting} {path}")]
    Key {
        setting: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("everybody may read {setting} {path}: chmod o-r it")]
    OpenKey { setting: &'static str, path: PathBuf },
    #[error("server.secret_key_file {path} can't be used")]
    SecretKeys {
        path: PathBuf,
        #[source]
        source: jobyard_server::SecretKeyError,
    },
    #[error(
        "server.artifact_dir and server.artifact_url are both set: artifacts lie in one place, so take one out"
    )]
    TwoArtifactStores,
    #[error("server.artifact_url {url} is not a place in S3: {why}")]
    ArtifactUrl { url: String, why: InvalidS3Url },
    #[error(
        "s3.access_key_id and s3.secret_access_key_file go together: set both, or none to use the environment's"
    )]
    HalfS3Key,
    #[error("`url` of a [[s3.allow]] is not a place in S3: {url}: {why}")]
    AllowUrl { url: String, why: InvalidS3Url },
    #[error(
        "[[s3.allow]] {url} and server.artifact_url overlap: jobs could change artifacts that are not theirs; use \
         another bucket or prefix"
    )]
    AllowsArtifacts { url: String },
    #[error("server.base_path {path}: {why}")]
    BasePath { path: String, why: InvalidBasePath },
    #[error(transparent)]
    S3(S3SettingsError),
    #[error("the webhook can't be used")]
    Webhook(#[from] jobyard_informer::WebhookError),
    #[error("datastore.dashboard_timeout_seconds must be between 0.1 and 600")]
    DashboardTimeout,
    #[error("leases.{setting} must be {rule}")]
    Lease { setting: &'static str, rule: &'static str },
}

impl RoleArguments {
    /// The settings that hold after the file, the variables and the flags.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        let mut config = self.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        let over = self.clone();
        config.datastore.url = over.database_url.or(config.datastore.url);
        config.server.listen = over.listen.or(config.server.listen);
        config.server.artifact_dir = over.artifact_dir.or(config.server.artifact_dir);
        config.server.base_path = over.base_path.or(config.server.base_path);
        config.server.secret_key_file = over.secret_key_file.or(config.server.secret_key_file);
        config.server.artifact_url = over.artifact_url.or(config.server.artifact_url);
        if let Some(socket) = over.report_socket {
            config.worker.report_sockets = vec![socket.clone()];
            config.server.report_socket = Some(socket);
        }
        config.metrics.listen = over.metrics_listen.or(config.metrics.listen);
        config.worker.data_dir = over.worker_data_dir.or(config.worker.data_dir);
        config.worker.door_socket = over.door_socket.or(config.worker.door_socket);
        config.worker.pool = over.pool.or(config.worker.pool);
        Ok(config)
    }
}

impl Config {
    /// Reads the file alone.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|error| ConfigError::Invalid { path: path.to_owned(), why: error.to_string() })
    }
}

/// The setting, or an error that says how to set it.
pub(crate) fn needed<T>(
    value: Option<T>,
    setting: &'static str,
    flag: &'static str,
) -> Result<T, ConfigError> {
    value.ok_or(ConfigError::Missing { setting, flag })
}

impl WebhookConfig {
    /// The webhook, if one is set.
    pub(crate) fn webhook(&self) -> Result<Option<Webhook>, ConfigError> {
        let (url, path) = match (&self.url, &self.key_file) {
            (None, None) => return Ok(None),
            (Some(url), Some(path)) => (url, path),
            _ => return Err(ConfigError::HalfWebhook),
        };
        let key = read_key("webhook.key_file", path)?;
        Ok(Some(Webhook::new(url, key.trim_ascii())?))
    }
}

impl ServerConfig {
    /// Below which path a reverse proxy shows the server.
    pub(crate) fn base_path(&self) -> Result<BasePath, ConfigError> {
        let Some(path) = &self.base_path else { return Ok(BasePath::default()) };
        path.parse().map_err(|why| ConfigError::BasePath { path: path.clone(), why })
    }

    /// The keys of `secret_key_file`, if that is set.
    pub(crate) fn secret_keys(&self) -> Result<Option<SecretKeys>, ConfigError> {
        self.secret_key_file.as_deref().map(secret_keys).transpose()
    }
}

/// The keys of this file.
pub(crate) fn secret_keys(path: &Path) -> Result<SecretKeys, ConfigError> {
    let text = read_key("server.secret_key_file", path)?;
    let keys = SecretKeys::parse(&String::from_utf8_lossy(&text));
    keys.map_err(|source| ConfigError::SecretKeys { path: path.to_owned(), source })
}

/// A file with a key, unless everybody may read it.
pub(crate) fn read_key(setting: &'static str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |source| ConfigError::Key { setting, path: path.to_owned(), source };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o004 != 0 {
        return Err(ConfigError::OpenKey { setting, path: path.to_owned() });
    }
    std::fs::read(path).map_err(unreadable)
}

impl LeaseConfig {
    /// The lease times; refused where a heartbeat could not come often enough to keep a lease.
    pub(crate) fn settings(&self) -> Result<LeaseSettings, ConfigError> {
        let usual = LeaseSettings::default();
        let settings = LeaseSettings {
            claim_lease_ms: milliseconds(
                "claim_lease_seconds",
                self.claim_lease_seconds,
                usual.claim_lease_ms,
            )?,
            lease_ms: milliseconds("lease_seconds", self.lease_seconds, usual.lease_ms)?,
            heartbeat_ms: milliseconds("heartbeat_seconds", self.heartbeat_seconds, usual.heartbeat_ms)?,
            ..usual
        };
        // A gap that goes unnoticed must be shorter than what is left of a lease that was renewed in time; workers
        // need the rest to be heard again.
        let spare_ms = settings.lease_ms.saturating_sub(settings.heartbeat_ms);
        let report_gap_ms = usual.report_gap_ms.min(spare_ms / 2);
        let report_fresh_ms = usual.report_fresh_ms.min(report_gap_ms / 2);
        let settings = LeaseSettings { report_gap_ms, report_fresh_ms, ..settings };
        if settings.heartbeat_ms.saturating_mul(3) > settings.lease_ms {
            let rule = "at most a third of lease_seconds, so that two lost heartbeats lose no attempt";
            return Err(ConfigError::Lease { setting: "heartbeat_seconds", rule });
        }
        Ok(settings)
    }
}

fn milliseconds(setting: &'static str, seconds: Option<f64>, usual_ms: u64) -> Result<u64, ConfigError> {
    match seconds {
        None => Ok(usual_ms),
        // Checked to be within a day, so the cast is exact enough and can't wrap.
        Some(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok((seconds * 1000.0) as u64),
        Some(_) => Err(ConfigError::Lease { setting, rule: "between 0.1 and 86400" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_misspelt_setting_is_refused_and_named() {
        let error = parse("[server]\nlisten_on = \"127.0.0.1:1\"").expect_err("unknown key");
        assert!(error.to_string().contains("listen_on"), "{error}");
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        let config = parse("").expect("valid");
        assert_eq!(config.leases.settings().expect("valid"), LeaseSettings::default());
        assert_eq!(config.datastore.pool_size, 8);
        assert_eq!(config.datastore.dashboard_timeout().expect("valid"), Duration::from_secs(3));
    }

    #[test]
    fn a_dashboard_s_reads_have_a_limit() {
        for seconds in ["0", "-1", "601", "nan"] {
            let config = parse(&format!("[datastore]\ndashboard_timeout_seconds = {seconds}"));
            assert!(config.map_or(true, |config| config.datastore.dashboard_timeout().is_err()), "{seconds}");
        }
    }

    #[test]
    fn a_heartbeat_must_fit_three_times_into_a_lease() {
        let config = parse("[leases]\nlease_seconds = 3\nheartbeat_seconds = 1.5").expect("valid TOML");
        assert!(config.leases.settings().is_err());
        let config = parse("[leases]\nlease_seconds = 3\nheartbeat_seconds = 1").expect("valid TOML");
        assert_eq!(config.leases.settings().expect("valid").lease_ms, 3000);
    }

    #[test]
    fn a_short_lease_makes_the_report_clock_as_strict() {
        let config = parse("[leases]\nlease_seconds = 6\nheartbeat_seconds = 2").expect("valid TOML");
        let settings = config.leases.settings().expect("valid");
        assert_eq!((settings.report_gap_ms, settings.report_fresh_ms), (2_000, 1_000));
        assert!(settings.report_gap_ms < settings.lease_ms - settings.heartbeat_ms);
    }

    #[test]
    fn a_webhook_needs_an_address_and_a_key_that_not_everybody_can_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = directory.path().join("key");
        std::fs::write(&key, "0123456789abcdef\n").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("its mode");
        let webhook = |url: &str| {
            let text = format!("[webhook]\nurl = '{url}'\nkey_file = '{}'", key.display());
            parse(&text).expect("valid TOML").webhook.webhook()
        };
        assert!(parse("").expect("valid").webhook.webhook().expect("none is fine").is_none());
        let half = parse("[webhook]\nurl = 'http://h'").expect("valid TOML").webhook.webhook();
        assert!(matches!(half, Err(ConfigError::HalfWebhook)));
        mode(0o644);
        assert!(matches!(webhook("http://h"), Err(ConfigError::OpenKey { .. })));
        mode(0o640);
        assert!(webhook("http://h").expect("fine").is_some());
        assert!(matches!(webhook("https://h"), Err(ConfigError::Webhook(_))));
        std::fs::remove_file(&key).expect("removed");
        assert!(matches!(webhook("http://h"), Err(ConfigError::Key { .. })));
    }

    #[test]
    fn keys_for_secrets_are_read_from_a_file_that_not_everybody_can_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("secret.key");
        let write = |text: &str, mode| {
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        };
        let read = || {
            let text = format!("[server]\nsecret_key_file = '{}'", path.display());
            parse(&text).expect("valid TOML").server.secret_keys()
        };
        assert!(parse("").expect("valid").server.secret_keys().expect("none is fine").is_none());
        assert!(matches!(read(), Err(ConfigError::Key { setting: "server.secret_key_file", .. })));
        write(&SecretKeys::new_file(), 0o644);
        assert!(matches!(read(), Err(ConfigError::OpenKey { .. })));
        write(&SecretKeys::new_file(), 0o600);
        assert!(read().expect("fine").is_some());
        write("hunter2", 0o600);
        let refused = read().expect_err("no key");
        assert!(
            matches!(refused, ConfigError::SecretKeys { .. }) && !format!("{refused:?}").contains("hunter2")
        );
    }

    #[test]
    fn absurd_times_are_refused() {
        for seconds in ["0", "-1", "1e99", "nan"] {
            let config = parse(&format!("[leases]\nlease_seconds = {seconds}")).expect("valid TOML");
            assert!(config.leases.settings().is_err(), "{seconds}");
        }
    }
}
