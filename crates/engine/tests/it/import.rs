//! Importing: each message once, in its place.

use plimsoll_core::{Message, MillisSinceEpoch, Role, Tokenizer};
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{HistoryStore, Imported, MessageRecord, SessionId, import};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{session, tenant};

fn said(id: Option<&str>, text: &str) -> Message {
    Message { id: id.map(Into::into), ..Message::text(Role::User, text) }
}

async fn put(store: &MemoryStore, messages: Vec<(SessionId, Message)>) -> Imported {
    let (tenant, settings) = (tenant("a"), CardSettings::default());
    let observer =
        MessageObserver { history: store, knowledge: store, tenant: &tenant, settings: &settings };
    let now = MillisSinceEpoch(9);
    import(&observer, messages, Tokenizer::Estimate, now).await.expect("it is in order")
}

async fn kept(store: &MemoryStore, name: &str) -> Vec<MessageRecord> {
    store.messages(&tenant("a"), &session(name), 0, 10_000).await.expect("messages")
}

fn in_session(name: &str, messages: &[Message]) -> Vec<(SessionId, Message)> {
    messages.iter().map(|message| (session(name), message.clone())).collect()
}

#[tokio::test]
async fn what_is_imported_again_adds_only_what_is_new() {
    let store = MemoryStore::new();
    let mut lines =
        vec![said(Some("1"), "one"), said(None, "two"), said(None, "two"), said(Some("4"), "two")];
    let first = put(&store, in_session("s", &lines)).await;
    assert_eq!((first.added, first.known), (4, 0));
    let again = put(&store, in_session("s", &lines)).await;
    assert_eq!((again.added, again.known), (0, 4));
    lines.extend([said(Some("5"), "five"), said(None, "two")]);
    let grown = put(&store, in_session("s", &lines)).await;
    assert_eq!((grown.added, grown.known), (2, 4));
    let texts: Vec<String> = kept(&store, "s").await.iter().map(|r| r.message.shown()).collect();
    assert_eq!(texts, ["one", "two", "two", "two", "five", "two"]);
}

#[tokio::test]
async fn sessions_may_alternate_and_share_ids() {
    let store = MemoryStore::new();
    let lines: Vec<_> = (0..1200)
        .map(|n| (session(["s", "t"][n % 2]), said(Some(&(n / 2).to_string()), "hm")))
        .collect();
    assert_eq!(put(&store, lines).await.added, 1200);
    for name in ["s", "t"] {
        let records = kept(&store, name).await;
        assert_eq!(records.len(), 600);
        assert!((0..).zip(&records).all(|(n, record)| record.name() == n.to_string()));
    }
}

#[tokio::test]
async fn what_changed_under_its_id_is_told_and_left_out() {
    let store = MemoryStore::new();
    put(&store, in_session("s", &[said(Some("1"), "one")])).await;
    let lines = [said(Some("1"), "won"), said(Some("2"), "two")];
    let imported = put(&store, in_session("s", &lines)).await;
    assert_eq!(imported, Imported { added: 1, known: 0, differing: vec![0] });
    assert_eq!(kept(&store, "s").await[0].message.shown(), "one");
}

#[tokio::test]
async fn turns_and_tokens_go_on() {
    let store = MemoryStore::new();
    let answer = |text: &str| Message::text(Role::Assistant, text);
    put(&store, in_session("s", &[said(None, "a question"), answer("a")])).await;
    put(&store, in_session("s", &[said(None, "another"), answer("b")])).await;
    let records = kept(&store, "s").await;
    assert_eq!(records.iter().map(|record| record.turn).collect::<Vec<_>>(), [0, 1, 1, 2]);
    assert_eq!(records[0].tokens, Tokenizer::Estimate.count_message(&records[0].message));
}
