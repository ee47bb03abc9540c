//! The file: who may read it, which versions are read, what is no store.

use std::path::Path;
use std::sync::Arc;

use plimsoll_engine::{
    Bill, Gathering, HistoryBatch, HistoryStore as _, KnowledgeStore as _, MemoryId, ReceiptRecord,
    SearchQuery, StoreError,
};
use plimsoll_store::{SqliteStore, StoreAddress};
use plimsoll_testkit::sample::{memory, message, receipt, session, tenant};
use tokio::task::JoinSet;

async fn refused(path: &Path) -> StoreError {
    SqliteStore::open(path).await.expect_err("it is refused")
}

#[cfg(unix)]
#[tokio::test]
async fn it_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().join("new/store");
    let path = within.join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    store.put_memory(&memory("a", "id", "text")).await.expect("stored");
    assert_eq!(mode(&within), 0o700);
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(&within.join(name)), 0o600, "{name}");
    }
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    drop(SqliteStore::open(&path).await.expect("a store"));
    assert_eq!(mode(&path), 0o644, "the mode of a file that is there is its owner's");
}

#[cfg(unix)]
#[tokio::test]
async fn the_mode_of_what_is_no_store_stays() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n".repeat(99)).expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("set");
    refused(&script).await;
    assert_eq!(script.metadata().expect("there").permissions().mode() & 0o777, 0o755);
    assert!(matches!(refused(Path::new("/dev/null")).await, StoreError::Unavailable { .. }));
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).await.expect("a store"));
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute_batch("PRAGMA user_version = 99").expect("set");
    drop(database);
    let StoreError::Unsupported { what } = refused(&path).await else { panic!("unsupported") };
    assert!(what.contains("version 99") && what.contains("up to 9"), "{what}");
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "a letter to nobody\n".repeat(100)).expect("written");
    assert!(matches!(refused(&text).await, StoreError::Corrupt { .. }));
    assert!(std::fs::read_to_string(&text).expect("read").starts_with("a letter"));
    let other = folder.path().join("other.db");
    let database = rusqlite::Connection::open(&other).expect("a database");
    database.execute_batch("CREATE TABLE theirs (x)").expect("made");
    drop(database);
    let StoreError::Corrupt { what } = refused(&other).await else { panic!("corrupt") };
    assert!(what.contains("not a store"), "{what}");
    let text_error = refused(&text).await.to_string();
    assert!(text_error.contains(&text.display().to_string()), "{text_error}");
    assert!(matches!(refused(folder.path()).await, StoreError::Unavailable { .. }));
}

#[tokio::test]
async fn an_earlier_version_is_copied_and_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute_batch(include_str!("fixtures/v1.sql")).expect("version 1");
    drop(database);
    let store = SqliteStore::open(&path).await.expect("it is brought up to date");
    let kept = store.messages(&tenant("a"), &session("s"), 0, 9).await.expect("messages");
    assert_eq!(kept, [message("s", 0, "kept since version 1")]);
    let query = SearchQuery { text: Some("since".into()), embedding: None, limit: 1 };
    assert_eq!(store.search(&tenant("a"), None, &query).await.expect("hits").len(), 1);
    let bill = Bill { billed: 0.5, without: 0.75, estimate: false };
    let receipts = vec![ReceiptRecord { bill: Some(bill), ..receipt("s", 0, "masking") }];
    let batch = HistoryBatch {
        messages: vec![message("s", 1, "new")],
        receipts,
        ..HistoryBatch::default()
    };
    store.append(&tenant("a"), batch).await.expect("appended");
    let rows = store.efficiency(&tenant("a"), Gathering::Session).await.expect("rows");
    assert_eq!(rows[0].bills.saved(), Some(0.25));
    drop(store);
    let database = rusqlite::Connection::open(&path).expect("a database");
    let joined: String = database
        .query_row("SELECT content_hash FROM unified_logs WHERE number = 0", [], |row| row.get(0))
        .expect("a row");
    assert_eq!(joined, kept[0].hash.short());
    let version = |path: &Path| -> i32 {
        let database = rusqlite::Connection::open(path).expect("a database");
        database.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version")
    };
    let backup = folder.path().join("store.db.v1.backup");
    assert_eq!((version(&path), version(&backup)), (9, 1));
    let copied = rusqlite::Connection::open(&backup).expect("a database");
    let rows: i64 = copied
        .query_row("SELECT count(*) FROM unified_logs", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(rows, 1, "the copy is of before");
    assert!(!folder.path().join("store.db.v1.backup.part").exists());
}

#[tokio::test]
async fn the_specification_s_tables_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    store.put_memory(&memory("a", "id", "a fact")).await.expect("stored");
    drop(store);
    let database = rusqlite::Connection::open(&path).expect("a database");
    for table in [
        "unified_logs",
        "context_cards",
        "facts_ledger",
        "cas_refs",
        "summarize_jobs",
        "tool_schemas",
        "semantic_cache",
        "decisions",
        "facts",
        "episodes",
        "procedures",
        "censors",
    ] {
        let known: bool = database
            .query_row("SELECT count(*) FROM pragma_table_info(?1)", [table], |row| {
                row.get::<_, i64>(0).map(|columns| columns > 0)
            })
            .expect("a count");
        assert!(known, "{table}");
    }
    let text: String =
        database.query_row("SELECT text FROM facts_ledger", [], |row| row.get(0)).expect("a row");
    assert_eq!(text, "a fact");
}

