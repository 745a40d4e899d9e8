//! Folders as trees: what a manifest says, how a folder is read into one, how one is written back.
//!
//! Owns the manifest's canonical form, the rules for paths, and every touch of a folder whose contents somebody else
//! chose. Knows no server, no job and no network. Blocks; callers take it off their async threads.
//!
//! Invariants: **nothing outside the folder is ever opened or written**, whatever links lie in it (each path is
//! resolved by the kernel beneath the folder); a manifest that decodes names only paths that are safe to write.

mod manifest;
mod path;
mod read;
mod write;

pub use manifest::{MAX_FILES, MAX_MANIFEST_BYTES, ManifestError, Mode, Tree, TreeFile};
pub use path::{MAX_PATH_BYTES, PathFault, check_path};
pub use read::{Folder, FolderError, FoundFile, Hashed, hash_reader};
pub use write::{NewFolder, draft_file};
