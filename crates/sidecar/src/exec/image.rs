//! Everything the child needs, laid out before the fork so that it allocates nothing.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use jobyard_handoff::{Containment, Environment, ExecPlan, Groups, UserIds, wipe};

/// Why a plan can't even be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageError {
    /// A NUL byte in the program or an argument.
    NulInArgument,
    /// A NUL byte in the working directory or a group's path.
    NulInPath,
    /// A NUL byte in a variable, or a name that is empty or holds an `=`.
    BadVariable,
}

/// The strings of an execve and what goes before it.
pub(crate) struct Image {
    pub(super) program: CString,
    pub(super) arguments: Strings,
    pub(super) environment: Strings,
    pub(super) directory: CString,
    /// The files to join the control groups by; the unified leaf's is the last one.
    pub(super) groups: Vec<CString>,
    /// The directory of the unified leaf, which is also the last of `groups`.
    pub(super) unified: Option<CString>,
    pub(super) user: Option<UserIds>,
    pub(super) containment: Containment,
}

impl Image {
    pub(crate) fn new(plan: &ExecPlan, environment: &Environment) -> Result<Self, ImageError> {
        let arguments = plan.arguments.iter().map(|argument| c_string(argument));
        let variables = environment.variables.iter().map(|(name, value)| variable(name, value));
        let groups = join_files(&plan.groups).map(|file| path_string(&file));
        Ok(Self {
            program: c_string(plan.program.as_os_str()).ok_or(ImageError::NulInArgument)?,
            arguments: Strings::new(arguments.collect::<Option<_>>().ok_or(ImageError::NulInArgument)?),
            environment: Strings::new(variables.collect::<Option<_>>().ok_or(ImageError::BadVariable)?),
            directory: path_string(&plan.directory).ok_or(ImageError::NulInPath)?,
            groups: groups.collect::<Option<_>>().ok_or(ImageError::NulInPath)?,
            unified: match &plan.groups.unified {
                Some(group) => Some(path_string(group).ok_or(ImageError::NulInPath)?),
                None => None,
            },
            user: plan.user,
            containment: plan.containment,
        })
    }
}

/// Version 1 is joined by `tasks`: a thread that moves itself by it waits for nobody, and the child is one thread.
/// `cgroup.procs` moves whole processes, for which the kernel stops every fork of the machine, a matter of 12 ms
/// when it did not do so lately.
fn join_files(groups: &Groups) -> impl Iterator<Item = PathBuf> {
    let version_1 = [&groups.memory_v1, &groups.cpu_v1, &groups.pids_v1].into_iter().flatten();
    let unified = groups.unified.iter().map(|group| group.join("cgroup.procs"));
    version_1.map(|group| group.join("tasks")).chain(unified)
}

/// An array as execve takes it, and the strings it points to.
pub(super) struct Strings {
    /// Owns what the pointers point to; moving the vector doesn't move the strings.
    strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { strings, pointers }
    }

    pub(super) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        for string in self.strings.drain(..) {
            wipe(&mut string.into_bytes_with_nul());
        }
    }
}

fn c_string(text: &OsStr) -> Option<CString> {
    CString::new(text.as_bytes()).ok()
}

fn path_string(path: &Path) -> Option<CString> {
    c_string(path.as_os_str())
}

fn variable(name: &OsStr, value: &OsStr) -> Option<CString> {
    let name = name.as_bytes();
    if name.is_empty() || name.contains(&b'=') {
        return None;
    }
    let value = value.as_bytes();
    // With room for the NUL: what may be secret is not moved, so that no copy stays behind.
    let mut entry = Vec::with_capacity(name.len() + 1 + value.len() + 1);
    entry.extend_from_slice(name);
    entry.push(b'=');
    entry.extend_from_slice(value);
    CString::new(entry).ok()
}
