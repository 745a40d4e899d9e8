//! A Debian package: the two binaries, units for systemd, settings.
//!
//! Owns what lies where in it. Never starts or enables anything on the machine that it is installed on.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{build, shell};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the binaries lie: beside each other, since the one finds the other there.
const PROGRAMS: &str = "usr/lib/jobyard";
const UNITS: &str = "usr/lib/systemd/system";
const DOCUMENTS: &str = "usr/share/doc/jobyard";
const SETTINGS: &str = "etc/jobyard/jobyard.toml";

/// Files of the repository, where they go in the package.
const FILES: &[(&str, &str)] = &[
    ("packaging/jobyard.toml", "etc/jobyard"),
    ("packaging/systemd/jobyard-up.service", UNITS),
    ("packaging/systemd/jobyard-server.service", UNITS),
    ("packaging/systemd/jobyard-informer.service", UNITS),
    ("packaging/systemd/jobyard-worker.service", UNITS),
    ("packaging/debian/copyright", DOCUMENTS),
    ("README.md", DOCUMENTS),
    ("LICENSE-APACHE", DOCUMENTS),
    ("LICENSE-MIT", DOCUMENTS),
    ("docs/operations.md", DOCUMENTS),
    ("docs/recovery.md", DOCUMENTS),
    ("docs/errors.md", DOCUMENTS),
    ("docs/job-states.md", DOCUMENTS),
];
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Where the scripts of shells go, by the shell's name.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/jobyard"),
    ("zsh", "usr/share/zsh/vendor-completions/_jobyard"),
    ("fish", "usr/share/fish/vendor_completions.d/jobyard.fish"),
];

/// Builds the release binaries and the package of them, into `target/debian`.
pub(crate) fn run() -> Result<(), String> {
    let binaries = build::release()?;
    let folder = binaries.jobyard.parent().ok_or("the binaries lie nowhere")?;
    let package = package(folder, &build::target_dir().join("debian"), "xz")?;
    println!("{}", package.display());
    Ok(())
}

/// A package of the binaries in this folder; `compression` is a word of `dpkg-deb -Z`.
fn package(binaries: &Path, destination: &Path, compression: &str) -> Result<PathBuf, String> {
    let architecture = architecture()?;
    let tree = destination.join("tree");
    remove(&tree)?;
    lay_out(&tree, binaries)?;
    describe(&tree, architecture)?;
    let package = destination.join(format!("jobyard_{VERSION}_{architecture}.deb"));
    let mut packing = Command::new("dpkg-deb");
    let compression = format!("-Z{compression}");
    packing.args(["--root-owner-group", &compression, "--build"]).arg(&tree).arg(&package);
    shell::run(&mut packing)?;
    remove(&tree)?;
    Ok(package)
}

fn architecture() -> Result<&'static str, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        "riscv64" => Ok("riscv64"),
        other => Err(format!("Debian's name for {other} is not known here")),
    }
}

fn lay_out(tree: &Path, binaries: &Path) -> Result<(), String> {
    for program in ["jobyard", "jobyard-sidecar"] {
        put(&read(&binaries.join(program))?, &tree.join(PROGRAMS).join(program), 0o755)?;
    }
    for (file, folder) in FILES {
        let from = shell::root().join(file);
        let name = from.file_name().ok_or("a file without a name")?;
        put(&read(&from)?, &tree.join(folder).join(name), 0o644)?;
    }
    for (shell, path) in COMPLETIONS {
        let script = Command::new(binaries.join("jobyard")).args(["completion", shell]).output();
        let script = script.map_err(|error| format!("could not run jobyard completion: {error}"))?;
        put(&script.stdout, &tree.join(path), 0o644)?;
    }
    let command = tree.join("usr/bin/jobyard");
    make_folder_of(&command)?;
    symlink("../lib/jobyard/jobyard", &command)
        .map_err(|error| format!("linking {}: {error}", command.display()))
}

/// What dpkg reads: fields, settings that are the operator's, scripts.
fn describe(tree: &Path, architecture: &str) -> Result<(), String> {
    let control = tree.join("DEBIAN");
    let glibc = newest_glibc(&read(&tree.join(PROGRAMS).join("jobyard"))?);
    let size_kib = size_bytes(tree)? / 1024;
    let fields = format!(
        "Package: jobyard\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: Jobyard\n\
         Section: admin\nPriority: optional\nInstalled-Size: {size_kib}\n\
         Depends: adduser, libc6 (>= {glibc}), libgcc-s1\nSuggests: postgresql\n\
         Description: job scheduler that keeps what it accepted\n \
         People submit executables as jobs; Jobyard runs each on some machine, retries what\n \
         fails, never loses one, and shows what happened. It runs on one machine by itself, or\n \
         as several roles on PostgreSQL.\n"
    );
    put(fields.as_bytes(), &control.join("control"), 0o644)?;
    put(format!("/{SETTINGS}\n").as_bytes(), &control.join("conffiles"), 0o644)?;
    for script in SCRIPTS {
        let text = read(&shell::root().join("packaging/debian").join(script))?;
        put(&text, &control.join(script), 0o755)?;
    }
    Ok(())
}

