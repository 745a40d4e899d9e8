//! A tree's manifest: its files by path, and the one way of writing them down.
//!
//! The canonical form is JSON without space: `{"tree":1,"files":{"<path>":{"sha256":"<hex>","size":<bytes>,"mode":
//! "0644"}}}`, paths in the order of their bytes. Its SHA-256 is the tree's name, so the same folder has the same name
//! everywhere. Folders stand in it only as parts of paths: an empty one is not kept.

use std::collections::BTreeMap;

use jobyard_model::ArtifactHash;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::path::{PathFault, check_path};

/// The largest manifest.
pub const MAX_MANIFEST_BYTES: usize = 32 << 20;
/// The most files in a tree.
pub const MAX_FILES: usize = 250_000;
/// The form described above.
const FORM: u32 = 1;
/// What every manifest begins with, and hardly anything else.
const BEGINNING: &[u8] = br#"{"tree":1,"files":{"#;

/// What of a file's permissions is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Not to be executed.
    #[serde(rename = "0644")]
    Plain,
    /// A program.
    #[serde(rename = "0755")]
    Executable,
}

impl Mode {
    /// By the owner's permission to execute.
    #[must_use]
    pub fn of_permissions(mode: u32) -> Self {
        if mode & 0o100 == 0 { Self::Plain } else { Self::Executable }
    }
}

/// A file in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeFile {
    /// The artifact with its bytes.
    #[serde(with = "hash_text")]
    pub sha256: ArtifactHash,
    /// How many it has.
    pub size: u64,
    /// Whether it is a program.
    pub mode: Mode,
}

/// A folder's files by path. Those of a tree that was decoded are safe to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// By path, in the order of the manifest.
    pub files: BTreeMap<String, TreeFile>,
}

/// Why bytes are no manifest, or files no tree.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// More than [`MAX_MANIFEST_BYTES`].
    #[error("the manifest has more than {MAX_MANIFEST_BYTES} bytes")]
    TooLarge,
    /// More than [`MAX_FILES`].
    #[error("the tree has {0} files, the most is {MAX_FILES}; pack some of them into an archive")]
    TooManyFiles(usize),
    /// It is no JSON of this form.
    #[error("it is no manifest of a tree")]
    Syntax(#[source] serde_json::Error),
    /// A newer form, or none.
    #[error("the manifest has the form {0}, this version knows {FORM}")]
    UnknownForm(u32),
    /// The same tree is written another way.
    #[error("the manifest is not in its canonical form: no space, fields and paths in order, each path once")]
    NotCanonical,
    /// A path that could do harm, or can't be.
    #[error("{path:?}: {fault}")]
    Path {
        /// Which.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// A path is a file and a folder at once.
    #[error("{0:?} is a file and a folder at once")]
    FileAndFolder(String),
}

#[derive(Serialize)]
struct Written<'a> {
    tree: u32,
    files: &'a BTreeMap<String, TreeFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    tree: u32,
    files: BTreeMap<String, TreeFile>,
}

impl Tree {
    /// The canonical form, and its hash.
    ///
    /// # Errors
    /// When the files make no tree.
    pub fn encode(&self) -> Result<(Vec<u8>, ArtifactHash), ManifestError> {
        self.check()?;
        let bytes = self.bytes()?;
        let hash = ArtifactHash(Sha256::digest(&bytes).into());
        if bytes.len() > MAX_MANIFEST_BYTES { Err(ManifestError::TooLarge) } else { Ok((bytes, hash)) }
    }

    /// The tree that these bytes are the canonical form of.
    ///
    /// # Errors
    /// They are the canonical form of none.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge);
        }
        let Read { tree, files } = serde_json::from_slice(bytes).map_err(ManifestError::Syntax)?;
        if tree != FORM {
            return Err(ManifestError::UnknownForm(tree));
        }
        let tree = Self { files };
        tree.check()?;
        if tree.bytes()? == bytes { Ok(tree) } else { Err(ManifestError::NotCanonical) }
    }

    /// Whether bytes that begin like this may be a manifest; those that are shorter than its beginning are not.
    #[must_use]
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.starts_with(BEGINNING)
    }

    /// How many bytes its files have together.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.files.values().map(|file| file.size).fold(0, u64::saturating_add)
    }

    fn bytes(&self) -> Result<Vec<u8>, ManifestError> {
        serde_json::to_vec(&Written { tree: FORM, files: &self.files }).map_err(ManifestError::Syntax)
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.files.len() > MAX_FILES {
            return Err(ManifestError::TooManyFiles(self.files.len()));
        }
        for path in self.files.keys() {
            check_path(path).map_err(|fault| ManifestError::Path { path: path.clone(), fault })?;
            let mut folder = path.as_str();
            while let Some((above, _)) = folder.rsplit_once('/') {
                if self.files.contains_key(above) {
                    return Err(ManifestError::FileAndFolder(above.to_owned()));
                }
                folder = above;
            }
        }
        Ok(())
    }
}

