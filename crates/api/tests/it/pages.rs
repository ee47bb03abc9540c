//! Lists page by page, without a gap and without an entry twice.

use serde_json::Value;

use crate::Asking;

/// Reads all pages of a list and returns the keys of its entries.
async fn all(asking: &Asking, operation: &str, path: &str, key: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = asking.ask(operation, &format!("{path}?limit=2{cursor}"), "").await;
        let items = page["items"].as_array().expect("a page");
        assert!(items.len() <= 2, "{page}");
        keys.extend(items.iter().map(|one| one[key].to_string()));
        assert!(keys.len() < 100, "the pages of {path} do not end");
        match &page["next"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            next => {
                assert!(next.is_null(), "{next}");
                return keys;
            }
        }
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let asking = Asking::start().await;
    for at in 0..5 {
        let body = format!("{{\"text\": \"Fact number {at} is known.\"}}");
        asking.ask("addMemory", "/memory", &body).await;
    }
    for (operation, path, key, count) in [
        ("listSessions", "/sessions", "id", 4),
        ("listMessages", "/sessions/agent/messages", "position", 27),
        ("listReceipts", "/sessions/agent/receipts", "turn", 3),
        ("listTurns", "/sessions/agent/turns", "turn", 13),
        ("getTurn", "/sessions/agent/turns/12", "position", 26),
        ("listMemory", "/memory", "id", 5),
        ("getMetrics", "/metrics", "session", 1),
    ] {
        let mut keys = all(&asking, operation, path, key).await;
        assert_eq!(keys.len(), count, "{path}");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "{path} shows an entry twice");
    }
}
