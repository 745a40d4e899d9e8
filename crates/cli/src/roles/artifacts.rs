//! Where artifacts and log segments lie: a directory, or a bucket of an S3-compatible store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jobyard_model::{Clock as _, S3Url};
use jobyard_server::artifact_store::{ArtifactStore, BucketStore, DirectoryStore};
use jobyard_server::s3::{JobBuckets, S3Access, S3Allow, S3Key, S3Settings};
use serde::Deserialize;

use super::RoleError;
use super::clock::SystemClock;
use super::config::{Config, ConfigError, ServerConfig, needed, read_key};

/// How S3 is reached.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct S3Config {
    /// Amazon's own, unless set.
    endpoint: Option<String>,
    region: Option<String>,
    /// With `secret_access_key_file`; without both, what the environment has.
    access_key_id: Option<String>,
    secret_access_key_file: Option<PathBuf>,
    allow_http: bool,
    path_style: Option<bool>,
    /// What jobs may name; nothing, unless set.
    allow: Vec<AllowConfig>,
}

/// A place in S3 that jobs may name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowConfig {
    /// One object, or with a `/` at its end all below.
    url: String,
    /// All, unless set.
    owners: Option<Vec<String>>,
    access: AccessConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AccessConfig {
    Read,
    ReadWrite,
}

/// A place for the artifact store.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ArtifactPlace {
    Directory(PathBuf),
    Bucket(S3Url),
}

impl S3Config {
    /// What is set, the secret read.
    pub(crate) fn settings(&self) -> Result<S3Settings, ConfigError> {
        let key = match (&self.access_key_id, &self.secret_access_key_file) {
            (None, None) => None,
            (Some(id), Some(path)) => {
                let secret = read_key("s3.secret_access_key_file", path)?;
                let secret = String::from_utf8_lossy(secret.trim_ascii()).into_owned();
                Some(S3Key { id: id.clone(), secret })
            }
            _ => return Err(ConfigError::HalfS3Key),
        };
        let usual = S3Settings::default();
        Ok(S3Settings {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            key,
            allow_http: self.allow_http,
            path_style: self.path_style.unwrap_or(usual.path_style),
            ..usual
        })
    }
}

impl AllowConfig {
    fn rule(&self) -> Result<S3Allow, ConfigError> {
        let place = self.url.parse().map_err(|why| ConfigError::AllowUrl { url: self.url.clone(), why })?;
        let access = match self.access {
            AccessConfig::Read => S3Access::Read,
            AccessConfig::ReadWrite => S3Access::ReadWrite,
        };
        Ok(S3Allow { place, owners: self.owners.clone(), access })
    }
}

/// The places in S3 that jobs may name: none where the artifact store lies, whose contents are not theirs.
pub(super) fn job_buckets(config: &Config) -> Result<Arc<JobBuckets>, RoleError> {
    let allow = config.s3.allow.iter().map(AllowConfig::rule).collect::<Result<Vec<_>, _>>()?;
    if let Some(ArtifactPlace::Bucket(own)) = config.server.artifact_place()? {
        let own = own.as_prefix();
        let overlaps = |rule: &&S3Allow| rule.place.covers(&own) || own.covers(&rule.place);
        if let Some(rule) = allow.iter().find(overlaps) {
            return Err(ConfigError::AllowsArtifacts { url: rule.place.to_string() }.into());
        }
    }
    Ok(Arc::new(JobBuckets::new(config.s3.settings()?, allow)))
}

