//! An S3 server of a test's own: real requests over loopback, checked signatures, objects as files in a folder that is
//! gone when the test is.
//!
//! Owns the folder and the one thread that serves it. It can be stopped, frozen and started again on its port: a bucket
//! that vanishes for a while. Only a dev-dependency; no room of the product uses it.

mod bucket;
mod server;
mod tls;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use tempfile::TempDir;

use crate::server::Serving;

/// The id of the only key that the server knows.
pub const ACCESS_KEY_ID: &str = "test-key-id";
/// Its secret.
pub const SECRET_ACCESS_KEY: &str = "test-secret-access-key";

/// Beside the buckets.
const SECRET_FILE: &str = "secret";
const CERTIFICATE_FILE: &str = "certificate.pem";

/// A running, or stopped, S3 server.
#[derive(Debug)]
pub struct S3Server {
    // Ends before its folder goes.
    serving: Option<Serving>,
    folder: TempDir,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
}

impl S3Server {
    /// Starts one with an empty bucket of this name.
    ///
    /// # Errors
    /// The folder can't be made, or there is no free port.
    pub fn start_new(bucket: &str) -> io::Result<Self> {
        Self::start_new_as(bucket, |_| Ok(None))
    }

    /// As [`S3Server::start_new`], over TLS, for clients that trust [`S3Server::certificate`]. The bucket may also stand in
    /// the host's name: `<bucket>.localhost`.
    ///
    /// # Errors
    /// As [`S3Server::start_new`].
    pub fn start_new_with_tls(bucket: &str) -> io::Result<Self> {
        Self::start_new_as(bucket, |folder| tls::identity(bucket, &folder.join(CERTIFICATE_FILE)).map(Some))
    }

    fn start_new_as(
        bucket: &str,
        tls: impl FnOnce(&Path) -> io::Result<Option<Arc<ServerConfig>>>,
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("jobyard-s3-").tempdir()?;
        fs::create_dir(folder.path().join(bucket))?;
        let secret = folder.path().join(SECRET_FILE);
        fs::write(&secret, SECRET_ACCESS_KEY)?;
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
        let tls = tls(folder.path())?;
        let (serving, address) = Serving::start(folder.path(), (Ipv4Addr::LOCALHOST, 0).into(), tls.clone())?;
        Ok(Self { folder, address, tls, serving: Some(serving) })
    }

    /// Where it listens: `http://127.0.0.1:<port>`, with TLS `https://localhost:<port>`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self.tls {
            None => format!("http://{}", self.address),
            Some(_) => format!("https://localhost:{}", self.address.port()),
        }
    }

    /// Whom to trust to reach it over TLS: a PEM file.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join(CERTIFICATE_FILE)
    }

    /// The `[s3]` table of settings that reach it.
    #[must_use]
    pub fn settings(&self) -> String {
        let secret = self.folder.path().join(SECRET_FILE);
        format!(
            "[s3]\nendpoint = \"{}\"\nallow_http = true\naccess_key_id = \"{ACCESS_KEY_ID}\"\n\
             secret_access_key_file = \"{}\"\n",
            self.endpoint(),
            secret.display()
        )
    }

    /// Ends every connection at once; from then on connects are refused.
    pub fn stop(&mut self) {
        self.serving = None;
    }

    /// Starts it again, on the same port with the same objects.
    ///
    /// # Errors
    /// The port was taken meanwhile.
    pub fn start(&mut self) -> io::Result<()> {
        if self.serving.is_none() {
            self.serving = Some(Serving::start(self.folder.path(), self.address, self.tls.clone())?.0);
        }
        Ok(())
    }

    /// Answers nothing more when this returns, though connects succeed.
    ///
    /// # Panics
    /// It is stopped.
    pub fn freeze(&mut self) {
        self.serving.as_mut().expect("a server that runs").freeze();
    }

    /// Goes on after [`S3Server::freeze`].
    pub fn thaw(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.thaw();
        }
    }

    /// The keys in a bucket, in ascending order.
    ///
    /// # Errors
    /// There is no such bucket.
    pub fn keys(&self, bucket: &str) -> io::Result<Vec<String>> {
        let root = self.folder.path().join(bucket);
        let mut keys = Vec::new();
        gather(&root, &root, &mut keys)?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// Where an object's bytes lie.
    #[must_use]
    pub fn path(&self, bucket: &str, key: &str) -> PathBuf {
        self.folder.path().join(bucket).join(key)
    }

    /// Puts an object there, past the server.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, bucket: &str, key: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(bucket, key);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)
    }

    /// Parts of multipart uploads that are neither complete nor aborted.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn unfinished_parts(&self) -> io::Result<usize> {
        let entries = fs::read_dir(self.folder.path())?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries
            .iter()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(".upload_id-"))
            .count())
    }
}

fn gather(root: &Path, folder: &Path, keys: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather(root, &entry.path(), keys)?;
        } else {
            let path = entry.path();
            keys.push(path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned());
        }
    }
    Ok(())
}
