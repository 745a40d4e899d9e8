//! Folders, pushed to a real server and pulled from it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jobyard_client::{Error, FolderStep, FolderWatch};
use tokio::sync::mpsc;

use crate::yard::Yard;

fn put(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, content).expect("written");
}

/// Path and content of every file, and whether it is a program.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>, bool)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = fs::metadata(&path).expect("there");
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").to_owned();
                let is_program = metadata.permissions().mode() & 0o100 != 0;
                found.push((name, fs::read(path).expect("readable"), is_program));
            }
        }
    }
    found.sort();
    found
}

fn nobody() -> FolderWatch {
    Arc::new(|_| ())
}

/// The steps that were told, and the watch that they are told to.
fn steps() -> (Arc<Mutex<Vec<FolderStep>>>, FolderWatch) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&steps);
    (steps, Arc::new(move |step| told.lock().expect("no panic").push(step)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_goes_up_as_far_as_it_must_and_comes_back_as_it_was() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let home = tempfile::tempdir().expect("a temporary directory");
    let here = home.path().join("here");
    put(&here, "texts/eins.txt", b"eins zwei");
    put(&here, "texts/deep/er/zwei.txt", b"drei");
    put(&here, "copy of eins", b"eins zwei");
    put(&here, "schön/leer", b"");
    put(&here, "large", &vec![7; 700_000]);
    put(&here, "run.sh", b"#!/bin/sh\n");
    fs::set_permissions(here.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("a program");
    let (told, watch) = steps();
    let first = artifacts.push_folder(&here, watch).await.expect("pushed");
    assert_eq!((first.files, first.size_bytes), (6, 700_032));
    assert_eq!((first.sent_files, first.sent_bytes), (5, 700_023), "what is twice in it goes up once");
    let moved: u64 = told.lock().expect("no panic").iter().fold(0, |sum, step| match step {
        FolderStep::Moved { bytes } => sum + bytes,
        _ => sum,
    });
    assert_eq!(moved, 700_023);

    let again = artifacts.push_folder(&here, nobody()).await.expect("known");
    assert_eq!((again.hash, again.sent_files), (first.hash, 0));
    put(&here, "texts/eins.txt", b"changed");
    let changed = artifacts.push_folder(&here, nobody()).await.expect("pushed");
    assert_ne!(changed.hash, first.hash);
    assert_eq!((changed.sent_files, changed.sent_bytes), (1, 7));
    put(&here, "texts/eins.txt", b"eins zwei");

    let back = home.path().join("back");
    fs::create_dir(&back).expect("made");
    let pulled = artifacts.pull_folder(first.hash, &back, nobody()).await.expect("pulled");
    assert_eq!((pulled.files, pulled.size_bytes), (6, 700_032));
    assert_eq!(contents(&back), contents(&here));
    let occupied = artifacts.pull_folder(changed.hash, &back, nobody()).await.expect_err("occupied");
    assert!(matches!(occupied, Error::File { doing: "write", .. }), "{occupied}");
    assert_eq!(contents(&back), contents(&here));
    let unknown = artifacts.pull_folder(pull_of_nothing(), &home.path().join("no"), nobody()).await;
    assert_eq!(unknown.expect_err("unknown").code(), Some("not_found"));
    assert_eq!(fs::read_dir(home.path()).expect("there").count(), 2, "nothing is left beside");
}

fn pull_of_nothing() -> jobyard_client::ArtifactHash {
    "0".repeat(64).parse().expect("a hash")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_goes_on_where_a_killed_server_left_it() {
    let mut yard = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let here = home.path().join("here");
    // Too large to go up many in a call.
    let size = 70_000;
    for number in 0..60_u8 {
        put(&here, &format!("{number}"), &vec![number; size]);
    }
    let (sent, mut moves) = mpsc::unbounded_channel();
    let moved = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&moved);
    let watch: FolderWatch = Arc::new(move |step| {
        match step {
            FolderStep::Moved { bytes } => counted.fetch_add(bytes, Ordering::SeqCst),
            FolderStep::Again { bytes } => counted.fetch_sub(bytes, Ordering::SeqCst),
            _ => 0,
        };
        let _ = sent.send(step);
    });
    let artifacts = yard.client().artifacts();
    let folder = here.clone();
    let push = tokio::spawn(async move { artifacts.push_folder(&folder, watch).await });
    let is_move = |step| matches!(step, FolderStep::Moved { .. });
    while !moves.recv().await.is_some_and(is_move) {}
    yard.kill_server().await;
    yard.serve().await;
    let pushed = push.await.expect("no panic").expect("pushed");
    assert_eq!(moved.load(Ordering::SeqCst), 60 * size as u64, "and the count is right again");
    let back = home.path().join("back");
    yard.client().artifacts().pull_folder(pushed.hash, &back, nobody()).await.expect("pulled");
    assert_eq!(contents(&back), contents(&here));
}

/// What lies beside the folders that a test made.
fn drafts(home: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(home).expect("there").map(|entry| entry.expect("an entry").path());
    names.filter(|path| path.extension().is_some_and(|end| end == "part")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_was_killed_goes_on_where_it_was() {
    let mut yard = Yard::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let (here, back) = (home.path().join("here"), home.path().join("back"));
    for number in 0..40_u8 {
        put(&here, &format!("{}/{number}", number % 3), &vec![number; 500_000]);
    }
    put(&here, "empty", b"");
    let pushed = yard.client().artifacts().push_folder(&here, nobody()).await.expect("pushed");
    let (sent, mut moves) = mpsc::unbounded_channel();
    let watch: FolderWatch = Arc::new(move |step| {
        if matches!(step, FolderStep::Moved { .. }) {
            let _ = sent.send(step);
        }
    });
    let (artifacts, place) = (yard.client().artifacts(), back.clone());
    let pull = tokio::spawn(async move { artifacts.pull_folder(pushed.hash, &place, watch).await });
    let mut moved = 0;
    while moved < 5_000_000 {
        let Some(FolderStep::Moved { bytes }) = moves.recv().await else { panic!("{moved} bytes moved") };
        moved += bytes;
    }
    pull.abort();
    yard.kill_server().await;
    // Whatever it came to in that moment.
    let _ = pull.await;
    assert!(!back.exists(), "half of it has no name");
    let draft = drafts(home.path());
    assert_eq!(draft.len(), 1);
    // What it was just doing may hold the draft for a moment more.
    while jobyard_tree::NewFolder::draft(&draft[0]).is_err() {
        tokio::task::yield_now().await;
    }
    // A whole file whose bytes are wrong by now, and one that is longer than it should be.
    let whole = contents(&draft[0]).into_iter().find(|(_, bytes, _)| bytes.len() == 500_000);
    fs::write(draft[0].join(whole.expect("a whole file").0), vec![255; 500_000]).expect("spoilt");
    fs::write(draft[0].join("empty"), b"not at all").expect("spoilt");

    yard.serve().await;
    let (told, watch) = steps();
    let artifacts = yard.client().artifacts();
    let pulled = artifacts.pull_folder(pushed.hash, &back, watch).await.expect("pulled");
    assert_eq!(contents(&back), contents(&here));
    let (mut kept, mut fetched) = (0, 0);
    for step in told.lock().expect("no panic").iter() {
        match step {
            FolderStep::Kept { bytes } => kept += bytes,
            FolderStep::Moved { bytes } => fetched += bytes,
            FolderStep::Again { bytes } => kept -= bytes,
            _ => {}
        }
    }
    assert!(kept >= 3_000_000, "{kept} bytes were kept");
    assert_eq!(kept + fetched, pulled.size_bytes);
    assert_eq!(drafts(home.path()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_strange_in_a_draft_gets_no_name() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let home = tempfile::tempdir().expect("a temporary directory");
    let (here, back) = (home.path().join("here"), home.path().join("back"));
    put(&here, "a", b"good");
    let pushed = artifacts.push_folder(&here, nobody()).await.expect("pushed");
    let draft = home.path().join(format!(".back.{:.16}.part", pushed.hash.to_string()));
    put(&draft, "b", b"strange");
    let refused = artifacts.pull_folder(pushed.hash, &back, nobody()).await.expect_err("strange");
    assert!(format!("{refused:?}").contains("remove it and pull again"), "{refused:?}");
    assert!(!back.exists());
    fs::remove_dir_all(&draft).expect("removed");
    artifacts.pull_folder(pushed.hash, &back, nobody()).await.expect("pulled");
    assert_eq!(contents(&back), contents(&here));
}

#[tokio::test(flavor = "multi_thread")]
async fn small_files_go_up_many_in_a_call() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let home = tempfile::tempdir().expect("a temporary directory");
    let here = home.path().join("here");
    for number in 0..1_499 {
        put(&here, &format!("{}/{number}", number % 7), format!("number {number}").as_bytes());
    }
    put(&here, "empty", b"");
    put(&here, "large", &[7; 70_000]);
    let pushed = artifacts.push_folder(&here, nobody()).await.expect("pushed");
    assert_eq!((pushed.files, pushed.sent_files), (1_501, 1_501));
    let metrics = reqwest::Client::new().get(format!("{}/metrics", yard.url())).bearer_auth(&yard.secret);
    let metrics = metrics.send().await.expect("an answer").text().await.expect("text");
    let calls = |method: &str, route: &str| {
        let counted = metrics.lines().filter(|line| {
            line.starts_with("jobyard_http_calls_total")
                && line.contains(&format!("\"{method}\""))
                && line.contains(&format!("\"/api/v1/artifacts/{route}\""))
        });
        counted
            .map(|line| line.rsplit(' ').next().expect("a count").parse::<u64>().expect("a count"))
            .sum::<u64>()
    };
    assert_eq!((calls("POST", "batch"), calls("PUT", "{sha256}")), (2, 1), "{metrics}");
    let back = home.path().join("back");
    artifacts.pull_folder(pushed.hash, &back, nobody()).await.expect("pulled");
    assert_eq!(contents(&back), contents(&here));
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_rotted_in_the_store_leave_no_folder() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let home = tempfile::tempdir().expect("a temporary directory");
    let here = home.path().join("here");
    put(&here, "a", b"good");
    put(&here, "b", b"fine");
    let pushed = artifacts.push_folder(&here, nobody()).await.expect("pushed");
    let hash = artifacts.push_file(&here.join("b")).await.expect("there").hash.to_string();
    let stored = yard.directory.path().join("artifacts/sha256").join(&hash[..2]).join(&hash);
    fs::write(stored, b"evil").expect("rotted");
    let back = home.path().join("back");
    let wrong = artifacts.pull_folder(pushed.hash, &back, nobody()).await.expect_err("rotted");
    assert!(matches!(wrong, Error::WrongHash { .. }), "{wrong}");
    assert_eq!(fs::read_dir(home.path()).expect("there").count(), 1, "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_a_trick_in_it_is_not_sent() {
    let yard = Yard::start().await;
    let artifacts = yard.client().artifacts();
    let home = tempfile::tempdir().expect("a temporary directory");
    let here = home.path().join("here");
    put(&here, "fine", b"fine");
    symlink("/etc/passwd", here.join("trick")).expect("linked");
    let refused = artifacts.push_folder(&here, nobody()).await.expect_err("a link out");
    assert!(matches!(refused, Error::Folder(_)), "{refused}");
    assert!(refused.to_string().starts_with("trick: is a link that leads out"), "{refused}");
    let fine = artifacts.push_file(&here.join("fine")).await.expect("pushed");
    assert!(fine.sent, "nothing of the folder went up");
}
