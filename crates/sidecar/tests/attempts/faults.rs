//! Launches that fail: each says what it is, and none is taken for another.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use jobyard_handoff::{EndedBy, ExitRecord, Fault, FaultClass, FaultCode, TaskExit};
use jobyard_runtime::PrepareError;

use crate::world::World;

impl World {
    fn file(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn run_in(&self, directory: PathBuf) -> ExitRecord {
        self.command(&["/bin/true"]).with(|draft| draft.directory = Some(directory)).run().record
    }

    fn run_program(&self, program: &str) -> ExitRecord {
        self.command(&[program]).run().record
    }
}

fn fault_of(record: &ExitRecord) -> &Fault {
    assert_eq!(record.ended_by, EndedBy::Itself);
    assert_eq!((record.exit, record.started_at_ms), (None, None));
    record.fault.as_ref().expect("a launch fault")
}

/// A program for a processor that this machine hasn't got.
fn foreign_elf() -> Vec<u8> {
    let mut elf = vec![0; 120];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16] = 2;
    // s390 or x86_64, whichever is foreign.
    elf[18] = if cfg!(target_arch = "s390x") { 62 } else { 22 };
    elf[20] = 1;
    elf[54] = 56;
    elf
}

#[test]
fn nine_faults_nine_messages_all_of_the_user() {
    let world = World::new();
    let script = |name, content: &[u8], mode| world.file(name, content, mode).display().to_string();
    let cases: Vec<(FaultCode, ExitRecord)> = vec![
        (FaultCode::DirectoryMissing, world.run_in("/no/such".into())),
        (FaultCode::NotADirectory, world.run_in("/etc/passwd".into())),
        (FaultCode::NoSuchProgram, world.run_program("/no/such")),
        (FaultCode::NotExecutable, world.run_program(&script("plain", b"#!/bin/sh\n", 0o644))),
        (FaultCode::ProgramIsDirectory, world.run_program("/etc/")),
        (FaultCode::BadInterpreter, world.run_program(&script("bad", b"#!/no/such/interp -x\n", 0o755))),
        (FaultCode::InterpreterLineEnd, world.run_program(&script("dos", b"#!/bin/sh\r\necho\r\n", 0o755))),
        (FaultCode::WrongArchitecture, world.run_program(&script("foreign", &foreign_elf(), 0o755))),
        (FaultCode::UnknownFormat, world.run_program(&script("text", b"echo hello\n", 0o755))),
        (FaultCode::UnknownFormat, world.run_program(&script("empty", b"", 0o755))),
    ];
    let mut messages = BTreeSet::new();
    for (code, record) in &cases {
        let fault = fault_of(record);
        assert_eq!(fault.code, *code, "{}", fault.message);
        assert_eq!(fault.code.class(), FaultClass::User);
        assert!(messages.insert(fault.message.clone()), "{}", fault.message);
        assert!(fault.message.len() > 20 && !fault.message.contains("os error"), "{}", fault.message);
    }
}

#[test]
fn a_directory_the_task_s_user_may_not_enter() {
    let world = World::new();
    if !world.is_root() {
        return;
    }
    let record = world.run_in(world.directory("closed", 0o700));
    assert_eq!(fault_of(&record).code, FaultCode::DirectoryNotAccessible);
}

#[test]
fn an_empty_command_is_said_before_anything_is_made() {
    let world = World::new();
    for words in [&[][..], &[""]] {
        let draft = world.command(words);
        let Err(PrepareError::Fault(fault)) = draft.try_prepare() else { unreachable!("must be refused") };
        assert_eq!(fault.code, FaultCode::EmptyCommand);
        assert!(!world.path("scratch-1").exists());
    }
    // Should one get as far as the sidecar.
    let done = world.command(&["/bin/true"]).start_with(|plan, _| plan.program = PathBuf::new()).finish();
    assert_eq!(fault_of(&done.record).code, FaultCode::EmptyCommand);
}

