//! How tasks can be kept apart: what the runtime's probes find, and what the kernel offers besides.

use std::fs::{self, OpenOptions};
use std::path::Path;

use jobyard_runtime::{Containment, Examined, NodeRuntime};
use rustix::process::geteuid;

use crate::error::CommandError;
use crate::output::{Answer, Check};

const AS_ROOT: &str =
    "start the worker as root, in a group that it may change: under systemd with Delegate=yes";
const USER_NAMESPACES: &str = "allow them: sysctl user.max_user_namespaces, on Debian also \
    kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0";

pub(super) fn look() -> Result<Vec<Check>, CommandError> {
    let examined = NodeRuntime::examine()
        .map_err(|source| CommandError::Setup { doing: "remove a control group that was tried", source })?;
    let mut checks = vec![containment(&examined)];
    checks.extend(limits(&examined));
    checks.push(users(&examined));
    checks.extend(namespaces(&examined));
    checks.extend(kernel());
    Ok(checks)
}

fn containment(examined: &Examined) -> Check {
    let versions = match (examined.version_1, examined.unified) {
        (true, true) => "versions 1 and 2 are mounted",
        (true, false) => "version 1 is mounted",
        (false, true) => "version 2 is mounted",
        (false, false) => "none are mounted",
    };
    let (answer, means) = match examined.abilities.containment {
        Containment::Cgroup => (Answer::Yes, "what a task started is ended as a whole, whatever it did"),
        Containment::PidNamespace { .. } => {
            (Answer::Warn, "groups can't be used here; a process namespace ends what a task started")
        }
        Containment::Subreaper => {
            (Answer::Warn, "groups can't be used here; processes that a task detached may survive it")
        }
    };
    Check::new("control groups", answer, versions, means).fix_unless_yes(AS_ROOT)
}

fn limits(examined: &Examined) -> [Check; 3] {
    let abilities = &examined.abilities;
    let version = abilities.memory.replace("cgroup-v", "by control groups, version ");
    let memory = Check::new(
        "memory limit",
        Answer::yes_or(Answer::Warn, abilities.memory != "none"),
        &version,
        "whether a task that takes more memory than it asked for is ended before it harms others",
    );
    let limit = |works| if works { "by control groups" } else { "none" };
    let processes = Check::new(
        "process limit",
        Answer::yes_or(Answer::Warn, abilities.pids),
        limit(abilities.pids),
        "whether a task can start as many processes as it likes",
    );
    let cpu = Check::new(
        "cpu weight",
        Answer::yes_or(Answer::Warn, abilities.cpu),
        limit(abilities.cpu),
        "whether tasks that ask for more cores get more, and cpu_limit holds",
    );
    let fix = "give the worker a group with the memory, pids and cpu controllers: as root, under systemd with \
        Delegate=yes";
    [memory, processes, cpu].map(|check| check.fix_unless_yes(fix))
}

fn users(examined: &Examined) -> Check {
    let users = examined.abilities.users;
    let found = if users {
        "the worker may assume them".to_owned()
    } else {
        format!("runs as user {}", geteuid().as_raw())
    };
    Check::new(
        "users of their own",
        Answer::yes_or(Answer::Warn, users),
        &found,
        "whether tasks are kept from each other's files and from the worker's",
    )
    .fix_unless_yes("start the worker as root; else it shares its rights with its tasks, which should then be one owner's")
}

fn namespaces(examined: &Examined) -> [Check; 3] {
    let found = examined.namespaces;
    let check = |name, works: bool, fix| {
        let words = if works { "a process starts in one" } else { "refused" };
        Check::new(
            name,
            Answer::yes_or(Answer::No, works),
            words,
            "for runtimes that isolate more than `process` does",
        )
        .fix_unless_yes(fix)
    };
    [
        check("pid namespaces", found.pid, "start the worker as root, or allow user namespaces"),
        check("user namespaces", found.user, USER_NAMESPACES),
        check("network namespaces", found.network, "start the worker as root, or allow user namespaces"),
    ]
}

fn kernel() -> [Check; 3] {
    let seccomp = Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
    let overlay = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let overlay = overlay.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay");
    let kvm = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let there = |works| if works { "there" } else { "not there" };
    [
        Check::new("seccomp", Answer::yes_or(Answer::No, seccomp), there(seccomp), "filters of system calls, for sandboxes")
            .fix_unless_yes("use a kernel with CONFIG_SECCOMP_FILTER"),
        Check::new("overlayfs", Answer::yes_or(Answer::No, overlay), there(overlay), "root file systems of containers")
            .fix_unless_yes("modprobe overlay, or use a kernel with CONFIG_OVERLAY_FS"),
        Check::new(
            "/dev/kvm",
            Answer::yes_or(Answer::No, kvm.is_ok()),
            &kvm.map_or_else(|error| error.to_string(), |_| "can be opened".to_owned()),
            "virtual machines around tasks",
        )
        .fix_unless_yes(
            "allow virtualisation in the firmware or in the hypervisor above, modprobe kvm_intel or kvm_amd, and let the \
             worker's user into the group kvm",
        ),
    ]
}
