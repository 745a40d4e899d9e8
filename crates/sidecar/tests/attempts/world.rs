//! Real attempts for tests: the real sidecar, driven through `handoff` and `runtime` as the worker does it.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use jobyard_handoff::log::{LogReader, Stream};
use jobyard_handoff::{
    AttemptDirectory, AttemptIdentity, Containment, Environment, ExecPlan, ExitRecord, FrameBuffer,
    FromSidecar, Hello, LogPlan, RestartPlan, ServiceState, Times, ToSidecar, UserIds,
};
use jobyard_runtime::{
    NodeRuntime, PrepareRequest, Prepared, Program, Resources, Sidecar, SidecarPool, cleanup,
};

pub(crate) const SIDECAR: &str = env!("CARGO_BIN_EXE_jobyard-sidecar");
/// For anything that should happen at once, on a machine that may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
    pub(crate) runtime: NodeRuntime,
    next: Cell<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        static WORLDS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = tempfile::tempdir().unwrap();
        // A task's own user has to get through to its directories.
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let runtime = NodeRuntime::set_up(&format!("test-{}-{number}", std::process::id())).unwrap();
        Self { root, runtime, next: Cell::new(1) }
    }

    pub(crate) fn contained_by(containment: Containment) -> Self {
        let world = Self::new();
        let runtime = world.runtime.clone().with_containment(containment);
        // The groups of the original stay for the drop.
        Self { runtime, root: tempfile::tempdir().unwrap(), next: Cell::new(1) }.opened(world)
    }

    fn opened(self, other: Self) -> Self {
        std::fs::set_permissions(self.root.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        drop(other);
        self
    }

    pub(crate) fn is_root(&self) -> bool {
        self.runtime.abilities().users
    }

    /// An attempt at a shell script.
    pub(crate) fn shell(&self, script: &str) -> Draft<'_> {
        self.command(&["/bin/sh", "-c", script])
    }

    pub(crate) fn command(&self, words: &[&str]) -> Draft<'_> {
        let number = self.next.replace(self.next.get() + 1);
        Draft {
            world: self,
            number,
            words: words.iter().map(OsString::from).collect(),
            environment: Vec::new(),
            directory: None,
            resources: Resources { memory_bytes: 256 << 20, ..Resources::default() },
            times: Times { heartbeat_ms: 200, stop_grace_ms: 5_000, ..Times::default() },
            exclusive: false,
            restart: None,
            log_limit_bytes: 1 << 30,
            own_user: self.is_root(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What a failed test leaves: sidecars and tasks work in folders of the world.
        for pid in working_in(self.root.path()) {
            // It may have ended since it was found.
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.runtime.tear_down();
    }
}

fn working_in(folder: &Path) -> Vec<rustix::process::Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let inside = entries.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(folder))
    });
    let pids = inside.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(rustix::process::Pid::from_raw).collect()
}

#[derive(Clone)]
pub(crate) struct Draft<'a> {
    world: &'a World,
    pub(crate) number: u32,
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) resources: Resources,
    pub(crate) times: Times,
    pub(crate) exclusive: bool,
    pub(crate) restart: Option<RestartPlan>,
    pub(crate) log_limit_bytes: u64,
    pub(crate) own_user: bool,
}