#[test]
fn what_the_kernel_takes_arrives_and_what_it_does_not_is_named() {
    let world = World::new();
    // One string, with its NUL and for a variable with its name, may have 128 KiB.
    let most = "x".repeat(131_071);
    let done = world
        .command(&["/bin/sh", "-c", "printf %s \"$1\" | wc -c", "sh", &most])
        .with(|draft| draft.environment = vec![("V".into(), "y".repeat(131_069).into())])
        .run();
    assert_eq!(done.record.exit, Some(TaskExit::Code(0)), "{:?}", done.record);
    assert_eq!(done.stdout, b"131071\n");

    let too_long = "x".repeat(131_072);
    let cases = [
        world.command(&["/bin/true", &too_long]),
        world.command(&["/bin/true", &"x".repeat(1 << 20)]),
        world.command(&["/bin/true"]).with(|draft| {
            draft.environment = vec![("V".into(), too_long.clone().into())];
        }),
        world.command(&["/bin/true"]).with(|draft| {
            let value = "z".repeat(1_024);
            draft.environment = (0..5_000).map(|n| (format!("N{n}").into(), value.clone().into())).collect();
        }),
    ];
    for draft in cases {
        let done = draft.run();
        let fault = fault_of(&done.record);
        assert_eq!(fault.code, FaultCode::ArgumentsTooLong);
        assert!(fault.message.contains("argument list too long"), "{}", fault.message);
    }
}

#[test]
fn nul_bytes_and_impossible_names_are_refused() {
    let world = World::new();
    let with = |name: &str, value: &str| {
        let variables = vec![(name.into(), value.into())];
        world.command(&["/bin/true"]).with(|draft| draft.environment = variables).run().record
    };
    let records = [
        with("A", "x\0y"),
        with("A=B", "x"),
        with("", "x"),
        world.command(&["/bin/true", "a\0b"]).run().record,
    ];
    for record in &records {
        assert_eq!(fault_of(record).code, FaultCode::MalformedArgument);
    }
}

#[test]
fn a_file_still_being_written_is_waited_for() {
    let world = World::new();
    let path = world.file("fetched", &fs::read("/bin/true").unwrap(), 0o755);
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut live = world.command(&[path.to_str().unwrap()]).start();
    live.talk.hello();
    drop(writer);
    assert_eq!(live.finish().record.exit, Some(TaskExit::Code(0)));
}

#[test]
fn a_group_that_is_gone_is_the_platform_s_fault() {
    let world = World::new();
    let done = world.command(&["/bin/true"]).start_with(|plan, _| {
        plan.groups.pids_v1 = Some("/sys/fs/cgroup/no-such-group".into());
    });
    let mut done = done;
    let record = done.talk.ended();
    let fault = fault_of(&record);
    assert_eq!((fault.code, fault.code.class()), (FaultCode::GroupJoinFailed, FaultClass::Platform));
    done.talk.acknowledge();
    done.process.wait().unwrap();
    done.clear_up(record);
}

#[test]
fn a_damaged_plan_starts_nothing() {
    let world = World::new();
    let draft = world.shell("touch /tmp/never");
    let prepared = draft.try_prepare().unwrap();
    let directory = jobyard_handoff::AttemptDirectory::create(
        world.path("attempt-damaged"),
        &prepared.plan,
        &prepared.environment,
    )
    .unwrap();
    let plan = directory.path().join("plan");
    let mut bytes = fs::read(&plan).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&plan, bytes).unwrap();
    let mut sidecar = crate::world::begin(&directory);
    sidecar.process.wait().unwrap();
    let record = directory.exit_record().unwrap().unwrap();
    assert_eq!(fault_of(&record).code, FaultCode::PlanUnreadable);
    assert_eq!(directory.decision().unwrap(), None);
    jobyard_runtime::cleanup(&prepared.plan).unwrap();
}
