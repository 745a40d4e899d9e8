//! The thread that serves.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use s3s::auth::SimpleAuth;
use s3s::host::SingleDomain;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

use crate::bucket::Buckets;
use crate::{ACCESS_KEY_ID, SECRET_ACCESS_KEY};

/// Ends the thread, and with it every connection, when it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    orders: Option<UnboundedSender<Freeze>>,
    frozen: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Says that it is frozen, then waits until the other end is dropped.
#[derive(Debug)]
struct Freeze {
    is_frozen: mpsc::Sender<()>,
    until: mpsc::Receiver<()>,
}

impl Serving {
    /// Port 0: any that is free.
    pub(crate) fn start(
        root: &Path,
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<(Self, SocketAddr)> {
        let files = FileSystem::new(root).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut service = S3ServiceBuilder::new(Buckets::new(files, root));
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY_ID, SECRET_ACCESS_KEY));
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        if tls.is_some() {
            let domain = SingleDomain::new(&format!("localhost:{}", address.port()));
            service.set_host(domain.map_err(io::Error::other)?);
        }
        let service = service.build();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let tls = tls.map(TlsAcceptor::from);
        let (orders, receiver) = unbounded_channel();
        let thread = std::thread::Builder::new().name("test-s3".to_owned()).spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a runtime with input and output");
                serve(listener, (service, tls), receiver).await;
            });
            // A file that is being written is let be written: its folder may go next.
            drop(runtime);
        })?;
        Ok((Self { orders: Some(orders), frozen: None, thread: Some(thread) }, address))
    }

    pub(crate) fn freeze(&mut self) {
        let (is_frozen, say_frozen) = mpsc::channel();
        let (thaw, until) = mpsc::channel();
        if let Some(orders) = &self.orders {
            // A thread that has ended is as silent as a frozen one.
            let _ended = orders.send(Freeze { is_frozen, until });
            let _ended = say_frozen.recv();
            self.frozen = Some(thaw);
        }
    }

    pub(crate) fn thaw(&mut self) {
        self.frozen = None;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.thaw();
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed.
            let _panicked = thread.join();
        }
    }
}

/// Until the orders end.
async fn serve(
    listener: TcpListener,
    (service, tls): (S3Service, Option<TlsAcceptor>),
    mut orders: UnboundedReceiver<Freeze>,
) {
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Freeze { is_frozen, until }) = order else { return };
                let _gone = is_frozen.send(());
                // Blocks the only thread there is.
                let _dropped = until.recv();
            }
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                let (service, tls) = (service.clone(), tls.clone());
                tokio::spawn(async move {
                    // Whoever hung up, or does not trust us, knows why.
                    let protocol = http1::Builder::new();
                    match tls {
                        None => drop(protocol.serve_connection(TokioIo::new(socket), service).await),
                        Some(tls) => {
                            let Ok(socket) = tls.accept(socket).await else { return };
                            drop(protocol.serve_connection(TokioIo::new(socket), service).await);
                        }
                    }
                });
            }
        }
    }
}
