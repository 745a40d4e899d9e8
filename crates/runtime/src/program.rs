//! Which file a command means. What is not there is a fault of the job, said before anything is made.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jobyard_handoff::{Fault, FaultCode};

use crate::prepare::Program;

/// PATH of a task whose job sets none.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file to execute (absolute) and all of its argv.
pub(crate) fn resolve(
    program: Program<'_>,
    arguments: &[OsString],
    path: &OsStr,
    directory: &Path,
) -> Result<(PathBuf, Vec<OsString>), Fault> {
    match program {
        Program::Artifact(file) => {
            let name = file.as_os_str().to_owned();
            Ok((file.to_path_buf(), [name].into_iter().chain(arguments.iter().cloned()).collect()))
        }
        Program::FromArguments => {
            let name = arguments.first().filter(|name| !name.is_empty()).ok_or_else(empty_command)?;
            let file =
                if name.as_bytes().contains(&b'/') { directory.join(name) } else { look_up(name, path)? };
            Ok((file, arguments.to_vec()))
        }
    }
}

fn empty_command() -> Fault {
    Fault {
        code: FaultCode::EmptyCommand,
        message: String::from("the command is empty: name a program to run"),
    }
}

/// As a shell does it: the first executable file in PATH. (An empty part of PATH means the working directory to
/// a shell; here it means nothing.)
fn look_up(name: &OsStr, path: &OsStr) -> Result<PathBuf, Fault> {
    let mut not_executable = None;
    let folders = path.as_bytes().split(|byte| *byte == b':').filter(|folder| folder.starts_with(b"/"));
    for folder in folders {
        let file = Path::new(OsStr::from_bytes(folder)).join(name);
        match fs::metadata(&file) {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => return Ok(file),
            Ok(found) if found.is_file() => not_executable = Some(file),
            Ok(_) | Err(_) => {}
        }
    }
    Err(match not_executable {
        Some(file) => Fault {
            code: FaultCode::NotExecutable,
            message: format!("{} is not executable: set its permission (chmod +x)", file.display()),
        },
        None => Fault {
            code: FaultCode::NoSuchProgram,
            message: format!(
                "no such program: {} is not in the PATH of the task ({})",
                name.display(),
                path.display()
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_words(words: &[&str]) -> Result<(PathBuf, Vec<OsString>), Fault> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        resolve(Program::FromArguments, &words, OsStr::new("relative::/bin"), Path::new("/job"))
    }

    #[test]
    fn names_are_looked_up_and_paths_are_not() {
        assert_eq!(resolve_words(&["sh", "-c"]).unwrap().0, Path::new("/bin/sh"));
        assert_eq!(resolve_words(&["/no/such"]).unwrap().0, Path::new("/no/such"));
        assert_eq!(resolve_words(&["./x"]).unwrap().0, Path::new("/job/./x"));
    }

    #[test]
    fn what_is_not_there_is_the_job_s_fault() {
        assert_eq!(resolve_words(&[]).unwrap_err().code, FaultCode::EmptyCommand);
        assert_eq!(resolve_words(&[""]).unwrap_err().code, FaultCode::EmptyCommand);
        let fault = resolve_words(&["no-such-program"]).unwrap_err();
        assert_eq!(fault.code, FaultCode::NoSuchProgram);
        assert!(fault.message.contains("no-such-program"), "{}", fault.message);
    }

    #[test]
    fn an_artifact_is_argument_zero() {
        let words = [OsString::from("a")];
        let (file, all) =
            resolve(Program::Artifact(Path::new("/x")), &words, OsStr::new(""), Path::new("/")).unwrap();
        assert_eq!((file, all), ("/x".into(), vec!["/x".into(), "a".into()]));
    }
}
