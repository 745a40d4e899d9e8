//! What a path in a tree may be.

use thiserror::Error;

/// The longest path.
pub const MAX_PATH_BYTES: usize = 4_000;
/// The longest name of one file or folder; Linux takes no more.
const MAX_NAME_BYTES: usize = 255;

/// Why a path can't be in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathFault {
    /// It names nothing.
    #[error("the path is empty, or has an empty part")]
    Empty,
    /// It begins with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// A part is `.` or `..`.
    #[error("the path has a part `.` or `..`")]
    Dots,
    /// Line feeds and the like.
    #[error("the name has a control character")]
    ControlCharacter,
    /// Longer than [`MAX_PATH_BYTES`], or a part longer than 255 bytes.
    #[error("the path is too long: at most {MAX_PATH_BYTES} bytes, and 255 for each part")]
    TooLong,
}

/// Whether a path can be in a tree: relative, parts joined by single `/`, none of them `.` or `..`.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_path(path: &str) -> Result<(), PathFault> {
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathFault::TooLong);
    }
    path.split('/').try_for_each(check_name)
}

fn check_name(name: &str) -> Result<(), PathFault> {
    match name {
        "" => Err(PathFault::Empty),
        "." | ".." => Err(PathFault::Dots),
        _ if name.len() > MAX_NAME_BYTES => Err(PathFault::TooLong),
        _ if name.chars().any(char::is_control) => Err(PathFault::ControlCharacter),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_taken() {
        for good in ["a", "a/b.txt", "...", "a b", "é/字", ".hidden", "a\\b"] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        let long = "x".repeat(256);
        let deep = "x/".repeat(2_000) + "xx";
        let cases = [
            ("", PathFault::Empty),
            ("a//b", PathFault::Empty),
            ("a/", PathFault::Empty),
            ("/etc/passwd", PathFault::Absolute),
            ("..", PathFault::Dots),
            ("a/../b", PathFault::Dots),
            ("./a", PathFault::Dots),
            ("a\nb", PathFault::ControlCharacter),
            ("a\0b", PathFault::ControlCharacter),
            (long.as_str(), PathFault::TooLong),
            (deep.as_str(), PathFault::TooLong),
        ];
        for (path, fault) in cases {
            assert_eq!(check_path(path), Err(fault), "{path:?}");
        }
    }
}
