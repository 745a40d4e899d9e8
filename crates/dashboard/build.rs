//! Lists what `npm run build` left in `dashboard/dist`, so that it becomes part of the binary. Without it the list is
//! empty, and the binary is whole all the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let dist = own.join("../../dashboard/dist");
    // Cargo builds anew each time while a folder that it watches is not there. Sources that can't be written to have
    // what they have.
    let watched = fs::create_dir_all(&dist).is_ok();
    if watched {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let mut paths = Vec::new();
    if dist.is_dir() {
        collect(&dist, &dist, &mut paths)?;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("files.rs"), list(&dist, &paths)?)
}

/// The paths of all files, relative to `root`, without hidden ones.
fn collect(root: &Path, folder: &Path, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, paths)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            paths.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// The table as Rust: a file that lies beside its `.br` or `.gz` has these as encodings.
fn list(dist: &Path, paths: &[String]) -> io::Result<String> {
    let full = |path: &str| dist.join(path).canonicalize();
    let mut files: BTreeMap<&str, [Option<&str>; 2]> = BTreeMap::new();
    for path in paths {
        let encodings = [".br", ".gz"].map(|end| path.strip_suffix(end));
        match encodings.iter().flatten().find(|plain| paths.iter().any(|path| path == *plain)) {
            Some(plain) => {
                let entry = files.entry(plain).or_default();
                entry[usize::from(encodings[0].is_none())] = Some(path);
            }
            None => {
                files.entry(path).or_default();
            }
        }
    }
    let mut text = String::from("&[\n");
    for (path, encodings) in files {
        let hash: String =
            Sha256::digest(fs::read(full(path)?)?).iter().take(12).fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
        let included = |path: &str| full(path).map(|full| format!("include_bytes!({full:?})"));
        let optional = |path: Option<&str>| {
            let included = path.map(included).transpose()?;
            io::Result::Ok(included.map_or("None".to_owned(), |bytes| format!("Some({bytes})")))
        };
        let (br, gz) = (optional(encodings[0])?, optional(encodings[1])?);
        let bytes = included(path)?;
        let _ =
            writeln!(text, "File {{ path: {path:?}, hash: {hash:?}, bytes: {bytes}, br: {br}, gz: {gz} }},");
    }
    text.push(']');
    Ok(text)
}
