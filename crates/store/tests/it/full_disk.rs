//! A full disk is said, loses nothing that was acknowledged, and is over when there is room again.

use std::path::Path;
use std::process::Command;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{HistoryBatch, HistoryStore as _, KnowledgeStore as _, StoreError};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{artefact, message, session, tenant};

/// A file system of a few megabytes, unmounted when dropped.
struct Small(tempfile::TempDir);

impl Small {
    /// Mounts it; `None` where that is not permitted.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.path()).status());
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let Some(disk) = Small::mount() else {
        println!("skipped: mounting a tmpfs is not permitted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).expect("room for the ballast");
    let path = disk.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let page = artefact("a", "page", "readable on a full disk");
    store.put_artefact(&page).await.expect("stored");
    let text = "word ".repeat(1_000);
    let mut acknowledged = 0;
    let append = async |position: u32| {
        let messages = vec![message("s", position, &format!("{position} {text}"))];
        store.append(&tenant("a"), HistoryBatch { messages, ..HistoryBatch::default() }).await
    };
    let refused = loop {
        match append(acknowledged).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused:?}");
    assert!(refused.is_temporary() && acknowledged > 10, "{acknowledged} {refused}");
    for _ in 0..5 {
        append(acknowledged).await.expect_err("there is still no room");
    }
    let kept = async || store.messages(&tenant("a"), &session("s"), 0, 9_999).await;
    assert_eq!(kept().await.expect("read").len(), acknowledged as usize);
    let read = store.artefact(&tenant("a"), &page.reference.digest, MillisSinceEpoch(1)).await;
    assert_eq!(read.expect("reading needs no room").content, page.content);
    std::fs::remove_file(&ballast).expect("removed");
    append(acknowledged).await.expect("there is room again");
    assert_eq!(kept().await.expect("read").len(), acknowledged as usize + 1);
    drop(store);
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sound: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(sound, "ok");
}
