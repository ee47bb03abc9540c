//! Checks of sessions that begin with the messages of another.

use plimsoll_engine::{
    Appended, Bill, Branch, ContextCard, HistoryBatch, LogQuery, MessageRecord, ReceiptRecord,
    SearchQuery,
};

use super::SharedHistory;
use crate::sample::{card, embedding, message, receipt, session, tenant};

const TEXTS: [&str; 4] = ["apple", "pear", "cherry", "plum"];

/// Says that `name` has so many messages of `from`, and the receipts of policy `p` below turn `turns`.
fn branch(name: &str, from: &str, messages: u32, turns: u32) -> HistoryBatch {
    let strategies = vec!["p".to_owned()];
    let branch =
        Branch { session: session(name), from: session(from), messages, turns, strategies };
    HistoryBatch { branch: Some(Box::new(branch)), ..HistoryBatch::default() }
}

async fn append(store: &SharedHistory, batch: HistoryBatch) -> Appended {
    store.append(&tenant("a"), batch).await.expect("a batch that is in order")
}

/// Appends four messages to session `s`, with receipts of two policies and two cards.
async fn begin(store: &SharedHistory) {
    let messages: Vec<_> = TEXTS.iter().zip(0..).map(|(text, i)| message("s", i, text)).collect();
    let of = |(at, angle): (usize, f32)| ContextCard {
        embedding: Some(embedding("m", angle)),
        ..card("a", &messages[at], &format!("tree of {}", TEXTS[at]))
    };
    let cards = [(1, 0.0), (3, 10.0)].map(of).to_vec();
    let bill = Some(Bill { billed: 0.5, without: 1.0, estimate: false });
    let receipts = [(0, "p"), (1, "p"), (0, "tried")]
        .map(|(turn, strategy)| {
            let mut receipt = receipt("s", turn, strategy);
            (receipt.bill, receipt.full_history_size) = (bill, turn + 1);
            receipt
        })
        .to_vec();
    append(store, HistoryBatch { branch: None, messages, receipts, cards }).await;
}

/// Begins session `name` with a message behind those that it shares.
async fn leave(store: &SharedHistory, from: &str, name: &str, shared: u32, turns: u32) {
    let messages = vec![message(name, shared, name)];
    let mut own = receipt(name, turns, "p");
    own.full_history_size = shared + 1;
    let receipts = vec![own];
    let batch = branch(name, from, shared, turns);
    append(store, HistoryBatch { messages, receipts, ..batch }).await;
}

async fn texts(store: &SharedHistory, name: &str) -> Vec<String> {
    let read = store.messages(&tenant("a"), &session(name), 0, 100).await.expect("messages");
    let is_in_place = |(at, record): (usize, &MessageRecord)| {
        record.session == session(name) && record.position as usize == at
    };
    assert!(read.iter().enumerate().all(is_in_place), "{read:?}");
    read.iter().map(|record| record.message.shown()).collect()
}

async fn turns(store: &SharedHistory, name: &str) -> Vec<(u32, String)> {
    let read = store.receipts(&tenant("a"), &session(name)).await.expect("receipts");
    assert!(read.iter().all(|receipt| receipt.session == session(name)), "{read:?}");
    read.into_iter().map(|receipt| (receipt.turn, receipt.strategy)).collect()
}

async fn carded(store: &SharedHistory, name: &str) -> Vec<String> {
    let read = store.cards(&tenant("a"), &session(name)).await.expect("cards");
    assert!(read.iter().all(|card| card.session == session(name)), "{read:?}");
    read.into_iter().map(|card| card.summary).collect()
}

async fn found(store: &SharedHistory, name: &str, query: &SearchQuery) -> Vec<String> {
    let hits = store.search(&tenant("a"), Some(&session(name)), query).await.expect("hits");
    assert!(hits.iter().all(|hit| hit.item.session == session(name)), "{hits:?}");
    hits.into_iter().map(|hit| hit.item.message.shown()).collect()
}

fn asked(text: &str) -> SearchQuery {
    SearchQuery { text: Some(text.to_owned()), embedding: None, limit: 10 }
}

fn of_p(turns: std::ops::Range<u32>) -> Vec<(u32, String)> {
    turns.map(|turn| (turn, "p".to_owned())).collect()
}

pub async fn a_branch_has_what_it_shares(store: SharedHistory) {
    begin(&store).await;
    leave(&store, "s", "b", 2, 1).await;
    let (a, b) = (tenant("a"), session("b"));
    assert_eq!(texts(&store, "b").await, ["apple", "pear", "b"]);
    let summary = store.session(&a, &b).await.expect("read").expect("a session");
    assert_eq!((summary.messages, summary.tokens), (3, 7 + 8 + 9));
    let some = store.messages(&a, &b, 1, 1).await.expect("messages");
    assert_eq!(some, [message("b", 1, "pear")]);
    // The session that made a request has its cost.
    assert_eq!(turns(&store, "b").await, of_p(0..2));
    let receipts = store.receipts_of(&a, &b, "p").await.expect("receipts");
    let first = |receipt: &ReceiptRecord| (receipt.turn, receipt.bill, receipt.tokens_saved);
    assert_eq!(receipts.iter().map(first).collect::<Vec<_>>(), [(0, None, 0), (1, None, 100)]);
    assert_eq!(carded(&store, "b").await, ["tree of pear"]);
    assert_eq!(found(&store, "b", &asked("pear")).await, ["pear"]);
    assert_eq!(found(&store, "b", &asked("tree")).await, ["pear"]);
    assert!(found(&store, "b", &asked("plum")).await.is_empty());
    let near = SearchQuery { text: None, embedding: Some(embedding("m", 10.0)), limit: 10 };
    assert_eq!(found(&store, "b", &near).await, ["pear"]);
    let query = LogQuery { session: Some(b), limit: 10, ..LogQuery::default() };
    let log = store.log(&a, &query).await.expect("rows");
    assert_eq!(log.len(), 3 + 2, "{log:?}");
    assert!(log.iter().all(|row| row.session == session("b")), "{log:?}");
    // The other has what it had.
    assert_eq!(texts(&store, "s").await, TEXTS);
    assert_eq!(carded(&store, "s").await, ["tree of plum", "tree of pear"]);
}