mod hash_text {
    use jobyard_model::ArtifactHash;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &ArtifactHash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(hash)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ArtifactHash, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn tree(paths: &[&str]) -> Tree {
        let file = TreeFile { sha256: HASH.parse().unwrap(), size: 4, mode: Mode::Plain };
        Tree { files: paths.iter().map(|path| ((*path).to_owned(), file)).collect() }
    }

    fn file(path: &str) -> String {
        format!(r#""{path}":{{"sha256":"{HASH}","size":4,"mode":"0644"}}"#)
    }

    #[test]
    fn a_tree_has_one_form_and_one_name() {
        let (bytes, hash) = tree(&["b", "a/x"]).encode().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(text, format!(r#"{{"tree":1,"files":{{{},{}}}}}"#, file("a/x"), file("b")));
        assert!(Tree::may_begin(&bytes));
        assert_eq!(Tree::decode(&bytes).unwrap(), tree(&["a/x", "b"]));
        assert_eq!(hash.0, <[u8; 32]>::from(Sha256::digest(&bytes)));
        assert_eq!(tree(&["b", "a/x"]).size_bytes(), 8);
        assert_eq!(Tree::decode(&Tree::default().encode().unwrap().0).unwrap(), Tree::default());
    }

    #[test]
    fn another_way_of_writing_it_is_refused() {
        let cases = [
            format!(r#"{{"tree":1,"files":{{{},{}}}}}"#, file("b"), file("a")),
            format!(r#"{{"tree":1,"files":{{{},{}}}}}"#, file("a"), file("a")),
            format!(r#"{{"tree":1, "files":{{{}}}}}"#, file("a")),
            format!(r#"{{"files":{{{}}},"tree":1}}"#, file("a")),
            format!(r#"{{"tree":1,"files":{{{}}}}}"#, file(r"\u0061")),
        ];
        for text in cases {
            let refused = Tree::decode(text.as_bytes());
            assert!(matches!(refused, Err(ManifestError::NotCanonical)), "{text}: {refused:?}");
        }
    }

    #[test]
    fn tricks_with_paths_are_refused() {
        for path in ["../x", "/etc/passwd", "a/../../x", "a//b", "", ".", "a\\u0000", "a\\nb"] {
            let text = format!(r#"{{"tree":1,"files":{{{}}}}}"#, file(path));
            let refused = Tree::decode(text.as_bytes());
            assert!(matches!(refused, Err(ManifestError::Path { .. })), "{path}: {refused:?}");
        }
        for paths in [&["a", "a/b"][..], &["a/b", "a/b/c/d"]] {
            assert!(matches!(tree(paths).encode(), Err(ManifestError::FileAndFolder(_))), "{paths:?}");
        }
    }

    #[test]
    fn what_is_no_manifest_says_so() {
        for text in ["", "[]", "{}", "#!/bin/sh", r#"{"tree":1,"files":{},"more":1}"#] {
            assert!(matches!(Tree::decode(text.as_bytes()), Err(ManifestError::Syntax(_))), "{text}");
        }
        for bad in ["\"0777\"", "\"04755\"", "420"] {
            let text = format!(r#"{{"tree":1,"files":{{"a":{{"sha256":"{HASH}","size":4,"mode":{bad}}}}}}}"#);
            assert!(matches!(Tree::decode(text.as_bytes()), Err(ManifestError::Syntax(_))), "{text}");
        }
        let newer = r#"{"tree":2,"files":{}}"#;
        assert!(matches!(Tree::decode(newer.as_bytes()), Err(ManifestError::UnknownForm(2))));
        assert!(matches!(Tree::decode(&vec![b' '; MAX_MANIFEST_BYTES + 1]), Err(ManifestError::TooLarge)));
    }
}
