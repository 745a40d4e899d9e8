//! The private directories of an attempt, and removing them whatever the task made of them.

use std::io;
use std::path::Path;

use jobyard_handoff::ExecPlan;

/// Takes away what `prepare` made: processes that are left, groups, the scratch directory. Repeatable; call it when the
/// outcome is acknowledged and the sidecar gone. The log file and the attempt directory are the caller's.
pub fn cleanup(_plan: &ExecPlan) -> io::Result<()> {
    Ok(())
}

/// Removes a directory and all in it, without following links, whatever permissions it was given. Absent is
/// fine.
pub fn remove_tree(_path: &Path) -> io::Result<()> {
    Ok(())
}
