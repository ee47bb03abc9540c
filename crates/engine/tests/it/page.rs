//! A page that changed is told by what changed.

use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use plimsoll_engine::page::{artefact_of, changed_since};
use plimsoll_engine::{Artefact, KnowledgeStore as _};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{session, tenant};

fn issue(number: u32, state: &str, at: i64) -> Artefact {
    let text = serde_json::json!({
        "id": 900 + number, "number": number, "title": "It fails", "state": state, "comments": 0,
        "html_url": format!("https://github.com/o/r/issues/{number}"), "node_id": "n".repeat(300),
    });
    let (tenant, session) = (tenant("t"), session("s"));
    let now = MillisSinceEpoch(at);
    artefact_of(&tenant, Some(&session), &text.to_string(), Tokenizer::Estimate, now)
}

#[tokio::test]
async fn a_known_page_that_changed_has_a_delta() {
    let store = MemoryStore::default();
    let now = MillisSinceEpoch(9);
    let (first, second) = (issue(1, "open", 1), issue(1, "closed", 2));
    assert_eq!(first.reference.kind.0, "github_issue");
    assert!(first.compressed.as_ref().is_some_and(|view| view.contains("\"number\":1")));
    let changed = async |artefact: &Artefact| {
        changed_since(&store, &tenant("t"), artefact, now).await.expect("an answer")
    };
    assert_eq!(changed(&first).await, None, "nobody knows it");
    for known in [&first, &issue(2, "open", 3)] {
        store.put_artefact(known).await.expect("kept");
    }
    assert_eq!(changed(&first).await, None, "it is as it was");
    let (before, delta) = changed(&second).await.expect("it changed");
    assert_eq!(before, first.reference);
    assert_eq!(
        delta.to_string(),
        "0 added, 0 removed, 1 changed, 6 as before\n~ state: \"open\" -> \"closed\""
    );
}
