//! What `prepare` makes, and that all of it can be taken away again.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use jobyard_handoff::{AttemptIdentity, Containment, LogPlan, Times, UserIds};
use jobyard_runtime::{
    NodeRuntime, PrepareRequest, Prepared, Program, Resources, cleanup, clear_tree, remove_tree,
};
use rustix::fs::{Mode, OFlags};

struct Node {
    runtime: NodeRuntime,
    root: tempfile::TempDir,
}

impl Node {
    fn new(name: &str) -> Self {
        let runtime = NodeRuntime::set_up(&format!("{name}-{}", std::process::id())).unwrap();
        Self { runtime, root: tempfile::tempdir().unwrap() }
    }

    fn is_root(&self) -> bool {
        self.runtime.abilities().users
    }

    fn user(&self) -> Option<UserIds> {
        self.is_root().then_some(UserIds { uid: 650_001, gid: 650_001, private: true })
    }

    fn prepare(&self, resources: Resources) -> Prepared {
        let arguments = [OsString::from("sh")];
        let environment = [("JOBYARD_LEASE".into(), "mine".into()), ("A".into(), "b".into())];
        self.runtime
            .prepare(&PrepareRequest {
                identity: AttemptIdentity {
                    job_id: format!("job-{}", std::process::id()),
                    attempt: 1,
                    lease_id: "l".into(),
                },
                name: "a1",
                program: Program::FromArguments,
                arguments: &arguments,
                environment: &environment,
                directory: None,
                input: None,
                scratch: &self.root.path().join("scratch"),
                user: self.user(),
                resources,
                times: Times::default(),
                exclusive: false,
                restart: None,
                log: LogPlan::default(),
            })
            .unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.runtime.tear_down().unwrap();
    }
}

fn value(group: &Option<PathBuf>, file: &str) -> String {
    fs::read_to_string(group.as_ref().unwrap().join(file)).unwrap().trim().to_owned()
}

#[test]
fn limits_are_set_where_the_node_has_them() {
    let node = Node::new("limits");
    let resources =
        Resources { memory_bytes: 64 << 20, cpu_milli: 2_000, cpu_limit_milli: Some(500), pids_limit: 77 };
    let prepared = node.prepare(resources);
    let groups = &prepared.plan.groups;
    if groups.memory_v1.is_some() {
        assert_eq!(value(&groups.memory_v1, "memory.limit_in_bytes"), (64 << 20).to_string());
    }
    if groups.cpu_v1.is_some() {
        assert_eq!(value(&groups.cpu_v1, "cpu.shares"), "2048");
        assert_eq!(value(&groups.cpu_v1, "cpu.cfs_quota_us"), "50000");
    }
    if groups.pids_v1.is_some() {
        assert_eq!(value(&groups.pids_v1, "pids.max"), "77");
    }
    if groups.unified_memory {
        assert_eq!(value(&groups.unified, "memory.max"), (64 << 20).to_string());
        assert_eq!(value(&groups.unified, "memory.oom.group"), "1");
    }
    assert_eq!(groups.limits(), node.runtime.abilities().memory);
    assert_eq!(prepared.plan.memory_limit_bytes.is_some(), groups.limits() != "none");
    // Again, as the next attempt with that name would find it.
    let again = node.prepare(Resources::default());
    assert_eq!(again.plan.groups, *groups);
    cleanup(&prepared.plan).unwrap();
    assert!(groups.directories().all(|group| !group.exists()));
}

#[test]
fn directories_are_private_and_variables_of_ours_win() {
    let node = Node::new("directories");
    let prepared = node.prepare(Resources::default());
    let plan = &prepared.plan;
    let work = fs::metadata(&plan.directory).unwrap();
    assert_eq!(work.permissions().mode() & 0o777, 0o700);
    if let Some(user) = plan.user {
        assert_eq!((work.uid(), work.gid()), (user.uid, user.gid));
        // The folder around it stays ours, so that nothing can be put in the place of another.
        assert_eq!(fs::metadata(plan.scratch.as_ref().unwrap()).unwrap().uid(), 0);
    }
    assert!(prepared.output.is_dir());
    let names: Vec<&str> =
        prepared.environment.variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
    let promised = ["A", "PATH", "JOBYARD_JOB_ID", "JOBYARD_ATTEMPT", "JOBYARD_INPUT", "JOBYARD_OUTPUT"];
    assert_eq!(names, promised, "a job can't name a lease of ours");
    assert!(plan.program.is_absolute());
    cleanup(plan).unwrap();
}