#[tokio::test]
async fn addresses_choose_the_backend() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let address = format!("sqlite://{}", path.display());
    let (_, knowledge) = plimsoll_store::open(&StoreAddress::new(address)).await.expect("a store");
    knowledge.put_memory(&memory("a", "id", "text")).await.expect("stored");
    drop(knowledge);
    let (_, knowledge) =
        plimsoll_store::open(&StoreAddress::new(path.to_str().expect("text"))).await.expect("one");
    assert!(knowledge.memory(&tenant("a"), &MemoryId("id".into()), None).await.is_ok());
    let error = plimsoll_store::open(&StoreAddress::new("mysql://u:secret@h"))
        .await
        .expect_err("no backend");
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"));
    // Nothing listens on port 1; without the feature the address is refused before it is tried.
    let nobody = "postgres://u:secret@127.0.0.1:1/d";
    let error = plimsoll_store::open(&StoreAddress::new(nobody)).await.expect_err("nobody listens");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

/// Returns the statement whose text begins at `at`: a literal, or the rest of the `concat!` that it is the first part of.
fn statement(source: &str, at: usize) -> &str {
    let in_concat = source[..at].trim_end().ends_with("concat!(");
    let (mut is_quoted, mut depth) = (false, 0);
    for (length, character) in source[at..].char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        if depth < 0 || (!is_quoted && !in_concat) {
            return &source[at..at + length];
        }
    }
    &source[at..]
}

#[test]
fn every_statement_that_reads_a_table_names_the_tenant() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite");
    let mut statements = 0;
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        // A check, a repair, a checkpoint and the words that are missing are of the whole file, with the rows of all tenants.
        let all = ["repair.rs", "verify.rs", "checkpoint.rs", "word_index.rs"];
        let of_the_file = all.iter().any(|name| path.ends_with(name));
        if path.extension().is_none_or(|end| end != "rs") || of_the_file {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
        for verb in ["\"SELECT ", "\"INSERT ", "\"UPDATE ", "\"DELETE "] {
            for (at, _) in source.match_indices(verb) {
                let text = statement(&source, at);
                let tables = ["FROM ", "INTO ", "UPDATE "];
                // The operator's list of tenants is the one statement about all of them.
                let is_of_all = text.contains("sqlite_schema") || text.contains("FROM tenants");
                let is_of_parts = text.contains("FROM part ORDER BY");
                if is_of_all || is_of_parts || !tables.iter().any(|word| text.contains(word)) {
                    continue;
                }
                statements += 1;
                let narrow =
                    ["tenant = ?1", "(tenant", "{tenant}", "tenant = :tenant", "filter!()"];
                assert!(
                    narrow.iter().any(|part| text.contains(part)),
                    "{}: {text}",
                    path.display()
                );
            }
        }
    }
    assert!(statements > 70, "{statements}");
}

#[tokio::test]
async fn who_is_refused_takes_no_other_of_its_commit_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store =
        Arc::new(SqliteStore::open(&folder.path().join("store.db")).await.expect("a store"));
    let mut appends = JoinSet::new();
    for number in 0..60_u32 {
        let store = store.clone();
        appends.spawn(async move {
            // Every third leaves a gap, behind a message of another session that must not stay either.
            let other = format!("other-{number}");
            let gap = u32::from(number % 3 == 0);
            let name = format!("session-{number}");
            let messages = vec![message(&other, 0, "walrus"), message(&name, gap, "penguin")];
            let batch = HistoryBatch { messages, ..HistoryBatch::default() };
            (number, store.append(&tenant("a"), batch).await.is_ok())
        });
    }
    for (number, is_kept) in appends.join_all().await {
        assert_eq!(is_kept, number % 3 != 0, "{number}");
        for name in ["other", "session"] {
            let session = session(&format!("{name}-{number}"));
            let kept = store.messages(&tenant("a"), &session, 0, 9).await.expect("read");
            assert_eq!(kept.len(), usize::from(is_kept), "{name} {number}");
        }
    }
    let found = SearchQuery { text: Some("penguin".into()), embedding: None, limit: 100 };
    assert_eq!(store.search(&tenant("a"), None, &found).await.expect("found").len(), 40);
}

#[tokio::test]
async fn a_record_that_was_changed_in_the_file_is_not_returned() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.expect("a store");
    let record = memory("a", "id", "never push to main");
    store.put_memory(&record).await.expect("stored");
    drop(store);
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute("UPDATE memory_records SET micro = 'push to main'", []).expect("changed");
    drop(database);
    let store = SqliteStore::open(&path).await.expect("a store");
    let read = store.memory(&tenant("a"), &record.id, None).await;
    assert!(matches!(read, Err(plimsoll_engine::StoreError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn an_empty_file_stays_empty_for_who_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("empty.db");
    std::fs::write(&path, "").expect("written");
    let address = StoreAddress::new(path.to_str().expect("text"));
    assert!(!plimsoll_store::exists(&address));
    let error = plimsoll_store::open_existing(&address).await.expect_err("no store");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("empty.db"), "{error}");
    assert_eq!(path.metadata().expect("it is there").len(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    plimsoll_store::open(&address).await.expect("who writes makes a store of it");
}
