//! Artifacts: immutable files by their hash, and how one is pushed.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::Stream;
use jobyard_model::ArtifactHash;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Method, Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, Take};
use tokio_util::io::ReaderStream;

use crate::outage::Outage;
use crate::transport::Call;
use crate::trees::{FolderStep, FolderWatch};
use crate::{Client, Error};

const PUSHING: &str = "pushing an artifact";

/// Executables and other files by their hash; from [`Client::artifacts`].
#[derive(Debug, Clone)]
pub struct Artifacts {
    client: Client,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// The file's name in the artifact store; `sha256:<hash>` as a job's `binary_url`.
    pub hash: ArtifactHash,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// `false`: it was there already, nothing was sent.
    pub sent: bool,
}

impl Artifacts {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Hashes a file and sends it, unless the server has it already. A file that is changed meanwhile is refused by
    /// the server, since its bytes no longer match its name.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client) -> Result<(), jobyard_client::Error> {
    /// let pushed = client.artifacts().push_file("count.py".as_ref()).await?;
    /// println!("sha256:{}", pushed.hash);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] when the file can't be read; [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn push_file(&self, path: &Path) -> Result<Pushed, Error> {
        let unreadable = |source| Error::File { doing: "read", path: path.to_owned(), source };
        let (hash, size_bytes) = hash_file(path).await.map_err(unreadable)?;
        if self.has(hash).await? {
            return Ok(Pushed { hash, size_bytes, sent: false });
        }
        let policy = self.client.inner().retry_policy;
        let mut outage = Outage::default();
        loop {
            // Opened anew for each try: what was sent is gone.
            let file = File::open(path).await.map_err(unreadable)?;
            match self.put(hash, size_bytes, file, self.counter(None)).await {
                Ok(()) => return Ok(Pushed { hash, size_bytes, sent: true }),
                Err(error) => outage.bear(&policy, error).await?,
            }
        }
    }

    /// Whether the server has the artifact.
    ///
    /// ```no_run
    /// # async fn example(client: jobyard_client::Client, hash: jobyard_client::ArtifactHash) -> Result<(), jobyard_client::Error> {
    /// if !client.artifacts().has(hash).await? {
    ///     println!("push it first");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Problem`]; [`Error::Unreachable`].
    pub async fn has(&self, hash: ArtifactHash) -> Result<bool, Error> {
        let call = Call::head("looking for an artifact", format!("/artifacts/{hash}"));
        match self.client.confirm(&call).await {
            Ok(_) => Ok(true),
            Err(Error::Problem(problem)) if problem.status == StatusCode::NOT_FOUND.as_u16() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The next piece of a body, which may not be silent for long.
    pub(crate) async fn next_piece(
        &self,
        doing: &'static str,
        response: &mut Response,
    ) -> Result<Option<bytes::Bytes>, Error> {
        let idle = self.client.inner().timeouts.idle;
        match tokio::time::timeout(idle, response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.client.unreachable(doing, error.without_url())),
            Err(_) => Err(self.client.unreachable(doing, format!("nothing came for {idle:?}"))),
        }
    }

    pub(crate) fn counter(&self, watch: Option<&FolderWatch>) -> Moved {
        Moved { bytes: Arc::default(), watch: watch.cloned() }
    }

    /// One try at sending. Ends when nothing moved for the idle time, not after a fixed time: files may be large.
    pub(crate) async fn put(
        &self,
        hash: ArtifactHash,
        size_bytes: u64,
        file: File,
        moved: Moved,
    ) -> Result<(), Error> {
        // A file that grew meanwhile is refused by the server for what it is: changed.
        let reader = ReaderStream::with_capacity(file.take(size_bytes), 128 << 10);
        let body = Counted { reader, moved: moved.clone() };
        let request = self
            .client
            .request(Method::PUT, &format!("/artifacts/{hash}"))
            .header(CONTENT_LENGTH, size_bytes)
            .body(Body::wrap_stream(body));
        let send = self.client.send_stream(PUSHING, request);
        tokio::pin!(send);
        let mut seen = 0;
        loop {
            if let Ok(answer) = tokio::time::timeout(self.client.inner().timeouts.idle, &mut send).await {
                return answer.map(|_| ());
            }
            let now = moved.bytes();
            if now == seen {
                return Err(self.client.unreachable(PUSHING, "the server stopped taking bytes"));
            }
            seen = now;
        }
    }
}

/// How many bytes one try has moved.
#[derive(Clone)]
pub(crate) struct Moved {
    bytes: Arc<AtomicU64>,
    watch: Option<FolderWatch>,
}

impl Moved {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(watch) = &self.watch {
            watch(FolderStep::Moved { bytes });
        }
    }
}

/// A file's bytes, counted as they go.
struct Counted {
    reader: ReaderStream<Take<File>>,
    moved: Moved,
}

impl Stream for Counted {
    type Item = io::Result<bytes::Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.reader).poll_next(context);
        if let Poll::Ready(Some(Ok(piece))) = &next {
            self.moved.add(piece.len() as u64);
        }
        next
    }
}

async fn hash_file(path: &Path) -> io::Result<(ArtifactHash, u64)> {
    let mut file = File::open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size_bytes = 0;
    loop {
        let read = file.read(&mut buffer).await?;
        if read == 0 {
            return Ok((ArtifactHash(hasher.finalize().into()), size_bytes));
        }
        hasher.update(&buffer[..read]);
        size_bytes += read as u64;
    }
}