/// A group made anew has another number. The unified leaf is always new.
fn numbers(prepared: &Prepared) -> Vec<u64> {
    let groups = &prepared.plan.groups;
    assert!(groups.directories().all(Path::is_dir));
    let kept = groups.directories().filter(|group| groups.unified.as_deref() != Some(group));
    kept.map(|group| fs::metadata(group).unwrap().ino()).collect()
}

#[test]
fn groups_are_kept_for_the_same_resources_only() {
    let node = Node::new("kept");
    let prepared = node.prepare(Resources::default());
    if prepared.plan.groups.memory_v1.is_none() || prepared.plan.user.is_none() {
        // Elsewhere every attempt has new ones.
        return;
    }
    let first = numbers(&prepared);
    node.runtime.retire(&prepared.plan).unwrap();
    let again = node.prepare(Resources::default());
    assert_eq!((numbers(&again), &again.plan.groups), (first.clone(), &prepared.plan.groups));
    node.runtime.retire(&again.plan).unwrap();

    let other = node.prepare(Resources { memory_bytes: 64 << 20, ..Resources::default() });
    assert!(numbers(&other).iter().all(|number| !first.contains(number)));
    assert_eq!(value(&other.plan.groups.memory_v1, "memory.limit_in_bytes"), (64 << 20).to_string());

    let mut left = Command::new("/bin/sleep").arg("300").spawn().unwrap();
    for group in other.plan.groups.directories() {
        fs::write(group.join("cgroup.procs"), left.id().to_string()).unwrap();
    }
    node.runtime.retire(&other.plan).unwrap();
    assert!(!left.wait().unwrap().success(), "what was left in them is killed");
    assert!(other.plan.groups.directories().all(|group| !group.exists()), "and they are not kept");

    let with_a_user_of_others = node.prepare(Resources::default());
    let mut plan = with_a_user_of_others.plan;
    plan.user = None;
    node.runtime.retire(&plan).unwrap();
    assert!(
        plan.groups.directories().all(|group| !group.exists()),
        "who runs as we do may have changed them"
    );
}

#[test]
fn groups_of_an_earlier_worker_are_swept_away_unless_an_attempt_may_have_them() {
    let node = Node::new("swept");
    let prepared = node.prepare(Resources::default());
    let groups: Vec<&Path> = prepared.plan.groups.directories().collect();
    node.runtime.sweep(|name| name == "a1").unwrap();
    assert!(groups.iter().all(|group| group.is_dir()));
    node.runtime.sweep(|_| false).unwrap();
    assert!(groups.iter().all(|group| !group.exists()));
    cleanup(&prepared.plan).unwrap();
}

/// What a task did to its working directory, and whether the next attempt may have it.
type Spoil = (&'static str, fn(&Path), bool);

#[test]
fn folders_are_used_again_only_as_they_were_made() {
    let node = Node::new("again");
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let spoil: [Spoil; 6] = [
        ("nothing", |_| {}, true),
        (
            "content",
            |work| {
                fs::create_dir(work.join("a")).unwrap();
                fs::write(work.join("a/b"), "secret").unwrap();
                symlink("/", work.join("link")).unwrap();
            },
            true,
        ),
        ("permissions", |work| fs::set_permissions(work, fs::Permissions::from_mode(0o777)).unwrap(), false),
        (
            "an attribute",
            |work| {
                rustix::fs::setxattr(work, "user.mark", b"x", rustix::fs::XattrFlags::empty()).unwrap();
            },
            false,
        ),
        (
            "a link in its place",
            |work| {
                fs::remove_dir(work).unwrap();
                symlink("/tmp", work).unwrap();
            },
            false,
        ),
        ("more beside it", |work| fs::write(work.with_file_name("beside"), "").unwrap(), true),
    ];
    for (what, spoil, is_kept) in spoil {
        let prepared = node.prepare(Resources::default());
        let work = prepared.plan.directory.clone();
        let before = inode(&work);
        // Held open, so that a new one can't get the same number.
        let _held = fs::File::open(&work).unwrap();
        spoil(&work);
        cleanup(&prepared.plan).unwrap();
        cleanup(&prepared.plan).unwrap();
        let again = node.prepare(Resources::default());
        let found = fs::symlink_metadata(&again.plan.directory).unwrap();
        assert!(found.is_dir() && found.permissions().mode() & 0o7777 == 0o700, "{what}");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "{what}");
        assert_eq!(fs::read_dir(work.parent().unwrap()).unwrap().count(), 3, "{what}");
        assert_eq!(inode(&work) == before, is_kept, "{what}");
        cleanup(&again.plan).unwrap();
    }
}

