//! A file that was deleted, replaced, damaged, or lies where nothing may be written.

use std::path::{Path, PathBuf};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, KnowledgeStore as _, MessageRecord, SearchQuery, StoreError,
};
use plimsoll_store::{SqliteStore, StoreAddress};
use plimsoll_testkit::sample::{answer, artefact, card, memory, message, receipt, session, tenant};

use crate::seeded::Seeded;

const NOW: MillisSinceEpoch = MillisSinceEpoch(1);

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn batch(messages: Vec<MessageRecord>) -> HistoryBatch {
    HistoryBatch { messages, ..HistoryBatch::default() }
}

fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>, path: &Path, why: &str) {
    let Err(StoreError::Unavailable { why: said, .. }) = result else { panic!("{result:?}") };
    assert!(said.contains(&path.display().to_string()) && said.contains(why), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_deleted_file_is_noticed_and_taken_again_when_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, away) = (folder.path().join("store.db"), folder.path().join("away.db"));
    let store = SqliteStore::open(&path).await.expect("a store");
    let a = tenant("a");
    store.append(&a, batch(vec![message("s", 0, "walrus")])).await.expect("appended");
    assert_eq!(store.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
    std::fs::rename(&path, &away).expect("moved");
    let second = batch(vec![message("s", 1, "penguin")]);
    unavailable(store.append(&a, second.clone()).await, &path, "deleted or moved");
    unavailable(store.messages(&a, &session("s"), 0, 9).await, &path, "deleted or moved");
    assert!(!path.exists(), "no new file pretends to be the store");
    // A new file would take the log of the old one for its own.
    let begun = SqliteStore::open(&path).await;
    let Err(StoreError::Unsupported { what }) = begun else { panic!("{begun:?}") };
    assert!(what.contains("store.db-wal"), "{what}");
    std::fs::write(&path, "something else").expect("written");
    unavailable(store.append(&a, second.clone()).await, &path, "another file");
    unavailable(store.sessions(&a, 9).await, &path, "another file");
    std::fs::rename(&away, &path).expect("moved back");
    store.append(&a, second).await.expect("appended");
    assert_eq!(store.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 2);
}

#[tokio::test]
async fn a_file_is_read_where_nothing_may_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    // Characters that have a meaning in an address.
    let path = folder.path().join("a%20b?mode=rw#c é.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let a = tenant("a");
    store.append(&a, batch(vec![message("s", 0, "walrus")])).await.expect("appended");
    drop(store);
    let before = std::fs::read(&path).expect("the file");
    let store = SqliteStore::open_to_read(&path).await.expect("it is read");
    assert_eq!(store.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
    let query = SearchQuery { text: Some("walrus".into()), embedding: None, limit: 1 };
    assert_eq!(store.search(&a, None, &query).await.expect("hits").len(), 1);
    assert_eq!(store.check().await.expect("checked"), Vec::<String>::new());
    let refused = store.append(&a, batch(vec![message("s", 1, "no")])).await;
    let Err(StoreError::Unsupported { what }) = refused else { panic!("{refused:?}") };
    assert!(what.contains("can only be read"), "{what}");
    assert_eq!(std::fs::read(&path).expect("the file"), before);
    for end in ["-wal", "-shm"] {
        assert!(!beside(&path, end).exists(), "{end} was made");
    }
    let copy = folder.path().join("copy.db");
    store.back_up(&copy).await.expect("copied");
    assert!(SqliteStore::open(&copy).await.is_ok());
    let missing = SqliteStore::open_to_read(&folder.path().join("missing.db")).await;
    assert!(matches!(missing, Err(StoreError::Unavailable { .. })), "{missing:?}");
}

#[tokio::test]
async fn changes_that_are_still_in_the_log_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let writing = SqliteStore::open(&path).await.expect("a store");
    let a = tenant("a");
    writing.append(&a, batch(vec![message("s", 0, "walrus")])).await.expect("appended");
    assert!(beside(&path, "-wal").metadata().expect("a log").len() > 0);
    let reading = SqliteStore::open_to_read(&path).await.expect("it is read");
    assert_eq!(reading.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
}

#[tokio::test]
async fn rows_that_were_changed_in_the_file_are_not_returned() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let a = tenant("a");
    let first = message("s", 0, "walrus");
    let whole = HistoryBatch {
        branch: None,
        receipts: vec![receipt("s", 0, "masking")],
        cards: vec![card("a", &first, "an animal")],
        messages: vec![first],
    };
    store.append(&a, whole).await.expect("appended");
    store.put_answer(&answer("a", "key")).await.expect("stored");
    drop(store);
    for change in [
        "UPDATE unified_logs SET tokens_saved = tokens_saved + 64 WHERE receipt IS NOT NULL",
        "UPDATE context_cards SET summary = 'a mineral'",
        "UPDATE semantic_cache SET answer_text = answer_text || '!'",
    ] {
        let database = rusqlite::Connection::open(&path).expect("a database");
        assert_eq!(database.execute(change, []).expect("changed"), 1, "{change}");
    }
    let store = SqliteStore::open(&path).await.expect("a store");
    let corrupt = |error| matches!(error, Err(StoreError::Corrupt { .. }));
    assert!(corrupt(store.receipts(&a, &session("s")).await.map(drop)));
    assert!(corrupt(store.cards(&a, &session("s")).await.map(drop)));
    assert!(corrupt(store.answer(&a, "key", NOW).await.map(drop)));
    let faults = store.check().await.expect("checked");
    for noun in ["receipt", "card", "answer"] {
        assert!(faults.iter().any(|fault| fault.contains(noun)), "{noun}: {faults:?}");
    }
    drop(store);
    let repair = SqliteStore::repair(&path).await.expect("repaired");
    for name in ["unified_logs", "context_cards", "semantic_cache"] {
        let table = repair.tables.iter().find(|table| table.table == name).expect("a table");
        assert_eq!(table.dropped, 1, "{name}");
    }
    let store = SqliteStore::open(&path).await.expect("a store");
    assert_eq!(store.check().await.expect("checked"), Vec::<String>::new());
    assert_eq!(store.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
    assert!(repair.damaged.exists(), "the damaged file is kept");
    let again = SqliteStore::repair(&path).await;
    assert!(matches!(again, Err(StoreError::Unavailable { .. })), "in use: {again:?}");
    drop(store);
    let again = SqliteStore::repair(&path).await;
    assert!(matches!(again, Err(StoreError::Unsupported { .. })), "{again:?}");
}

/// Pages that are spoilt in a round, of about two hundred.
const SPOILT: usize = 6;

#[tokio::test]
async fn a_repair_keeps_what_is_whole_and_returns_nothing_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let a = tenant("a");
    let texts = |number: u32| format!("message {number} ").repeat(1 + number as usize * 7 % 60);
    let messages: Vec<_> = (0..600).map(|number| message("s", number, &texts(number))).collect();
    let cards = messages.iter().map(|one| card("a", one, "a summary")).collect();
    let whole = HistoryBatch { messages: messages.clone(), cards, ..HistoryBatch::default() };
    store.append(&a, whole).await.expect("appended");
    for number in 0..50 {
        store.put_artefact(&artefact("a", "page", &texts(number))).await.expect("stored");
        store.put_memory(&memory("a", &format!("m{number}"), "a fact")).await.expect("stored");
    }
    drop(store);
    let bytes = std::fs::read(&path).expect("the file");
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'unified_logs'";
    let root: u32 = database.query_row(sql, [], |row| row.get(0)).expect("a table");
    drop(database);
    let mut random = Seeded(0x5A1_7A6E);
    let (mut rounds, mut kept) = (0, 0);
    for round in 0..8 {
        let mut damaged = bytes.clone();
        // The first two pages name the tables; without them there is no store to read.
        for _ in 0..SPOILT {
            let page = 2 + random.below(bytes.len() / 4096 - 2);
            // A table is lost with its root, which counts from 1.
            if page + 1 == root as usize {
                continue;
            }
            for byte in &mut damaged[page * 4096..][..4096] {
                *byte ^= 0x5A;
            }
        }
        let path = folder.path().join(format!("damaged-{round}.db"));
        std::fs::write(&path, &damaged).expect("written");
        // A page of the schema beyond the first may be among them.
        let Ok(_) = SqliteStore::repair(&path).await else { continue };
        rounds += 1;
        let store = SqliteStore::open(&path).await.expect("a store");
        assert_eq!(store.check().await.expect("checked"), Vec::<String>::new(), "round {round}");
        let found = store.messages(&a, &session("s"), 0, 9_999).await.expect("messages");
        for record in &found {
            assert_eq!(record, &messages[record.position as usize]);
        }
        kept += found.len();
        let query = SearchQuery { text: Some("599".into()), embedding: None, limit: 1 };
        let hit = store.search(&a, None, &query).await.expect("hits").len();
        assert_eq!(hit, usize::from(found.last().is_some_and(|last| last.position == 599)));
        // The session goes on behind what is left.
        let next = found.last().map_or(0, |last| last.position + 1);
        store.append(&a, batch(vec![message("s", next, "and on")])).await.expect("appended");
    }
    assert!(rounds >= 5 && kept > rounds * 500, "{rounds} rounds, {kept} messages");
}

#[tokio::test]
async fn an_address_is_opened_for_reading_where_it_cannot_be_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).await.expect("a store"));
    // An exclusive lock stands in for a medium without room: a change is refused, a log lies beside the file.
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let address = StoreAddress::new(path.to_str().expect("text"));
    let (history, _) = plimsoll_store::open_existing(&address).await.expect("it is read");
    assert!(history.sessions(&tenant("a"), 1).await.expect("sessions").is_empty());
}

