//! How far a folder is on its way: a bar on a terminal, nothing anywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use jobyard_client::{FolderStep, FolderWatch};

const TEMPLATE: &str = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

/// On standard error; hidden where that is no terminal.
pub(crate) struct FolderProgress {
    bar: ProgressBar,
}

impl FolderProgress {
    pub(crate) fn begin() -> Self {
        let bar = ProgressBar::new(0).with_message("looking");
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// What the client library tells its steps to.
    pub(crate) fn watch(&self) -> FolderWatch {
        let bar = self.bar.clone();
        let is_moving = AtomicBool::new(false);
        Arc::new(move |step| match step {
            FolderStep::Listed { bytes, .. } => bar.set_length(bytes),
            FolderStep::Hashed { bytes } => {
                bar.set_message("reading");
                bar.inc(bytes);
            }
            FolderStep::ToSend { bytes, .. } => {
                if !is_moving.swap(true, Ordering::Relaxed) {
                    bar.reset();
                    bar.set_message("sending");
                    bar.set_length(0);
                }
                bar.inc_length(bytes);
            }
            FolderStep::Kept { bytes } | FolderStep::Moved { bytes } => {
                if !is_moving.swap(true, Ordering::Relaxed) {
                    bar.set_message("fetching");
                }
                bar.inc(bytes);
            }
            FolderStep::Again { bytes } => bar.dec(bytes),
        })
    }

    /// Takes the bar off the terminal.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}
