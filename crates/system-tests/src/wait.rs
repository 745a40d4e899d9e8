//! Waiting for a condition instead of sleeping.

use std::future::Future;
use std::time::{Duration, Instant};

/// No test waits longer for one thing.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Asks until the answer is there; panics with `what` after [`DEADLINE`].
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < until, "never came about: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The ids of processes whose command line contains `text`.
#[must_use]
pub fn processes_named(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text).then_some(pid)
    };
    entries.filter_map(of).filter(|pid| *pid != std::process::id()).collect()
}