/// Returns the bytes of a store with 600 messages.
async fn filled(path: &Path) -> Vec<u8> {
    let store = SqliteStore::open(path).await.expect("a store");
    let text = |number: u32| format!("message {number} ").repeat(20);
    let messages = (0..600).map(|number| message("s", number, &text(number))).collect();
    store.append(&tenant("a"), batch(messages)).await.expect("appended");
    drop(store);
    std::fs::read(path).expect("the file")
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = filled(&folder.path().join("whole.db")).await;
    for (name, length, least) in
        [("page", bytes.len() - 4096, 590), ("share", bytes.len() * 6 / 10, 150)]
    {
        let path = folder.path().join(format!("{name}.db"));
        std::fs::write(&path, &bytes[..length]).expect("written");
        let error = SqliteStore::open(&path).await.expect_err("cut short").to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
        let repair = SqliteStore::repair(&path).await.expect("repaired");
        let damaged = std::fs::read(repair.damaged).expect("it is kept");
        assert!(damaged == bytes[..length], "it is kept as it was");
        let store = SqliteStore::open(&path).await.expect("a store");
        assert_eq!(store.check().await.expect("checked"), Vec::<String>::new());
        let kept = store.messages(&tenant("a"), &session("s"), 0, 999).await.expect("messages");
        assert!(kept.len() >= least, "{name}: {} messages", kept.len());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_named_and_nothing_is_made_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (within, pipe) = (folder.path().join("folder"), folder.path().join("pipe"));
    std::fs::create_dir(&within).expect("made");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    for path in [&within, &pipe] {
        unavailable(SqliteStore::repair(path).await, path, "it is no file");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[tokio::test]
async fn a_tool_s_schema_that_was_changed_is_not_returned() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let definition = plimsoll_core::lazy_tools::ToolDefinition {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        schema: "{}".into(),
    };
    let tools = [definition];
    let a = tenant("a");
    let tokenizer = plimsoll_core::Tokenizer::O200k { factor: 1.0 };
    plimsoll_engine::tool_registry::register_tools(&store, &a, "files", &tools, tokenizer, NOW)
        .await
        .expect("registered");
    assert_eq!(store.tool_schemas(&a).await.expect("schemas").len(), 1);
    drop(store);
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sql = "UPDATE tool_schemas SET schema_json = replace(schema_json, 'Reads', 'Erases')";
    assert_eq!(database.execute(sql, []).expect("changed"), 1);
    drop(database);
    let store = SqliteStore::open(&path).await.expect("a store");
    let read = store.tool_schemas(&a).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    let faults = store.check().await.expect("checked");
    assert!(faults.iter().any(|fault| fault.contains("schema of read_file")), "{faults:?}");
    drop(store);
    let repair = SqliteStore::repair(&path).await.expect("repaired");
    let table = repair.tables.iter().find(|table| table.table == "tool_schemas").expect("a table");
    assert_eq!((table.kept, table.dropped), (0, 1));
}
