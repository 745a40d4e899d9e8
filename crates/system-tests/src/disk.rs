//! A disk that is soon full: a tmpfs of a given size.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounted; unmounted when dropped.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Makes the folder and mounts a tmpfs there. Needs root.
    pub(crate) fn mount(path: &Path, options: &str) -> Self {
        fs::create_dir_all(path).expect("a folder to mount on");
        mount(path, &format!("mode=700,{options}"));
        Self { path: path.to_owned() }
    }

    /// Makes it larger or smaller.
    pub(crate) fn remount(&self, options: &str) {
        mount(&self.path, &format!("remount,{options}"));
    }

    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: whatever was killed a moment ago may still hold it.
        let done = Command::new("umount").arg("--lazy").arg(&self.path).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.path.display());
        }
    }
}

fn mount(path: &Path, options: &str) {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
    let done = done.expect("mount runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
