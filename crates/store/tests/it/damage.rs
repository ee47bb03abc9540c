//! A damaged file is found, and nothing wrong is returned from it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    HistoryBatch, HistoryStore, KnowledgeStore, LogQuery, RefQuery, SearchQuery, StoreError,
};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{artefact, message, session, tenant};

use crate::seeded::Seeded;

/// Places at which a bit is flipped, or a page cleared.
const DAMAGES: usize = 300;
const NOW: MillisSinceEpoch = MillisSinceEpoch(1);

/// Contents by hash, as they were stored.
type Originals = HashMap<String, Vec<u8>>;

fn text(number: u32) -> String {
    format!("message {number} ").repeat(1 + number as usize * 7 % 90)
}

async fn fill(path: &Path) -> Originals {
    let store = SqliteStore::open(path).await.expect("a store");
    let mut originals = Originals::new();
    let messages: Vec<_> = (0..80).map(|number| message("s", number, &text(number))).collect();
    for record in &messages {
        originals.insert(record.hash.full(), record.message.shown().into_bytes());
    }
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.expect("appended");
    for number in 0..20 {
        let page = artefact("a", "page", &format!("page {}", text(number)));
        store.put_artefact(&page).await.expect("stored");
        originals.insert(page.reference.digest, page.content);
    }
    originals
}

/// Reads everything; an error is fine, a panic or another content is not.
async fn read(path: &Path, originals: &Originals) -> Result<(), StoreError> {
    let store = SqliteStore::open(path).await?;
    let a = tenant("a");
    let right = |hash: &str, content: &[u8]| {
        assert_eq!(originals.get(hash).map(Vec::as_slice), Some(content), "{hash}");
    };
    let mut result = Ok(());
    match store.messages(&a, &session("s"), 0, 999).await {
        Ok(records) => {
            for record in records {
                right(&record.hash.full(), record.message.shown().as_bytes());
            }
        }
        Err(error) => result = Err(error),
    }
    for (hash, content) in originals {
        match store.artefact(&a, hash, NOW).await {
            Ok(artefact) => right(&artefact.reference.digest, &artefact.content),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => result = Err(error),
        }
        match store.message_by_hash(&a, hash).await {
            Ok(record) => right(&record.hash.full(), record.message.shown().as_bytes()),
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => result = Err(error),
        }
        if content.len() % 7 == 0 {
            let query = SearchQuery { text: Some("message 7".into()), embedding: None, limit: 20 };
            for hit in store.search(&a, None, &query).await.unwrap_or_default() {
                right(&hit.item.hash.full(), hit.item.message.shown().as_bytes());
            }
        }
    }
    for outcome in [
        store.log(&a, &LogQuery { limit: 99, ..LogQuery::default() }).await.map(drop),
        store.artefacts(&a, &RefQuery { limit: 99, ..RefQuery::default() }).await.map(drop),
        store.verify(&a).await.map(drop),
        store.sessions(&a, 9).await.map(drop),
    ] {
        result = result.and(outcome);
    }
    result
}

#[tokio::test]
async fn no_damage_makes_a_wrong_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let originals = fill(&path).await;
    let whole = std::fs::read(&path).expect("the file");
    let damaged = folder.path().join("damaged.db");
    let mut random = Seeded(0xDA_4A6E);
    let mut found = 0;
    for number in 0..DAMAGES {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len());
        match number % 10 {
            0 => bytes[at / 4096 * 4096..][..4096].fill(0),
            1 => bytes.truncate(at),
            _ => bytes[at] ^= 1 << random.below(8),
        }
        for end in ["-wal", "-shm"] {
            let mut name = damaged.clone().into_os_string();
            name.push(end);
            drop(std::fs::remove_file(name));
        }
        std::fs::write(&damaged, &bytes).expect("written");
        if let Err(error) = read(&damaged, &originals).await {
            found += 1;
            let panicked = matches!(&error, StoreError::Other(source)
                if source.to_string().contains("panic"));
            assert!(!panicked, "damage {number} at {at}: {error:?}");
        }
    }
    // Most bits are of texts for search, of free room, or of rows that were not asked for.
    assert!(found > DAMAGES / 10, "{found} of {DAMAGES} were found");
}

#[tokio::test]
async fn spoilt_contents_are_never_returned() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = Arc::new(SqliteStore::open(&path).await.expect("a store"));
    let stores = (store.clone() as Arc<dyn HistoryStore>, store.clone() as Arc<dyn KnowledgeStore>);
    plimsoll_testkit::conformance::together::spoilt_contents_are_never_returned(
        stores,
        async || {
            let database = rusqlite::Connection::open(&path).expect("a database");
            database
            .execute_batch(
                "UPDATE unified_logs SET content_json = replace(content_json, 'walrus', 'canary');
                 UPDATE cas_contents SET content = CAST(content || x'00' AS BLOB);",
            )
            .expect("spoilt");
        },
    )
    .await;
    assert!(store.mismatches() >= 5, "{}", store.mismatches());
}
