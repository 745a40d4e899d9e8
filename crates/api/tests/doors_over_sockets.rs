//! The doors over real unix sockets: what arrives, and what an error says about the fate of a call.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jobyard_api::doors::{DoorError, ReportDoor, WorkerDoor};
use jobyard_api::grpc::{self, BindError, ReportDoorClient, WorkerDoorClient};
use jobyard_api::proto;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Answers with what it was asked, so that a test sees that the request arrived whole.
struct Echo {
    name: &'static str,
}

#[async_trait]
impl WorkerDoor for Echo {
    async fn launch(&self, request: proto::LaunchRequest) -> Result<proto::LaunchReply, DoorError> {
        let answer = |launch: proto::Launch| proto::LaunchAnswer {
            verdict: proto::LaunchVerdict::Accepted.into(),
            message: launch.command.join(" "),
        };
        Ok(proto::LaunchReply { answers: request.launches.into_iter().map(answer).collect() })
    }

    async fn stop(&self, _request: proto::StopRequest) -> Result<proto::StopReply, DoorError> {
        Err(DoorError::Refused { address: String::new(), why: "no stops here".to_owned() })
    }
}

#[async_trait]
impl ReportDoor for Echo {
    async fn register(&self, request: proto::RegisterRequest) -> Result<proto::RegisterReply, DoorError> {
        if request.pool == "moon" {
            return Err(DoorError::Refused { address: String::new(), why: "there is no moon".to_owned() });
        }
        let verdict = proto::NodeVerdict::Welcome.into();
        Ok(proto::RegisterReply { verdict, message: self.name.to_owned() })
    }

    async fn heartbeat(&self, _request: proto::HeartbeatRequest) -> Result<proto::HeartbeatReply, DoorError> {
        Err(DoorError::Unknown { address: String::new(), why: "the datastore is away".to_owned() })
    }

    async fn report(&self, request: proto::ReportRequest) -> Result<proto::ReportReply, DoorError> {
        let answer = |report: &proto::Report| proto::ReportAnswer {
            verdict: proto::ReportVerdict::Accepted.into(),
            intent: report.attempt,
        };
        Ok(proto::ReportReply {
            logs: request
                .logs
                .iter()
                .map(|chunk| proto::LogAnswer {
                    verdict: proto::LogVerdict::End.into(),
                    end: chunk.data.len() as u64,
                })
                .collect(),
            reports: request.reports.iter().map(answer).collect(),
        })
    }

    async fn fetch_artifact(
        &self,
        request: proto::FetchArtifactRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let broken = DoorError::Unknown { address: String::new(), why: "the disk broke".to_owned() };
        Ok(futures_util::stream::iter([Ok(request.sha256), Err(broken)]).boxed())
    }

    async fn missing_artifacts(
        &self,
        request: proto::MissingArtifactsRequest,
    ) -> Result<proto::MissingArtifactsReply, DoorError> {
        Ok(proto::MissingArtifactsReply { missing: request.sha256 })
    }

    async fn fetch_secrets(
        &self,
        request: proto::FetchSecretsRequest,
    ) -> Result<proto::FetchSecretsReply, DoorError> {
        let value = String::from_utf8_lossy(&request.lease_id).into_owned();
        Ok(proto::FetchSecretsReply { secrets: [("TOKEN".to_owned(), value)].into() })
    }

    /// Keeps what is as long as its name says.
    async fn store_artifact(
        &self,
        request: proto::StoreArtifactRequest,
        mut data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let mut length = 0;
        while let Some(piece) = data.next().await {
            length += piece.unwrap().len();
        }
        match request.sha256 == length.to_string() {
            true => Ok(()),
            false => Err(DoorError::Refused { address: String::new(), why: format!("{length} bytes") }),
        }
    }

    async fn find_objects(
        &self,
        request: proto::FindObjectsRequest,
    ) -> Result<proto::FindObjectsReply, DoorError> {
        Ok(proto::FindObjectsReply { objects: Vec::new(), next: request.after })
    }

    async fn fetch_object(
        &self,
        request: proto::FetchObjectRequest,
    ) -> Result<BoxStream<'static, Result<Bytes, DoorError>>, DoorError> {
        let broken = DoorError::Unknown { address: String::new(), why: "it was changed".to_owned() };
        Ok(futures_util::stream::iter([Ok(request.path.into()), Err(broken)]).boxed())
    }

    async fn store_output(
        &self,
        request: proto::StoreOutputRequest,
        data: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<(), DoorError> {
        let named = proto::StoreArtifactRequest { sha256: request.sha256, ..Default::default() };
        self.store_artifact(named, data).await
    }
}

