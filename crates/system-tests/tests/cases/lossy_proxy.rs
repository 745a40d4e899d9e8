//! A proxy that passes each request on and loses some of the answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Loses three answers of ten, always the same ones in the order of arrival.
pub(crate) struct LossyProxy {
    port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    answers: AtomicUsize,
    lost: AtomicUsize,
}

impl LossyProxy {
    pub(crate) async fn before(url: &str) -> Self {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.expect("the server listens");
                client.set_nodelay(true).expect("a socket");
                server.set_nodelay(true).expect("a socket");
                // A broken connection is what this is about.
                tokio::spawn(pass_on(client, server, Arc::clone(&shared)));
            }
        });
        Self { port, counts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many answers never reached the client although the server had given them.
    pub(crate) fn lost(&self) -> usize {
        self.counts.lost.load(Ordering::SeqCst)
    }
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, counts: Arc<Counts>) -> io::Result<()> {
    loop {
        let request = message(&mut client).await?;
        server.write_all(&request).await?;
        let answer = message(&mut server).await?;
        if counts.answers.fetch_add(1, Ordering::SeqCst) % 10 < 3 {
            counts.lost.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        client.write_all(&answer).await?;
    }
}

/// One HTTP message whose body has a length.
async fn message(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(connection, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    while bytes.len() < head_end + length.unwrap_or(0) {
        more(connection, &mut bytes).await?;
    }
    Ok(bytes)
}

async fn more(connection: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    match connection.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
