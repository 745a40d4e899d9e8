//! Folders with tricks in them, read and written.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says where")]

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use jobyard_tree::{Folder, FolderError, FoundFile, Mode, NewFolder, Tree, TreeFile, draft_file};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn put(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn refusal(folder: &Path) -> (String, String) {
    match Folder::open(folder).unwrap().files() {
        Err(FolderError::Refused { path, why }) => (path, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_come_in_order_with_their_size_and_whether_they_are_programs() {
    let here = folder();
    put(here.path(), "b/run.sh", b"#!/bin/sh\n");
    put(here.path(), "b.txt", b"");
    put(here.path(), "a", b"hello");
    fs::create_dir_all(here.path().join("empty/folder")).unwrap();
    fs::set_permissions(here.path().join("b/run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    let files = Folder::open(here.path()).unwrap().files().unwrap();
    let found: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.size, file.mode)).collect();
    assert_eq!(found, [("a", 5, Mode::Plain), ("b.txt", 0, Mode::Plain), ("b/run.sh", 10, Mode::Executable)]);
}

#[test]
fn a_link_counts_as_its_file_while_that_is_inside() {
    let here = folder();
    put(here.path(), "data/2026.txt", b"words");
    symlink("data/2026.txt", here.path().join("latest")).unwrap();
    symlink("../latest", here.path().join("data/again")).unwrap();
    let folder = Folder::open(here.path()).unwrap();
    let files = folder.files().unwrap();
    let found: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    assert_eq!(found, [("data/2026.txt", 5), ("data/again", 5), ("latest", 5)]);
    let one = folder.hash_file("data/again").unwrap();
    assert_eq!(one, folder.hash_file("latest").unwrap());
}

#[test]
fn links_that_lead_out_nowhere_in_circles_or_to_folders_are_refused() {
    let outside = folder();
    put(outside.path(), "secret", b"secret");
    let secret = outside.path().join("secret");
    let cases: [(&Path, &str); 6] = [
        (&secret, "out of the folder"),
        (Path::new("../secret"), "out of the folder"),
        (Path::new("/etc/passwd"), "out of the folder"),
        (Path::new("nothing"), "to nothing"),
        (Path::new("link"), "circle"),
        (Path::new("sub"), "to a folder"),
    ];
    for (target, why) in cases {
        let here = folder();
        fs::create_dir(here.path().join("sub")).unwrap();
        symlink(target, here.path().join("link")).unwrap();
        let (path, said) = refusal(here.path());
        assert_eq!(path, "link");
        assert!(said.contains(why), "{target:?}: {said}");
    }
}

#[test]
fn a_file_that_became_a_link_out_is_not_opened() {
    let (here, outside) = (folder(), folder());
    put(outside.path(), "secret", b"secret");
    put(here.path(), "sub/file", b"fine");
    let folder = Folder::open(here.path()).unwrap();
    assert_eq!(folder.files().unwrap().len(), 1);
    fs::remove_dir_all(here.path().join("sub")).unwrap();
    symlink(outside.path(), here.path().join("sub")).unwrap();
    assert!(matches!(folder.hash_file("sub/secret"), Err(FolderError::Refused { .. })));
    assert!(folder.hash_file("../secret").is_err());
}

#[test]
fn pipes_sockets_and_odd_names_are_refused() {
    let here = folder();
    let _socket = std::os::unix::net::UnixListener::bind(here.path().join("socket")).unwrap();
    let (path, why) = refusal(here.path());
    assert_eq!(path, "socket");
    assert!(why.contains("only files"), "{why}");

    let here = folder();
    let pipe = here.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    assert!(refusal(here.path()).1.contains("only files"));
    assert!(Folder::open(here.path()).unwrap().open_file("pipe").is_err(), "and it does not block");

    let here = folder();
    fs::write(here.path().join(OsStr::from_bytes(b"caf\xe9")), b"").unwrap();
    assert!(refusal(here.path()).1.contains("UTF-8"));

    let here = folder();
    put(here.path(), "a\nb", b"");
    assert!(refusal(here.path()).1.contains("control character"));
}

#[test]
fn somebody_elses_file_is_refused_where_owners_matter() {
    let here = folder();
    put(here.path(), "mine", b"");
    let uid = fs::metadata(here.path()).unwrap().uid();
    assert!(Folder::open(here.path()).unwrap().owned_by(Some(uid)).files().is_ok());
    let other = Folder::open(here.path()).unwrap().owned_by(Some(uid + 1));
    assert!(matches!(other.files(), Err(FolderError::Refused { .. })));
    assert!(matches!(other.open_file("mine"), Err(FolderError::Refused { .. })));
}

#[test]
fn names_that_differ_in_case_are_two_files_here() {
    let (here, there) = (folder(), folder());
    put(here.path(), "Readme", b"1");
    put(here.path(), "README", b"2");
    assert_eq!(Folder::open(here.path()).unwrap().files().unwrap().len(), 2);
    let new = NewFolder::create(&there.path().join("new")).unwrap();
    new.create_file("Readme", 0o644).unwrap();
    new.create_file("README", 0o644).unwrap();
    // What a file system says for which the two are one.
    let refused = new.create_file("README", 0o644).unwrap_err();
    assert!(refused.to_string().contains("differ only in case"), "{refused}");
}

#[test]
fn a_new_folder_is_written_inside_only_and_takes_its_name_at_the_end() {
    let here = folder();
    let (draft, name) = (here.path().join("draft"), here.path().join("name"));
    let mut new = NewFolder::create(&draft).unwrap();
    for path in ["../out", "/tmp/out", "a/../../out", ""] {
        assert!(new.make_way(path).is_err(), "{path}");
        assert!(new.create_file(path, 0o644).is_err(), "{path}");
    }
    new.make_way("a/b/c.txt").unwrap();
    new.create_file("a/b/c.txt", 0o755).unwrap();
    assert!(NewFolder::create(&draft).is_err());
    fs::create_dir(&name).unwrap();
    put(&name, "old", b"");
    assert!(new.keep_as(&name).is_err(), "a folder with something in it is left alone");
    assert!(name.join("old").exists());

    let again = here.path().join("again");
    let new = NewFolder::create(&again).unwrap();
    new.create_file("x", 0o644).unwrap();
    fs::remove_dir_all(&name).unwrap();
    fs::create_dir(&name).unwrap();
    new.keep_as(&name).unwrap();
    assert!(name.join("x").exists() && !again.exists());
}

#[test]
fn a_draft_is_taken_up_by_one_at_a_time_and_by_nobody_once_it_has_its_name() {
    let here = folder();
    let (place, name) = (here.path().join("draft"), here.path().join("name"));
    let new = NewFolder::draft(&place).unwrap();
    new.create_file("x", 0o644).unwrap().write_all(b"half").unwrap();
    assert_eq!(NewFolder::draft(&place).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(new);
    let mut left = String::new();
    let again = NewFolder::draft(&place).unwrap();
    again.open_file("x").unwrap().read_to_string(&mut left).unwrap();
    assert_eq!(left, "half");
    again.keep_as(&name).unwrap();
    NewFolder::draft(&place).unwrap().create_file("y", 0o644).unwrap();
    assert!(name.join("x").exists() && !name.join("y").exists());

    let file = here.path().join("file");
    let held = draft_file(&file).unwrap();
    assert_eq!(draft_file(&file).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(held);
    draft_file(&file).unwrap();
}

#[test]
fn nothing_is_written_through_links_that_lie_in_a_draft_s_place() {
    let (here, outside) = (folder(), folder());
    put(outside.path(), "secret", b"secret");
    let place = here.path().join("draft");
    symlink(outside.path(), &place).unwrap();
    NewFolder::draft(&place).unwrap_err();
    let file = here.path().join("file");
    symlink(outside.path().join("secret"), &file).unwrap();
    draft_file(&file).unwrap_err();
    let pipe = here.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    draft_file(&pipe).unwrap_err();

    let place = here.path().join("other");
    let draft = NewFolder::draft(&place).unwrap();
    symlink(outside.path().join("secret"), place.join("link")).unwrap();
    symlink(outside.path(), place.join("folder")).unwrap();
    for path in ["link", "folder/secret", "../file", "nothing"] {
        draft.open_file(path).unwrap_err();
    }
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    fs::remove_dir_all(&place).unwrap();
    assert!(NewFolder::draft(&place).is_ok(), "one that is gone is made anew");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&place, Some(12_345), None).unwrap();
        drop(draft);
        assert_eq!(NewFolder::draft(&place).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
}

#[test]
fn a_large_sparse_file_is_read_in_pieces() {
    let here = folder();
    let file = fs::File::create(here.path().join("sparse")).unwrap();
    file.set_len(24 << 20).unwrap();
    let folder = Folder::open(here.path()).unwrap();
    assert_eq!(folder.files().unwrap()[0].size, 24 << 20);
    assert_eq!(folder.hash_file("sparse").unwrap().size, 24 << 20);
}

#[test]
fn a_hundred_thousand_small_files_make_one_manifest() {
    // In memory where that can be had: making so many files takes a disk minutes.
    let here = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder());
    let (mut tree, folders) = (Tree::default(), 100);
    for number in 0..folders {
        fs::create_dir(here.path().join(format!("{number}"))).unwrap();
        for file in 0..1_000 {
            fs::write(here.path().join(format!("{number}/{file}")), number.to_string()).unwrap();
        }
    }
    let folder = Folder::open(here.path()).unwrap();
    for FoundFile { path, mode, .. } in folder.files().unwrap() {
        let hashed = folder.hash_file(&path).unwrap();
        tree.files.insert(path, TreeFile { sha256: hashed.sha256, size: hashed.size, mode });
    }
    assert_eq!(tree.files.len(), 100_000);
    let (manifest, _) = tree.encode().unwrap();
    assert_eq!(Tree::decode(&manifest).unwrap(), tree);
}
