//! Everything the child needs, laid out before the fork so that it allocates nothing.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use jobyard_handoff::{Containment, Environment, ExecPlan, UserIds};

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
    /// The `cgroup.procs` files to join; the unified leaf is the last one.
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
        let groups = plan.groups.directories().map(|group| path_string(&group.join("cgroup.procs")));
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

/// An array as execve takes it, and the strings it points to.
pub(super) struct Strings {
    /// Owns what the pointers point to; moving the vector doesn't move the strings.
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { _strings: strings, pointers }
    }

    pub(super) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
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
    CString::new([name, b"=", value.as_bytes()].concat()).ok()
}