impl Draft<'_> {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn timeout_ms(self, timeout_ms: u64) -> Self {
        self.with(|draft| draft.times.timeout_ms = timeout_ms)
    }

    pub(crate) fn grace_ms(self, grace_ms: u64) -> Self {
        self.with(|draft| draft.times.stop_grace_ms = grace_ms)
    }

    pub(crate) fn try_prepare(&self) -> Result<Prepared, jobyard_runtime::PrepareError> {
        let name = format!("a{}", self.number);
        let scratch = self.world.path(&format!("scratch-{}", self.number));
        let uid = 700_000 + (std::process::id() % 10_000) * 10 + self.number;
        self.world.runtime.prepare(&PrepareRequest {
            identity: AttemptIdentity {
                job_id: format!("job-{}-{}", std::process::id(), self.number),
                attempt: self.number,
                lease_id: "lease".into(),
            },
            name: &name,
            program: Program::FromArguments,
            arguments: &self.words,
            environment: &self.environment,
            directory: self.directory.as_deref(),
            input: None,
            scratch: &scratch,
            user: self.own_user.then_some(UserIds { uid, gid: uid, private: true }),
            resources: self.resources,
            times: self.times,
            exclusive: self.exclusive,
            restart: self.restart.clone(),
            log: LogPlan {
                path: self.world.path(&format!("log-{}", self.number)),
                limit_bytes: self.log_limit_bytes,
            },
        })
    }

    pub(crate) fn start(self) -> Live {
        let prepared = self.try_prepare().unwrap();
        self.start_prepared(prepared)
    }

    /// With a plan changed by hand.
    pub(crate) fn start_with(self, change: impl FnOnce(&mut ExecPlan, &mut Environment)) -> Live {
        let mut prepared = self.try_prepare().unwrap();
        change(&mut prepared.plan, &mut prepared.environment);
        self.start_prepared(prepared)
    }

    pub(crate) fn start_prepared(self, prepared: Prepared) -> Live {
        self.start_by(&SidecarPool::new(SIDECAR), prepared)
    }

    pub(crate) fn start_by(self, pool: &SidecarPool, prepared: Prepared) -> Live {
        let path = self.world.path(&format!("attempt-{}", self.number));
        let directory = AttemptDirectory::create(path, &prepared.plan, &prepared.environment).unwrap();
        let sidecar = pool.begin(&directory).unwrap();
        Live {
            directory,
            plan: prepared.plan,
            output: prepared.output,
            process: sidecar.process,
            talk: Talk::over(sidecar.connection),
        }
    }

    /// From start to end, with everything cleared up.
    pub(crate) fn run(self) -> Done {
        self.start().finish()
    }
}

/// A sidecar of its own for this attempt.
pub(crate) fn begin(directory: &AttemptDirectory) -> Sidecar {
    SidecarPool::new(SIDECAR).begin(directory).unwrap()
}

/// A connection from the worker's side.
pub(crate) struct Talk {
    pub(crate) stream: UnixStream,
    buffer: FrameBuffer,
}

impl Talk {
    pub(crate) fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, buffer: FrameBuffer::default() }
    }

    pub(crate) fn say(&mut self, frame: &ToSidecar) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next frame; `None` when the sidecar closed the connection.
    pub(crate) fn next(&mut self) -> Option<FromSidecar> {
        loop {
            if let Some(frame) = self.buffer.next_frame().unwrap() {
                return Some(frame);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).expect("the sidecar says nothing") {
                0 => return None,
                read => self.buffer.extend(&bytes[..read]),
            }
        }
    }

    pub(crate) fn until<T>(&mut self, mut pick: impl FnMut(&FromSidecar) -> Option<T>) -> T {
        loop {
            let frame = self.next().expect("the connection ended early");
            if let Some(found) = pick(&frame) {
                return found;
            }
        }
    }

    pub(crate) fn hello(&mut self) -> Hello {
        self.until(|frame| match frame {
            FromSidecar::Hello(hello) => Some(hello.clone()),
            _ => None,
        })
    }

    pub(crate) fn started(&mut self) -> u32 {
        self.until(|frame| match frame {
            FromSidecar::Started { main_pid, .. } => Some(*main_pid),
            _ => None,
        })
    }

    pub(crate) fn heartbeat(&mut self) {
        self.until(|frame| matches!(frame, FromSidecar::Heartbeat { .. }).then_some(()));
    }

    /// Until the sidecar has let go of its attempt.
    pub(crate) fn let_go(&mut self) {
        self.say(&ToSidecar::AckOutcome);
        self.until(|frame| matches!(frame, FromSidecar::Idle).then_some(()));
    }

    /// The same; then the connection closes, upon which it leaves.
    pub(crate) fn acknowledge(&mut self) {
        self.let_go();
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// The next that is told of a service.
    pub(crate) fn service(&mut self) -> ServiceState {
        self.until(|frame| match frame {
            FromSidecar::Service(state) => Some(*state),
            FromSidecar::Ended(record) => unreachable!("it is over: {record:?}"),
            _ => None,
        })
    }

    pub(crate) fn ended(&mut self) -> ExitRecord {
        self.until(|frame| match frame {
            FromSidecar::Ended(record) => Some((**record).clone()),
            _ => None,
        })
    }
}