pub async fn a_branch_goes_on_like_any_session(store: SharedHistory) {
    begin(&store).await;
    leave(&store, "s", "b", 2, 1).await;
    let messages = vec![message("b", 1, "pear"), message("b", 2, "b"), message("b", 3, "fig")];
    let again = HistoryBatch { messages, ..branch("b", "s", 2, 1) };
    assert_eq!(append(&store, again).await, Appended { added: 1, known: 2 });
    let other = vec![message("b", 1, "fig")];
    let other = HistoryBatch { messages: other, ..HistoryBatch::default() };
    assert_fails!(store.append(&tenant("a"), other), Conflict);
    let gap = HistoryBatch { messages: vec![message("b", 5, "fig")], ..HistoryBatch::default() };
    assert_fails!(store.append(&tenant("a"), gap), Invalid);
    assert_eq!(texts(&store, "b").await, ["apple", "pear", "b", "fig"]);
    // Another session of the same name, such as that of another gateway, is not taken for it.
    leave(&store, "s", "y", 1, 0).await;
    for shared in [2, 3] {
        let messages = vec![message("y", shared, "fig")];
        let batch = HistoryBatch { messages, ..branch("y", "s", shared, 1) };
        assert_fails!(store.append(&tenant("a"), batch), Conflict);
    }
    // A session that has less cannot be shared, and nothing of the batch is kept.
    assert_fails!(store.append(&tenant("a"), branch("x", "s", 5, 1)), Conflict);
    assert_fails!(store.append(&tenant("a"), branch("x", "unknown", 1, 0)), Conflict);
    assert_fails!(store.append(&tenant("a"), branch("s", "s", 1, 0)), Invalid);
    assert_eq!(store.session(&tenant("a"), &session("x")).await.expect("read"), None);
}

pub async fn a_branch_of_a_branch_has_all_of_its_past(store: SharedHistory) {
    begin(&store).await;
    leave(&store, "s", "b", 2, 1).await;
    leave(&store, "b", "c", 3, 2).await;
    leave(&store, "c", "d", 1, 1).await;
    assert_eq!(texts(&store, "c").await, ["apple", "pear", "b", "c"]);
    assert_eq!(turns(&store, "c").await, of_p(0..3));
    assert_eq!(carded(&store, "c").await, ["tree of pear"]);
    assert_eq!(found(&store, "c", &asked("pear")).await, ["pear"]);
    assert_eq!(texts(&store, "d").await, ["apple", "d"]);
    assert_eq!(turns(&store, "d").await, of_p(0..2));
    assert!(carded(&store, "d").await.is_empty());
}

pub async fn branches_keep_what_they_share_of_a_forgotten_session(store: SharedHistory) {
    begin(&store).await;
    for (name, shared, turns) in [("b", 2, 1), ("c", 3, 2), ("d", 1, 0)] {
        leave(&store, "s", name, shared, turns).await;
    }
    leave(&store, "c", "e", 4, 3).await;
    let a = tenant("a");
    store.forget_session(&a, &session("s")).await.expect("forgotten");
    assert!(texts(&store, "s").await.is_empty());
    assert!(turns(&store, "s").await.is_empty());
    assert!(carded(&store, "s").await.is_empty());
    let check = async |names: &[&str]| {
        for name in names {
            let (own, shared, requests): (&[&str], _, _) = match *name {
                "b" => (&["b"], 2, 2),
                "c" => (&["c"], 3, 3),
                "d" => (&["d"], 1, 1),
                _ => (&["c", "e"], 3, 4),
            };
            let all: Vec<&str> = TEXTS[..shared].iter().chain(own).copied().collect();
            assert_eq!(texts(&store, name).await, all, "{name}");
            assert_eq!(turns(&store, name).await, of_p(0..requests), "{name}");
            let cards: &[&str] = if shared > 1 { &["tree of pear"] } else { &[] };
            assert_eq!(carded(&store, name).await, cards, "{name}");
            assert_eq!(found(&store, name, &asked("apple")).await, ["apple"], "{name}");
            let summary = store.session(&a, &session(name)).await.expect("read");
            assert_eq!(summary.expect("a session").messages as usize, all.len(), "{name}");
        }
    };
    check(&["b", "c", "d", "e"]).await;
    assert_eq!(found(&store, "c", &asked("plum")).await, [""; 0]);
    // The name may begin again, and has nothing to do with its former branches.
    begin(&store).await;
    check(&["b", "c", "d", "e"]).await;
    store.forget_session(&a, &session("c")).await.expect("forgotten");
    check(&["b", "d", "e"]).await;
    store.forget_session(&a, &session("e")).await.expect("forgotten");
    check(&["b", "d"]).await;
    store.forget_session(&a, &session("b")).await.expect("forgotten");
    check(&["d"]).await;
    store.forget_session(&a, &session("d")).await.expect("forgotten");
    assert_eq!(texts(&store, "s").await, TEXTS);
    let rebuilt = store.verify(&a).await.expect("verified");
    assert_eq!((rebuilt.messages, rebuilt.mismatches), (4, 0));
}
