//! From a failed step and an error number to what a person can do about it. Looks at files only after the
//! failure, so that a launch that works pays nothing.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jobyard_handoff::{Containment, ExecPlan, Fault, FaultCode};
use rustix::io::Errno;

use crate::exec::{Failure, ImageError, Stage};

/// As much of a program as the kernel looks at.
const HEAD_BYTES: usize = 256;

/// What is wrong with a plan before anything is tried.
pub(crate) fn before_start(plan: &ExecPlan) -> Option<Fault> {
    plan.program
        .as_os_str()
        .is_empty()
        .then(|| fault(FaultCode::EmptyCommand, "the command is empty: name a program to run".to_owned()))
}

pub(crate) fn malformed(error: ImageError) -> Fault {
    let message = match error {
        ImageError::NulInArgument => {
            "the program or an argument holds a NUL byte, which no program can be given"
        }
        ImageError::NulInPath => "the working directory's name holds a NUL byte",
        ImageError::BadVariable => {
            "an environment variable holds a NUL byte, or its name is empty or holds an equals sign"
        }
    };
    fault(FaultCode::MalformedArgument, message.to_owned())
}

pub(crate) fn unreadable(error: &std::io::Error) -> Fault {
    fault(FaultCode::PlanUnreadable, format!("the attempt's plan could not be read: {error}"))
}

pub(crate) fn undecidable(error: &std::io::Error) -> Fault {
    fault(FaultCode::PlanUnreadable, format!("the start could not be noted, so nothing was started: {error}"))
}

pub(crate) fn not_hidden(error: &std::io::Error) -> Fault {
    let message = format!(
        "its secrets could not be taken out of the attempt directory, so nothing was started: {error}"
    );
    fault(FaultCode::PlanUnreadable, message)
}

pub(crate) fn not_cleared(survivors: usize) -> Fault {
    let message =
        format!("{survivors} of its processes could not be killed, so it was not started again beside them");
    fault(FaultCode::NotCleared, message)
}

/// What a failed step means.
pub(crate) fn explain(plan: &ExecPlan, failure: Failure) -> Fault {
    let errno = Errno::from_raw_os_error(failure.errno);
    let reason = std::io::Error::from_raw_os_error(failure.errno);
    match failure.stage {
        Stage::Namespace
            if matches!(errno, Errno::AGAIN | Errno::NOMEM)
                || !matches!(plan.containment, Containment::PidNamespace { .. }) =>
        {
            fault(FaultCode::ForkFailed, format!("the node could not make a process: {reason}"))
        }
        Stage::Namespace => {
            fault(FaultCode::NamespaceFailed, format!("the node could not make a namespace: {reason}"))
        }
        Stage::Group => {
            fault(FaultCode::GroupJoinFailed, format!("the node could not use a control group: {reason}"))
        }
        Stage::Streams => {
            fault(FaultCode::ExecFailed, format!("the node could not connect the output: {reason}"))
        }
        Stage::User => {
            fault(FaultCode::UserSwitchFailed, format!("the node could not assume the task's user: {reason}"))
        }
        Stage::Directory => explain_directory(plan, errno, &reason),
        Stage::Execute => explain_execute(plan, errno, &reason),
    }
}

fn fault(code: FaultCode, message: String) -> Fault {
    Fault { code, message }
}

fn explain_directory(plan: &ExecPlan, errno: Errno, reason: &std::io::Error) -> Fault {
    let directory = plan.directory.display();
    match errno {
        Errno::NOENT => fault(
            FaultCode::DirectoryMissing,
            format!("the working directory {directory} does not exist (the program was not looked at)"),
        ),
        Errno::NOTDIR => {
            fault(FaultCode::NotADirectory, format!("the working directory {directory} is not a directory"))
        }
        Errno::ACCESS | Errno::PERM => fault(
            FaultCode::DirectoryNotAccessible,
            format!("the task's user may not enter the working directory {directory}"),
        ),
        _ => fault(
            FaultCode::DirectoryNotAccessible,
            format!("the working directory {directory} can't be entered: {reason}"),
        ),
    }
}

