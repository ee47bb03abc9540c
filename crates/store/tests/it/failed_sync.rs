//! An append whose sync failed is not acknowledged, loses nothing that was, and does not stop the store.
//!
//! The failures are real to the process: strace answers one of its syncs with an input/output error. Where strace is
//! missing, or may not trace, nothing is tested.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_store::SqliteStore;

use crate::kill::{Acks, acknowledge, check};

const APPENDED: usize = 20;
/// Messages of this length fill the log up to a checkpoint before the last of [`APPENDED`].
const LONG: usize = 1 << 20;

#[tokio::test]
async fn an_append_is_refused_when_the_sync_of_the_log_fails() {
    let mut refused = 0;
    for position in 1..=APPENDED {
        let Some(outcome) = outcome(position, 0).await else {
            println!("skipped: strace is missing or may not trace");
            return;
        };
        refused += outcome.failed.len();
    }
    // SQLite passes over one: the folder's, after the log was made in it.
    assert_eq!(refused, APPENDED - 1);
}

#[tokio::test]
async fn a_checkpoint_whose_sync_fails_loses_nothing() {
    let mut of_checkpoints = 0;
    // Those of the thread that makes checkpoints come behind its first ones, of the log and the folder.
    for position in 3..=7 {
        let Some(outcome) = outcome(position, LONG).await else {
            println!("skipped: strace is missing or may not trace");
            return;
        };
        of_checkpoints += outcome.files.iter().filter(|file| file.ends_with("store.db")).count();
    }
    assert!(of_checkpoints > 0, "no failure met the sync of the database");
}

struct Outcome {
    /// The files whose sync failed, and what was printed of appends that were refused.
    files: Vec<String>,
    failed: Vec<String>,
}

/// Appends with the sync at `position` of each thread failing, and checks what is true of every such run; `None` without strace.
async fn outcome(position: usize, length: usize) -> Option<Outcome> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    // Syncs while a store is created are not counted here.
    drop(SqliteStore::open(&path).await.expect("a store"));
    let (printed, files) = append(folder.path(), &path, position, length)?;
    let mut acks = Acks::new();
    let mut failed = Vec::new();
    for line in printed.lines() {
        match line.strip_prefix("failed ") {
            Some(failure) => failed.push(failure.to_owned()),
            None => acknowledge(&mut acks, line),
        }
    }
    // The refused one was tried again: the process went on to the last.
    assert_eq!(acks.len(), APPENDED, "sync {position}, of {files:?}: {printed}");
    // A failed sync of the folder or of a checkpoint refuses no append.
    let most = files.iter().filter(|file| file.ends_with("store.db-wal")).count();
    assert!(failed.len() <= most, "sync {position}, of {files:?}: {printed}");
    for failure in &failed {
        let mut parts = failure.splitn(3, ' ');
        let (at, kept) = (parts.next(), parts.next());
        assert_eq!(at, kept, "a refused append is not kept: {failure}");
        assert!(parts.next().is_some_and(|error| error.starts_with("Unavailable")), "{failure}");
    }
    check(&path, &acks).await;
    Some(Outcome { files, failed })
}

/// Returns what the appending process printed and the files whose sync failed; `None` if it could not be traced.
fn append(
    folder: &Path,
    path: &Path,
    position: usize,
    length: usize,
) -> Option<(String, Vec<String>)> {
    let trace = folder.join("trace");
    let output = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-e"])
        .arg(format!("inject=fsync,fdatasync:error=EIO:when={position}"))
        .arg("-o")
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_append-until-killed"))
        .args([path.as_os_str(), APPENDED.to_string().as_ref(), length.to_string().as_ref()])
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let traced = std::fs::read_to_string(&trace).unwrap_or_default();
    // Strace without the permission to trace says so and ends, before or after it has started the process.
    if !traced.contains("sync(") && !output.status.success() {
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let injected = traced.lines().filter(|line| line.ends_with("(INJECTED)"));
    let named = |line: &str| line.split(['<', '>']).nth(1).expect("the path of a file").to_owned();
    let files: Vec<String> = injected.map(named).collect();
    assert!(!files.is_empty(), "no sync failed: {traced}");
    Some((String::from_utf8(output.stdout).expect("text"), files))
}
