//! The node's own signs of life: registers until it is welcome, then says each few seconds that it is there, and
//! proves itself when it is suspended.

use std::sync::Arc;
use std::time::Duration;

use jobyard_api::grpc::convert;
use jobyard_api::proto::{self, NodeVerdict};
use jobyard_model::Runtime;
use jobyard_model::node::NodeRegistration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::error::WorkerError;
use crate::node::Node;
use crate::probe::prove;

/// Between two tries to register while nobody answers.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long outcomes of an earlier worker are tried before the registration.
const LEFT_OVERS_PATIENCE: Duration = Duration::from_secs(30);

/// Where the node stands with the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has answered yet.
    Unheard,
    Welcome,
    /// It must not go on.
    Out(WorkerError),
}

pub(crate) async fn run(node: Arc<Node>, standing: watch::Sender<Standing>) {
    if timeout(LEFT_OVERS_PATIENCE, node.relay.left_overs_told()).await.is_err() {
        tracing::warn!("outcomes of an earlier worker are still undelivered; registering all the same");
    }
    let mut proofs = Proofs::default();
    loop {
        let out = match register(&node).await {
            Some(error) => error,
            None => {
                standing.send_replace(Standing::Welcome);
                match beat(&node, &mut proofs).await {
                    Some(error) => error,
                    None => continue,
                }
            }
        };
        tracing::error!(error = &out as &dyn std::error::Error, "this worker must not go on");
        standing.send_replace(Standing::Out(out));
        return;
    }
}

/// Until there is an answer. `None`: welcome.
async fn register(node: &Node) -> Option<WorkerError> {
    let request = registration(node);
    let mut pause = FIRST_PAUSE;
    loop {
        match node.door.register(request.clone()).await {
            Ok(reply) => match reply.verdict() {
                NodeVerdict::Welcome => return None,
                NodeVerdict::Superseded => return Some(WorkerError::Superseded),
                NodeVerdict::Refused => return Some(WorkerError::Refused(reply.message)),
                NodeVerdict::Unknown | NodeVerdict::Unspecified => {
                    tracing::warn!(message = reply.message, "the registration has no clear answer");
                }
            },
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not register, trying again");
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn registration(node: &Node) -> proto::RegisterRequest {
    let settings = &node.settings;
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    proto::RegisterRequest::from(&NodeRegistration {
        node_id: node.identity.node_id,
        session: node.identity.session,
        boot_id: node.runtime.boot_id().to_owned(),
        name: settings.name.clone().unwrap_or_else(host),
        pool: settings.pool.clone(),
        capacity: node.capacity.resources,
        max_attempts: node.capacity.attempts,
        labels: settings.labels.clone(),
        runtimes: vec![Runtime::Process],
        containment: node.runtime.abilities().containment.name().to_owned(),
        door: settings.door.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Heartbeats until the node must register again (`None`) or must not go on.
async fn beat(node: &Arc<Node>, proofs: &mut Proofs) -> Option<WorkerError> {
    loop {
        sleep(Duration::from_millis(node.settings.times.node_heartbeat_ms)).await;
        let (nonce, _) = Uuid::new_v4().as_u64_pair();
        let proven = proofs.is_proven();
        let request = proto::HeartbeatRequest {
            node_id: convert::id_bytes(node.identity.node_id.0),
            session: convert::id_bytes(node.identity.session.0),
            nonce,
            proven,
        };
        match node.door.heartbeat(request).await {
            Ok(reply) => match reply.verdict() {
                NodeVerdict::Welcome => {
                    if proven {
                        proofs.used();
                    }
                    if !reply.suspended.is_empty() {
                        proofs.wanted(node, &reply.suspended);
                    }
                }
                NodeVerdict::Superseded => return Some(WorkerError::Superseded),
                NodeVerdict::Unknown => return None,
                NodeVerdict::Refused | NodeVerdict::Unspecified => {
                    tracing::warn!("a heartbeat has no clear answer");
                }
            },
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a heartbeat was not answered");
            }
        }
    }
}

/// Proofs that a suspended node works, one at a time and not too often.
#[derive(Default)]
struct Proofs {
    last: Option<Instant>,
    proven: Option<watch::Receiver<Proof>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Pending,
    Failed,
    Given,
}

impl Proofs {
    fn is_proven(&self) -> bool {
        self.proven.as_ref().is_some_and(|proven| *proven.borrow() == Proof::Given)
    }

    fn used(&mut self) {
        self.proven = None;
    }

    fn wanted(&mut self, node: &Arc<Node>, why: &str) {
        let pause = Duration::from_millis(node.settings.times.prove_ms);
        let is_early = self.last.is_some_and(|last| last.elapsed() < pause);
        let is_pending = self.proven.as_ref().is_some_and(|proven| *proven.borrow() != Proof::Failed);
        if is_early || is_pending {
            return;
        }
        tracing::warn!(why, "the node is suspended; proving it");
        self.last = Some(Instant::now());
        let (tell, proven) = watch::channel(Proof::Pending);
        self.proven = Some(proven);
        let prover = Arc::clone(node);
        node.spawn_background(async move {
            let proof = match prove(&prover).await {
                Ok(()) => Proof::Given,
                Err(why) => {
                    tracing::error!(why, "this node can't run /bin/true");
                    Proof::Failed
                }
            };
            tell.send_replace(proof);
        });
    }
}
