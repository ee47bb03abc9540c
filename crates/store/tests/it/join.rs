//! The specification's join of messages and cards, in each backend's own SQL.

use plimsoll_engine::{HistoryBatch, HistoryStore};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{card, message, tenant};

/// The join query of `auto-context.md`, Relationship to `unified_logs`, in the order of the messages.
macro_rules! join {
    () => {
        "SELECT ul.content_hash, ul.role, cc.summary
         FROM unified_logs ul
         LEFT JOIN context_cards cc
             ON ul.session_id = cc.session_id
             AND ul.content_hash = cc.content_hash
         WHERE ul.session_id = 's' AND ul.node_type = 'message'
         ORDER BY ul.number"
    };
}
pub(crate) use join;

/// Fills session `s` with a message that has a card and one that has none, and returns the rows of the join.
pub(crate) async fn fill(store: &dyn HistoryStore) -> [[String; 3]; 2] {
    let messages = vec![message("s", 0, "walrus"), message("s", 1, "penguin")];
    let about = card("a", &messages[0], "animal");
    let rows = [("animal", &messages[0]), ("", &messages[1])].map(|(summary, record)| {
        let role = record.message.role.as_str();
        [record.hash.short(), role.to_owned(), summary.to_owned()]
    });
    assert_eq!(rows[0][0], about.content_hash);
    let batch = HistoryBatch { messages, cards: vec![about], ..HistoryBatch::default() };
    store.append(&tenant("a"), batch).await.expect("appended");
    rows
}

#[tokio::test]
async fn messages_and_cards_are_joined_by_session_and_hash() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let wanted = fill(&SqliteStore::open(&path).await.expect("a store")).await;
    let database = rusqlite::Connection::open(&path).expect("a database");
    let mut query = database.prepare(join!()).expect("a query");
    let rows = query.query_map([], |row| {
        let summary: Option<String> = row.get(2)?;
        Ok([row.get(0)?, row.get(1)?, summary.unwrap_or_default()])
    });
    let rows: Vec<[String; 3]> = rows.expect("rows").map(|row| row.expect("a row")).collect();
    assert_eq!(rows, wanted);
}
