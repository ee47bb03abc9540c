//! No acknowledged message is lost when the process is killed.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_engine::{HistoryStore as _, SessionId, TenantId};
use plimsoll_store::SqliteStore;

use crate::seeded::Seeded;

/// Lives of the appending process, and acknowledgements that are waited for in one before it is killed.
const LIVES: usize = 200;
const AWAITED: usize = 40;

pub(crate) type Acks = HashMap<(String, u32), String>;

#[tokio::test]
async fn what_was_acknowledged_survives_every_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut random = Seeded(0x5EED);
    let mut all = Acks::new();
    for life in 0..LIVES {
        let acks = live(&path, 1 + random.below(AWAITED), random.below(3_000));
        assert!(!acks.is_empty(), "life {life} acknowledged nothing");
        if life % 20 == 19 {
            check(&path, &acks).await;
        }
        all.extend(acks);
    }
    assert!(all.len() >= LIVES * 10, "{} acknowledgements in {LIVES} lives", all.len());
    check(&path, &all).await;
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sound: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("the check runs");
    assert_eq!(sound, "ok");
}

/// Lets a process append until it has acknowledged `awaited` messages, and kills it `steps` spins later.
fn live(path: &Path, awaited: usize, steps: usize) -> Acks {
    let mut child = Command::new(env!("CARGO_BIN_EXE_append-until-killed"))
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the process starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut acks = Acks::new();
    while acks.len() < awaited {
        let line = lines.next().expect("it lives").expect("text");
        acknowledge(&mut acks, &line);
    }
    for _ in 0..steps {
        std::hint::spin_loop();
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    // Lines that it printed before it died were acknowledged too.
    for line in lines {
        acknowledge(&mut acks, &line.expect("text"));
    }
    acks
}

pub(crate) fn acknowledge(acks: &mut Acks, line: &str) {
    let parts: Vec<&str> = line.split(' ').collect();
    if let [session, position, hash] = parts.as_slice()
        && hash.len() == 64
    {
        let position = position.parse().expect("a position");
        acks.insert(((*session).to_owned(), position), (*hash).to_owned());
    }
}

pub(crate) async fn check(path: &Path, acks: &Acks) {
    let store = SqliteStore::open(path).await.expect("it opens again");
    let mut kept = HashMap::new();
    for session in 0..4 {
        let name = format!("s{session}");
        let id = SessionId::new(&name).expect("an id");
        let messages = store.messages(&TenantId::default(), &id, 0, usize::MAX).await;
        for record in messages.expect("every hash is as it was") {
            kept.insert((name.clone(), record.position), record.hash.full());
        }
    }
    for (key, hash) in acks {
        assert_eq!(kept.get(key), Some(hash), "{key:?} was acknowledged");
    }
    assert_eq!(store.mismatches(), 0);
}