fn explain_execute(plan: &ExecPlan, errno: Errno, reason: &std::io::Error) -> Fault {
    let path = in_working_directory(plan);
    let program = plan.program.display();
    match errno {
        Errno::TOOBIG => fault(
            FaultCode::ArgumentsTooLong,
            format!(
                "argument list too long: {program} was given {} bytes of arguments and the environment comes on \
                 top; the limit is 128 KiB for one and about 2 MiB for all. Pass large values in a file",
                plan.arguments.iter().map(|argument| argument.len() + 1).sum::<usize>()
            ),
        ),
        Errno::NOENT if path.exists() => explain_interpreter(&path),
        Errno::NOENT | Errno::NOTDIR => {
            fault(FaultCode::NoSuchProgram, format!("no such program: {program} does not exist on the node"))
        }
        Errno::ACCESS if path.is_dir() => {
            fault(FaultCode::ProgramIsDirectory, format!("{program} is a directory, not a program"))
        }
        Errno::ACCESS | Errno::PERM => explain_not_executable(&path),
        Errno::NOEXEC => explain_format(&path),
        Errno::LOOP => fault(
            FaultCode::BadInterpreter,
            format!("{program}: too many links, or interpreters that name each other"),
        ),
        _ => fault(FaultCode::ExecFailed, format!("{program} could not be executed: {reason}")),
    }
}

/// A program named relative to the working directory, as the kernel found it.
fn in_working_directory(plan: &ExecPlan) -> std::path::PathBuf {
    plan.directory.join(&plan.program)
}

fn head_of(path: &Path) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    if let Ok(file) = File::open(path) {
        // What can't be read is not explained further.
        let _ = file.take(HEAD_BYTES as u64).read_to_end(&mut head);
    }
    head
}

/// The interpreter a script names, without its arguments, and whether a carriage return ends the line.
fn interpreter(head: &[u8]) -> Option<(String, bool)> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line);
    let name = text.trim_matches([' ', '\t', '\r']).split([' ', '\t']).next().unwrap_or_default();
    Some((name.to_owned(), line.ends_with(b"\r")))
}

fn explain_interpreter(path: &Path) -> Fault {
    let program = path.display();
    match interpreter(&head_of(path)) {
        Some((name, true)) => fault(
            FaultCode::InterpreterLineEnd,
            format!(
                "the first line of {program} ends with a carriage return (Windows line ends), so that the \
                 interpreter {name} is not found: save it with Unix line ends"
            ),
        ),
        Some((name, false)) => fault(
            FaultCode::BadInterpreter,
            format!("bad interpreter: {program} asks for {name}, which does not exist on the node"),
        ),
        None => fault(
            FaultCode::BadInterpreter,
            format!(
                "{program} needs a loader the node does not have: it was built for another C library; link it \
                 statically or build it for the node's system"
            ),
        ),
    }
}

fn explain_not_executable(path: &Path) -> Fault {
    let program = path.display();
    let executable = fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    let message = match interpreter(&head_of(path)) {
        _ if !executable => format!("{program} is not executable: set its permission (chmod +x)"),
        Some((name, _)) if !Path::new(&name).is_file() => {
            format!("{program} can't be executed: its interpreter {name} is not a program")
        }
        _ => format!(
            "{program} may not be executed by the task's user: a folder above it is closed, or its file system \
             is mounted noexec"
        ),
    };
    fault(FaultCode::NotExecutable, message)
}

fn explain_format(path: &Path) -> Fault {
    let program = path.display();
    let head = head_of(path);
    match elf_machine(&head) {
        Some(machine) if Some(machine) != own_machine() => fault(
            FaultCode::WrongArchitecture,
            format!(
                "wrong architecture: {program} is built for {}, and the node is {}",
                machine_name(machine),
                std::env::consts::ARCH
            ),
        ),
        Some(_) => fault(FaultCode::UnknownFormat, format!("{program} is a damaged or incomplete program")),
        None if head.is_empty() => {
            fault(FaultCode::UnknownFormat, format!("{program} is empty: there is nothing to execute"))
        }
        None => fault(
            FaultCode::UnknownFormat,
            format!(
                "{program} is neither a program nor a script with an interpreter: begin it with a line like \
                 #!/bin/sh"
            ),
        ),
    }
}

/// (class, byte order, machine) of an ELF header.
type Machine = (u8, u8, u16);

fn elf_machine(head: &[u8]) -> Option<Machine> {
    let head = head.strip_prefix(b"\x7fELF")?;
    let (class, order) = (*head.first()?, *head.get(1)?);
    let machine = [*head.get(14)?, *head.get(15)?];
    let machine = if order == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    Some((class, order, machine))
}

/// What this very program is built for.
fn own_machine() -> Option<Machine> {
    elf_machine(&head_of(Path::new("/proc/self/exe")))
}

fn machine_name((class, _, machine): Machine) -> String {
    let name = match machine {
        3 => "x86 (32 bit)",
        8 => "MIPS",
        20 | 21 => "PowerPC",
        22 => "s390",
        40 => "ARM (32 bit)",
        62 => "x86_64",
        183 => "aarch64",
        243 => "RISC-V",
        _ => return format!("machine {machine} ({} bit)", if class == 2 { 64 } else { 32 }),
    };
    name.to_owned()
}