pub(crate) struct Live {
    pub(crate) directory: AttemptDirectory,
    pub(crate) plan: ExecPlan,
    pub(crate) output: PathBuf,
    pub(crate) process: Child,
    pub(crate) talk: Talk,
}

/// What is left of an attempt.
pub(crate) struct Done {
    pub(crate) record: ExitRecord,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Live {
    pub(crate) fn stop(&mut self, grace_ms: u64) {
        self.talk.say(&ToSidecar::Stop { reason: jobyard_handoff::StopReason::Cancel, grace_ms });
    }

    /// Waits until the log holds these bytes: how a script says that it has come so far.
    pub(crate) fn wait_for_output(&self, wanted: &str) {
        wait_until(wanted, || contains(&read_log(&self.plan.log.path).0, wanted.as_bytes()));
    }

    /// Waits for the end, acknowledges it, and takes everything away.
    pub(crate) fn finish(mut self) -> Done {
        let record = self.talk.ended();
        assert_eq!(
            self.directory.exit_record().unwrap().as_ref(),
            Some(&record),
            "the file says what the frame says"
        );
        self.talk.acknowledge();
        assert!(!self.directory.is_held().unwrap());
        assert!(self.process.wait().unwrap().success());
        assert_no_member(&self.plan);
        self.clear_up(record)
    }

    /// Waits for the end, acknowledges it, takes everything away, and leaves the sidecar for the next one.
    pub(crate) fn finish_with(mut self, after: impl FnOnce(Sidecar)) -> Done {
        let record = self.talk.ended();
        self.talk.let_go();
        assert!(!self.directory.is_held().unwrap());
        let (process, connection) = (self.process, self.talk.stream.try_clone().unwrap());
        after(Sidecar { process, connection });
        clear_up(&self.plan, &self.directory, record)
    }

    pub(crate) fn clear_up(self, record: ExitRecord) -> Done {
        clear_up(&self.plan, &self.directory, record)
    }
}

fn clear_up(plan: &ExecPlan, directory: &AttemptDirectory, record: ExitRecord) -> Done {
    let (stdout, stderr) = read_log(&plan.log.path);
    cleanup(plan).unwrap();
    cleanup(plan).unwrap();
    assert_eq!(leftovers(plan.scratch.as_ref().unwrap()), [] as [PathBuf; 0]);
    for group in plan.groups.directories() {
        assert!(!group.exists(), "{}", group.display());
    }
    directory.remove().unwrap();
    directory.remove().unwrap();
    Done { record, stdout, stderr }
}

/// What is in the folders of an attempt, and beside them.
fn leftovers(scratch: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let is_folder = |path: &PathBuf| ["work", "input", "output"].iter().any(|name| path.ends_with(name));
    let (folders, others): (Vec<_>, Vec<_>) = entries(scratch).partition(is_folder);
    others.into_iter().chain(folders.iter().flat_map(|folder| entries(folder))).collect()
}

pub(crate) fn assert_no_member(plan: &ExecPlan) {
    for group in plan.groups.directories() {
        let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        assert_eq!(members, "", "{}", group.display());
    }
}

/// stdout and stderr.
pub(crate) fn read_log(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let Ok(mut reader) = LogReader::open(path, 0) else { return (stdout, stderr) };
    loop {
        let batch = reader.next_batch().unwrap();
        if batch.is_empty() {
            return (stdout, stderr);
        }
        for record in batch {
            match record.stream {
                Stream::Stdout => stdout.extend_from_slice(record.bytes),
                Stream::Stderr => stderr.extend_from_slice(record.bytes),
            }
        }
    }
}

pub(crate) fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Living processes whose command line holds this text.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != own && contains(&line, text.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// A number no other test of this run sleeps for.
pub(crate) fn odd_seconds() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}.{}", 4_000 + next, std::process::id())
}

pub(crate) fn kill(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// CLOCK_BOOTTIME, as far as the kernel tells it in text.
pub(crate) fn boottime_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap() * 1_000 + u64::try_from(time.tv_nsec).unwrap() / 1_000_000
}