#[test]
fn whatever_a_task_leaves_behind_can_be_removed_and_nothing_else_is() {
    let root = tempfile::tempdir().unwrap();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let scratch = root.path().join("scratch");
    fs::create_dir_all(scratch.join("a/b")).unwrap();
    symlink(&outside, scratch.join("a/link")).unwrap();
    symlink("loop", scratch.join("loop")).unwrap();
    fs::write(scratch.join("a/b/read-only"), "").unwrap();
    fs::write(scratch.join("with\nnewline \u{1F980}"), "").unwrap();
    assert!(Command::new("mkfifo").arg(scratch.join("pipe")).status().unwrap().success());
    for folder in ["a/b", "a"] {
        fs::set_permissions(scratch.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
    }
    remove_tree(&scratch).unwrap();
    assert!(!scratch.exists());
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    remove_tree(&scratch).unwrap();
    // A link in the place of the directory itself is not followed.
    symlink(&outside, &scratch).unwrap();
    assert!(remove_tree(&scratch).is_err());
    assert!(outside.join("kept").exists());
}

#[test]
fn depth_costs_neither_stack_nor_descriptors() {
    let root = tempfile::tempdir().unwrap();
    let scratch = root.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    // Paths as long as this can't be said in one piece.
    let mut folder = rustix::fs::open(&scratch, OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..3_000 {
        rustix::fs::mkdirat(&folder, "deep", Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "deep", OFlags::PATH, Mode::empty()).unwrap();
    }
    rustix::fs::symlinkat("elsewhere", &folder, "link").unwrap();
    remove_tree(&scratch).unwrap();
    assert!(!scratch.exists());
}

#[test]
fn a_tree_is_cleared_by_its_plan_alone_and_bystanders_live() {
    let node = Node::new("clear");
    for containment in [node.runtime.abilities().containment, Containment::Subreaper] {
        let mut prepared = node.prepare(Resources::default());
        prepared.plan.containment = containment;
        // A process that joined its groups but is nobody's child any more; without groups, one that carries the variables.
        prepared.plan.user = None;
        let mut member = Command::new("/bin/sleep")
            .arg("300")
            .env("JOBYARD_JOB_ID", &prepared.plan.identity.job_id)
            .env("JOBYARD_ATTEMPT", "1")
            .spawn()
            .unwrap();
        let mut bystander = Command::new("/bin/sleep")
            .arg("300")
            .env("JOBYARD_JOB_ID", &prepared.plan.identity.job_id)
            .env("JOBYARD_ATTEMPT", "2")
            .spawn()
            .unwrap();
        for group in prepared.plan.groups.directories() {
            fs::write(group.join("cgroup.procs"), member.id().to_string()).unwrap();
        }
        assert_eq!(clear_tree(&prepared.plan).unwrap().survivors, 0);
        assert!(!member.wait().unwrap().success());
        assert!(bystander.try_wait().unwrap().is_none());
        bystander.kill().unwrap();
        bystander.wait().unwrap();
        cleanup(&prepared.plan).unwrap();
    }
}

#[test]
fn a_node_s_name_can_not_lead_elsewhere() {
    for name in ["", "a/b", "..", "a b", "n\n"] {
        assert!(NodeRuntime::set_up(name).is_err(), "{name:?}");
    }
    assert!(!Path::new("/sys/fs/cgroup/unified/jobyard-").exists());
}

#[test]
fn a_machine_is_examined_as_a_worker_would_find_it_and_nothing_stays() {
    let before = fs::read_to_string("/proc/self/cgroup").unwrap();
    let examined = NodeRuntime::examine().unwrap();
    assert_eq!(fs::read_to_string("/proc/self/cgroup").unwrap(), before, "nobody was moved");
    let node = Node::new("examined");
    assert_eq!(examined.abilities, *node.runtime.abilities());
    let prepared = node.prepare(Resources::default());
    cleanup(&prepared.plan).unwrap();
    if let Some(group) = &prepared.plan.groups.unified {
        assert!(examined.unified);
        let own = group.ancestors().nth(2).unwrap();
        let left = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name());
        let ours = format!("jobyard-try-{}", std::process::id());
        assert!(!left.into_iter().any(|name| name.to_string_lossy() == ours));
    }
}
