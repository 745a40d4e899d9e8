//! Where `jobyard up` keeps everything unless told otherwise, and where the saved context lies.
//!
//! Owns the two default places. Never creates them.

use std::path::PathBuf;

/// `$JOBYARD_DATA_DIR`, else `$XDG_DATA_HOME/jobyard`, else `~/.local/share/jobyard`; `None` when there is none.
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("JOBYARD_DATA_DIR").filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named));
    }
    Some(base("XDG_DATA_HOME", ".local/share")?.join("jobyard"))
}

/// `$XDG_CONFIG_HOME/jobyard/config.toml`, or `~/.config/jobyard/config.toml`; `None` when there is neither.
pub(crate) fn context_file() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("jobyard/config.toml"))
}

/// The XDG rule: a relative path in the variable is as if it weren't set.
fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set(variable).or_else(|| Some(set("HOME")?.join(below_home)))
}