struct Served {
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Served {
    async fn report_door(path: &Path, name: &'static str) -> Self {
        let listener = grpc::bind_door(path).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { drop(stopped.await) };
        let server = tokio::spawn(grpc::serve_report_door(listener, Arc::new(Echo { name }), shutdown));
        Self { stop, server }
    }

    async fn worker_door(path: &Path) -> Self {
        let listener = grpc::bind_door(path).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { drop(stopped.await) };
        let server = tokio::spawn(grpc::serve_worker_door(listener, Arc::new(Echo { name: "w" }), shutdown));
        Self { stop, server }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

async fn registered(door: &ReportDoorClient) -> Result<String, DoorError> {
    door.register(proto::RegisterRequest::default()).await.map(|reply| reply.message)
}

#[tokio::test]
async fn launches_arrive_whole_and_no_status_proves_that_nothing_happened() {
    let directory = directory();
    let path = directory.path().join("worker.sock");
    let served = Served::worker_door(&path).await;
    let door = WorkerDoorClient::new(&path);
    let big = "x".repeat(6 << 20);
    let launches = vec![proto::Launch { command: vec![big.clone()], ..proto::Launch::default() }];
    let reply = door.launch(proto::LaunchRequest { launches, ..Default::default() }).await.unwrap();
    assert_eq!(reply.answers[0].message, big);
    let error = door.stop(proto::StopRequest::default()).await.unwrap_err();
    assert!(matches!(&error, DoorError::Unknown { why, .. } if why == "no stops here"), "{error}");
    drop(door);
    served.stop().await;
}

#[tokio::test]
async fn without_a_listener_nothing_was_sent() {
    let directory = directory();
    let door = ReportDoorClient::new(vec![directory.path().join("a"), directory.path().join("b")]);
    let error = registered(&door).await.unwrap_err();
    assert!(matches!(error, DoorError::NotSent { .. }), "{error}");
    let none = ReportDoorClient::new(Vec::new());
    assert!(matches!(registered(&none).await, Err(DoorError::NotSent { .. })));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_passed_over_and_a_new_one_is_found() {
    let directory = directory();
    let paths: Vec<PathBuf> = ["a", "b"].map(|name| directory.path().join(name)).to_vec();
    let second = Served::report_door(&paths[1], "second").await;
    let door = ReportDoorClient::new(paths.clone());
    assert_eq!(registered(&door).await.unwrap(), "second");
    let first = Served::report_door(&paths[0], "first").await;
    second.stop().await;
    // The kept connection is closed: whether this call met that or went to the other server, the next one works.
    let _ = registered(&door).await;
    assert_eq!(registered(&door).await.unwrap(), "first");
    drop(door);
    first.stop().await;
}

#[tokio::test]
async fn a_failure_is_of_unknown_fate_and_a_refusal_is_told_apart() {
    let directory = directory();
    let path = directory.path().join("server.sock");
    let served = Served::report_door(&path, "server").await;
    let door = ReportDoorClient::new(vec![path]);
    let error = door.heartbeat(proto::HeartbeatRequest::default()).await.unwrap_err();
    assert!(matches!(&error, DoorError::Unknown { why, .. } if why == "the datastore is away"), "{error}");
    let moon = proto::RegisterRequest { pool: "moon".to_owned(), ..Default::default() };
    let error = door.register(moon).await.unwrap_err();
    assert!(matches!(&error, DoorError::Refused { why, .. } if why == "there is no moon"), "{error}");
    drop(door);
    served.stop().await;
}

#[tokio::test]
async fn reports_logs_and_artifacts_pass() {
    let directory = directory();
    let path = directory.path().join("server.sock");
    let served = Served::report_door(&path, "server").await;
    let door = ReportDoorClient::new(vec![path]);
    let data = Bytes::from(vec![0; 256 << 10]);
    let request = proto::ReportRequest {
        logs: vec![proto::LogChunk { data, ..Default::default() }; 16],
        reports: vec![proto::Report { attempt: 2, ..Default::default() }],
        ..Default::default()
    };
    let reply = door.report(request).await.unwrap();
    assert_eq!((reply.logs.len(), reply.logs[15].end), (16, 256 << 10));
    assert_eq!(reply.reports[0].intent, 2);
    let request = proto::FetchArtifactRequest { sha256: Bytes::from_static(b"hash"), ..Default::default() };
    let mut chunks = door.fetch_artifact(request).await.unwrap();
    assert_eq!(chunks.next().await.unwrap().unwrap(), "hash");
    assert!(matches!(chunks.next().await, Some(Err(DoorError::Unknown { .. }))));
    assert!(chunks.next().await.is_none());
    let request = proto::FetchSecretsRequest { lease_id: Bytes::from_static(b"hunter2") };
    let reply = door.fetch_secrets(request).await.unwrap();
    assert_eq!(reply.secrets["TOKEN"], "hunter2");
    assert_eq!(format!("{reply:?}"), "{\"TOKEN\"}");
    drop((chunks, door));
    served.stop().await;
}

#[tokio::test]
async fn a_door_needs_a_private_directory_and_a_free_name() {
    let directory = directory();
    let path = directory.path().join("new/door.sock");
    let served = Served::report_door(&path, "server").await;
    let mode = std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(matches!(grpc::bind_door(&path).await, Err(BindError::InUse(_))));
    served.stop().await;
    // Its left-over socket is taken over.
    drop(grpc::bind_door(&path).await.unwrap());
    let open = directory.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = grpc::bind_door(&open.join("door.sock")).await.unwrap_err();
    assert!(refused.to_string().contains("its mode is 0755"), "{refused}");
    assert!(matches!(grpc::bind_door(Path::new("/")).await, Err(BindError::BadPath(_))));
}

/// A child of a killed process holds its socket until it runs its own program.
#[tokio::test]
async fn a_door_that_is_still_held_for_a_moment_is_waited_for() {
    let directory = directory();
    let path = directory.path().join("door.sock");
    let held = tokio::net::UnixListener::bind(&path).unwrap();
    let binding = tokio::spawn(async move { grpc::bind_door(&path).await.map(drop) });
    // It has looked, and found the name taken.
    held.accept().await.unwrap();
    drop(held);
    binding.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_long_path_is_no_obstacle() {
    let directory = directory();
    let path = directory.path().join("d".repeat(120)).join("door.sock");
    let served = Served::report_door(&path, "far").await;
    let door = ReportDoorClient::new(vec![path]);
    assert_eq!(registered(&door).await.unwrap(), "far");
    drop(door);
    served.stop().await;
}

/// Where the other user's half of the next test finds the socket.
const SOCKET_VARIABLE: &str = "DOOR_OF_ANOTHER_USER";

#[tokio::test]
async fn another_user_is_refused() {
    if let Some(path) = std::env::var_os(SOCKET_VARIABLE) {
        let refused = registered(&ReportDoorClient::new(vec![path.into()])).await.unwrap_err();
        // Which of the two depends on whether the call left before the door closed.
        let is_unheard = matches!(refused, DoorError::NotSent { .. } | DoorError::Unknown { .. });
        assert!(is_unheard, "closed without a word: {refused}");
        // Not even a client that doesn't look at the listener gets through.
        let stream = std::os::unix::net::UnixStream::connect(std::env::var_os(SOCKET_VARIABLE).unwrap());
        let closed = std::io::Read::read(&mut stream.unwrap(), &mut [0; 64]);
        assert!(matches!(closed, Ok(0)) || closed.is_err(), "{closed:?}");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        // Only root can be somebody else.
        return;
    }
    let directory = directory();
    let path = directory.path().join("server.sock");
    let served = Served::report_door(&path, "server").await;
    // As wide open as it could be by mistake.
    let open = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(directory.path(), 0o755);
    open(&path, 0o777);
    let program = directory.path().join("other");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let other = tokio::process::Command::new(program)
        .args(["--exact", "another_user_is_refused", "--nocapture"])
        .env(SOCKET_VARIABLE, &path)
        .current_dir("/")
        .uid(65_534)
        .gid(65_534)
        .output()
        .await
        .unwrap();
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
    served.stop().await;
}

#[tokio::test]
async fn an_artifact_goes_up_in_pieces_and_one_that_can_not_be_read_is_not_refused() {
    let directory = directory();
    let path = directory.path().join("report.sock");
    let served = Served::report_door(&path, "r").await;
    let door = ReportDoorClient::new(vec![path]);
    let send = async |name: &'static [u8], pieces: Vec<std::io::Result<Bytes>>| {
        let request = proto::StoreArtifactRequest {
            sha256: Bytes::from_static(name),
            data: Bytes::from_static(b"not looked at"),
            ..Default::default()
        };
        door.store_artifact(request, futures_util::stream::iter(pieces).boxed()).await
    };
    let piece = || Ok(Bytes::from(vec![0; 1 << 20]));
    send(b"3145728", vec![piece(), piece(), piece()]).await.unwrap();
    send(b"0", Vec::new()).await.unwrap();
    let refused = send(b"7", vec![piece()]).await.unwrap_err();
    assert!(matches!(&refused, DoorError::Refused { why, .. } if why == "1048576 bytes"), "{refused}");
    let broken = send(b"7", vec![piece(), Err(std::io::Error::other("bad sector"))]).await.unwrap_err();
    assert!(matches!(&broken, DoorError::Unknown { why, .. } if why == "bad sector"), "{broken}");
    drop(door);
    served.stop().await;
}