impl ServerConfig {
    /// The one of the two that is set; `None`: neither is.
    pub(super) fn artifact_place(&self) -> Result<Option<ArtifactPlace>, ConfigError> {
        match (&self.artifact_dir, &self.artifact_url) {
            (Some(_), Some(_)) => Err(ConfigError::TwoArtifactStores),
            (Some(path), None) => Ok(Some(ArtifactPlace::Directory(path.clone()))),
            (None, Some(url)) => {
                let place = url.parse().map_err(|why| ConfigError::ArtifactUrl { url: url.clone(), why })?;
                Ok(Some(ArtifactPlace::Bucket(place)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// The store that the settings name.
pub(super) fn open(config: &Config) -> Result<Arc<dyn ArtifactStore>, RoleError> {
    let place = config.server.artifact_place()?;
    open_at(config, needed(place, "server.artifact_dir", "--artifact-dir (or --artifact-url)")?)
}

/// As [`open`], in this directory when the settings name no bucket.
pub(super) fn open_or_in(config: &Config, directory: &Path) -> Result<Arc<dyn ArtifactStore>, RoleError> {
    match config.server.artifact_place()? {
        Some(bucket @ ArtifactPlace::Bucket(_)) => open_at(config, bucket),
        Some(ArtifactPlace::Directory(_)) | None => {
            open_at(config, ArtifactPlace::Directory(directory.to_owned()))
        }
    }
}

fn open_at(config: &Config, place: ArtifactPlace) -> Result<Arc<dyn ArtifactStore>, RoleError> {
    match place {
        ArtifactPlace::Directory(path) => match DirectoryStore::open(&path, SystemClock.now()) {
            Ok(store) => Ok(Arc::new(store)),
            Err(source) => Err(RoleError::Path { doing: "open the artifact store in", path, source }),
        },
        ArtifactPlace::Bucket(place) => {
            let mut settings = config.s3.settings()?;
            // Heartbeats wait behind a segment.
            let sixth = Duration::from_millis(config.leases.settings()?.lease_ms / 6);
            settings.times.segment = settings.times.segment.min(sixth);
            Ok(Arc::new(BucketStore::open(&place, &settings).map_err(ConfigError::S3)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn parse(text: &str) -> Config {
        toml::from_str(text).expect("valid TOML")
    }

    #[test]
    fn artifacts_lie_in_one_place() {
        let place = |text: &str| parse(&format!("[server]\n{text}")).server.artifact_place();
        assert_eq!(place("").expect("fine"), None);
        let bucket = ArtifactPlace::Bucket("s3://bucket/x".parse().expect("a place"));
        assert_eq!(place("artifact_url = 's3://bucket/x'").expect("fine"), Some(bucket));
        let both = place("artifact_url = 's3://bucket/x'\nartifact_dir = '/x'");
        assert!(matches!(both, Err(ConfigError::TwoArtifactStores)));
        for wrong in ["bucket/x", "https://bucket/x", "s3://bucket//x", "s3://B/x"] {
            let refused = place(&format!("artifact_url = '{wrong}'"));
            assert!(matches!(refused, Err(ConfigError::ArtifactUrl { .. })), "{wrong}");
        }
        let neither = open(&parse("")).err().expect("an error").to_string();
        assert!(neither.contains("server.artifact_dir") && neither.contains("--artifact-url"), "{neither}");
    }

    #[test]
    fn jobs_may_name_what_is_allowed_and_never_the_artifact_store() {
        let buckets = |text: &str| job_buckets(&parse(text)).map(|_| ()).map_err(|error| error.to_string());
        let rule = |url: &str| format!("[[s3.allow]]\nurl = '{url}'\naccess = 'read_write'");
        buckets("").expect("none");
        buckets(&rule("s3://bucket/team/")).expect("fine");
        assert!(buckets(&rule("bucket/team/")).expect_err("no place").contains("[[s3.allow]]"));
        let own = |url: &str| format!("[server]\nartifact_url = 's3://bucket/own'\n{}", rule(url));
        buckets(&own("s3://bucket/team/")).expect("beside it");
        buckets(&own("s3://bucket/own-too/")).expect("beside it");
        for over in ["s3://bucket/", "s3://bucket", "s3://bucket/own/", "s3://bucket/own/sha256/"] {
            assert!(buckets(&own(over)).expect_err("over it").contains("server.artifact_url"), "{over}");
        }
        let unknown = "[[s3.allow]]\nurl = 's3://bucket/'\naccess = 'write'";
        assert!(toml::from_str::<Config>(unknown).is_err());
    }

    #[test]
    fn a_key_of_s3_is_whole_and_its_secret_is_not_for_everybody() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("secret");
        std::fs::write(&path, "secret\n").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        let file = format!("secret_access_key_file = '{}'", path.display());
        let settings = |text: &str| parse(&format!("[s3]\n{text}")).s3.settings();
        assert_eq!(settings("").expect("the environment's").key, None);
        assert!(matches!(settings(&file), Err(ConfigError::HalfS3Key)));
        assert!(matches!(settings("access_key_id = 'id'"), Err(ConfigError::HalfS3Key)));
        let both = format!("access_key_id = 'id'\n{file}");
        mode(0o604);
        assert!(matches!(settings(&both), Err(ConfigError::OpenKey { .. })));
        mode(0o640);
        let key = S3Key { id: "id".to_owned(), secret: "secret".to_owned() };
        assert_eq!(settings(&both).expect("fine").key, Some(key));
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(settings(&both), Err(ConfigError::Key { .. })));
    }
}
