//! What can be set of a worker.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jobyard_model::node::MAX_ATTEMPTS_PER_NODE;

/// What a worker is told about its machine and its task.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// On disk, this worker's alone: identity, logs, undelivered outcomes.
    pub data_dir: PathBuf,
    /// On a tmpfs: the attempt directories. `None`: `/run/jobyard/<node>` for root, else `$XDG_RUNTIME_DIR`, else
    /// `/dev/shm`, whichever is a tmpfs, and in the data directory where there is none.
    pub state_dir: Option<PathBuf>,
    /// Where task processes find their working directories and executables; every folder above it must be
    /// enterable by all users when the worker is root. `None`: the data directory, or a folder in `/var/tmp` when
    /// that is closed.
    pub task_dir: Option<PathBuf>,
    /// The `jobyard-sidecar` binary.
    pub sidecar_path: PathBuf,
    /// The address informers push to, as registered; empty when they are in this process.
    pub door: String,
    /// The pool this node serves.
    pub pool: String,
    /// The name shown to people; `None`: the host's.
    pub name: Option<String>,
    /// Thousandths of a core on offer; `None`: all the machine has.
    pub cpu_milli: Option<u64>,
    /// Memory on offer; `None`: all the machine has.
    pub memory_bytes: Option<u64>,
    /// Attempts at a time.
    pub max_attempts: u32,
    /// The first of 4,096 user ids for a root worker's attempts, which nothing else on the machine may use; `None`: by
    /// the node's id.
    pub first_user_id: Option<u32>,
    /// Matched against a job's `node_labels`.
    pub labels: BTreeMap<String, String>,
    /// Bytes of output kept of one attempt.
    pub log_limit_bytes: u64,
    /// Bytes of outputs kept of one attempt; one that leaves more fails.
    pub output_limit_bytes: u64,
    /// What the cache of executables may hold; those in use are kept whatever they add up to.
    pub cache_limit_bytes: u64,
    /// Launches are refused while the data disk has less than this.
    pub disk_floor_bytes: u64,
    /// Every interval.
    pub times: WorkerTimes,
}

/// Every interval of a worker, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerTimes {
    /// Between two node heartbeats.
    pub node_heartbeat_ms: u64,
    /// Between two proofs while the node is suspended.
    pub prove_ms: u64,
    /// Logs of a busy node are gathered this long.
    pub log_batch_ms: u64,
    /// See [`jobyard_handoff::Times::lease_margin_ms`].
    pub lease_margin_ms: u64,
    /// See [`jobyard_handoff::Times::orphan_limit_ms`].
    pub orphan_limit_ms: u64,
    /// What a stopping worker may take to say what it has in hand.
    pub hand_over_ms: u64,
    /// What outputs may take to go up; after that it is the platform's failure.
    pub upload_ms: u64,
}

impl Default for WorkerTimes {
    fn default() -> Self {
        Self {
            node_heartbeat_ms: 5_000,
            prove_ms: 60_000,
            log_batch_ms: 200,
            lease_margin_ms: 10_000,
            orphan_limit_ms: 24 * 3_600_000,
            hand_over_ms: 5_000,
            upload_ms: 10 * 60_000,
        }
    }
}

impl WorkerSettings {
    /// The usual settings, for the pool `default` and everything the machine has.
    pub fn new(data_dir: impl Into<PathBuf>, sidecar_path: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            state_dir: None,
            task_dir: None,
            sidecar_path: sidecar_path.into(),
            door: String::new(),
            pool: "default".to_owned(),
            name: None,
            cpu_milli: None,
            memory_bytes: None,
            max_attempts: MAX_ATTEMPTS_PER_NODE,
            first_user_id: None,
            labels: BTreeMap::new(),
            log_limit_bytes: 256 << 20,
            output_limit_bytes: 64 << 30,
            cache_limit_bytes: 10 << 30,
            disk_floor_bytes: 64 << 20,
            times: WorkerTimes::default(),
        }
    }
}