/// The newest `GLIBC_2.x` that a binary names: what it needs at least.
fn newest_glibc(binary: &[u8]) -> String {
    const NAME: &[u8] = b"GLIBC_2.";
    let minor = |at: usize| {
        let digits = &binary[at + NAME.len()..];
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&digits[..length]).ok()?.parse::<u32>().ok()
    };
    let named = binary.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    format!("2.{}", named.filter_map(|(at, _)| minor(at)).max().unwrap_or(0))
}

fn size_bytes(folder: &Path) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("reading {}: {error}", folder.display());
    let mut size = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let found = entry.metadata().map_err(failed)?;
        size += if found.is_dir() { size_bytes(&entry.path())? } else { found.len() };
    }
    Ok(size)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("reading {}: {error}", path.display()))
}

fn put(bytes: &[u8], path: &Path, mode: u32) -> Result<(), String> {
    make_folder_of(path)?;
    fs::write(path, bytes)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| format!("writing {}: {error}", path.display()))
}

/// Whatever our umask is, folders of a package can be entered by all.
fn make_folder_of(path: &Path) -> Result<(), String> {
    let Some(folder) = path.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
    make_folder_of(folder)?;
    fs::create_dir(folder)
        .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("making {}: {error}", folder.display()))
}

fn remove(tree: &Path) -> Result<(), String> {
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("removing {}: {error}", tree.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Output;

    use super::*;

    fn output(command: &mut Command) -> Output {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn is_there(program: &str) -> bool {
        Command::new(program).arg("--version").output().is_ok()
    }

    /// Unpacked as dpkg would, without its scripts.
    fn unpack(package: &Path, root: &Path) {
        output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(root));
        output(Command::new("dpkg-deb").arg("--control").arg(package).arg(root.join("DEBIAN")));
    }

    #[test]
    fn the_package_holds_what_runs_where_it_finds_itself() {
        if !is_there("dpkg-deb") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let package = package(&build::target_dir().join("debug"), folder.path(), "none").unwrap();
        let root = folder.path().join("root");
        unpack(&package, &root);
        let jobyard = || Command::new(root.join("usr/bin/jobyard"));
        let version = output(jobyard().arg("--version"));
        assert_eq!(String::from_utf8(version.stdout).unwrap(), format!("jobyard {VERSION}\n"));
        // The settings are accepted, and the sidecar is found beside the program.
        let doctor = jobyard().args(["doctor", "--config"]).arg(root.join(SETTINGS)).output().unwrap();
        let told = String::from_utf8(doctor.stdout).unwrap();
        let sidecar = root.join(PROGRAMS).join("jobyard-sidecar");
        assert!(
            told.contains(sidecar.to_str().unwrap()),
            "{told}{}",
            String::from_utf8_lossy(&doctor.stderr)
        );
        // Without a worker at the other end it has nothing to do, and says so.
        let alone = Command::new(&sidecar).stdin(std::process::Stdio::null()).status().unwrap();
        assert_eq!(alone.code(), Some(1));
        assert_eq!(fs::read_to_string(root.join("DEBIAN/conffiles")).unwrap(), format!("/{SETTINGS}\n"));
        units_are_fine(&root, folder.path());
    }

    /// As systemd reads them, with the program where it was unpacked.
    fn units_are_fine(root: &Path, folder: &Path) {
        let mut units = Vec::new();
        for entry in fs::read_dir(root.join(UNITS)).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            let command = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
            assert!(command.starts_with("/usr/bin/jobyard "), "{command}");
            let here = root.join("usr/bin/jobyard");
            let unit = folder.join(entry.file_name());
            fs::write(
                &unit,
                text.replace("ExecStart=/usr/bin/jobyard", &format!("ExecStart={}", here.display())),
            )
            .unwrap();
            units.push(unit);
        }
        assert_eq!(units.len(), 4);
        if is_there("systemd-analyze") {
            let verified = output(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units));
            let said = String::from_utf8(verified.stderr).unwrap();
            let ours: Vec<_> = said.lines().filter(|line| line.contains("jobyard")).collect();
            assert!(ours.is_empty(), "{said}");
        }
    }

    #[test]
    fn units_leave_tasks_alone_and_scripts_start_nothing() {
        let packaging = shell::root().join("packaging");
        for unit in ["up", "worker"] {
            let text = fs::read_to_string(packaging.join(format!("systemd/jobyard-{unit}.service"))).unwrap();
            for line in [
                "KillMode=process",
                "Delegate=yes",
                "Restart=always",
                "OOMPolicy=continue",
                "TasksMax=infinity",
            ] {
                assert!(text.lines().any(|found| found == line), "{unit}: {line}");
            }
            // Tasks would inherit these, and with a mount namespace a restarted worker would not see what they see.
            for word in
                ["Protect", "Private", "NoNewPrivileges", "SystemCall", "Restrict", "ReadOnly", "UMask"]
            {
                assert!(!text.lines().any(|found| found.starts_with(word)), "{unit}: {word}");
            }
        }
        for script in SCRIPTS {
            let path = packaging.join("debian").join(script);
            output(Command::new("sh").arg("-n").arg(&path));
            let text = fs::read_to_string(path).unwrap();
            let commands = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            for line in commands {
                assert!(
                    !["enable", " start", "restart"].iter().any(|word| line.contains(word)),
                    "{script}: {line}"
                );
            }
        }
    }

    #[test]
    fn a_binary_needs_the_newest_library_that_it_names() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_2.x"), "2.34");
        assert_eq!(newest_glibc(b""), "2.0");
    }
}
