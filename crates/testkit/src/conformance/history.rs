//! Checks of the history port.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Appended, Bill, Bills, ContextCard, Embedding, Gathering, HistoryBatch, LogQuery,
    MessageRecord, ReceiptRecord, SearchQuery,
};

use super::SharedHistory;
use crate::sample::{HOSTILE, card, embedding, message, receipt, session, tenant};

fn batch(messages: Vec<MessageRecord>) -> HistoryBatch {
    HistoryBatch { messages, ..HistoryBatch::default() }
}

fn cards(cards: Vec<ContextCard>) -> HistoryBatch {
    HistoryBatch { cards, ..HistoryBatch::default() }
}

fn receipts(receipts: Vec<ReceiptRecord>) -> HistoryBatch {
    HistoryBatch { receipts, ..HistoryBatch::default() }
}

fn near(angle: f32, limit: usize) -> SearchQuery {
    SearchQuery { text: None, embedding: Some(embedding("m", angle)), limit }
}

/// Makes a card whose vector has this angle.
fn pointed(record: &MessageRecord, angle: f32) -> ContextCard {
    ContextCard { embedding: Some(embedding("m", angle)), ..card("a", record, "about") }
}

/// Appends messages to session `s`.
async fn append_texts(store: &SharedHistory, texts: &[&str]) -> Vec<MessageRecord> {
    let messages: Vec<_> = texts.iter().zip(0..).map(|(text, i)| message("s", i, text)).collect();
    append(store, batch(messages.clone())).await;
    messages
}

async fn read(store: &SharedHistory, name: &str) -> Vec<MessageRecord> {
    store.messages(&tenant("a"), &session(name), 0, 10_000).await.expect("messages")
}

fn asked(text: &str) -> SearchQuery {
    SearchQuery { text: Some(text.to_owned()), embedding: None, limit: 10 }
}

async fn append(store: &SharedHistory, batch: HistoryBatch) -> Appended {
    store.append(&tenant("a"), batch).await.expect("a batch that is in order")
}

async fn count(store: &SharedHistory, name: &str) -> usize {
    read(store, name).await.len()
}

async fn found(
    store: &SharedHistory,
    in_session: Option<&str>,
    query: &SearchQuery,
) -> Vec<String> {
    let in_session = in_session.map(session);
    let hits = store.search(&tenant("a"), in_session.as_ref(), query).await.expect("hits");
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "best first");
    hits.into_iter().map(|hit| hit.item.message.shown()).collect()
}

pub async fn appended_messages_come_back_in_order(store: SharedHistory) {
    let all: Vec<MessageRecord> = (0..20).map(|i| message("s", i, &format!("text {i}"))).collect();
    let appended = append(&store, batch(all[..7].to_vec())).await;
    assert_eq!(appended, Appended { added: 7, known: 0 });
    append(&store, batch(all[7..].to_vec())).await;
    let read = |from, limit| {
        let store = store.clone();
        async move { store.messages(&tenant("a"), &session("s"), from, limit).await.expect("read") }
    };
    assert_eq!(read(0, 100).await, all);
    assert_eq!(read(5, 3).await, all[5..8]);
    assert_eq!(read(0, 0).await, []);
    assert_eq!(read(20, 5).await, []);
    assert_eq!(count(&store, "unknown").await, 0);
}

pub async fn hostile_texts_come_back_as_they_are(store: SharedHistory) {
    let all = append_texts(&store, HOSTILE).await;
    let mut hostile = receipt("s", 0, HOSTILE[0]);
    hostile.trace_id = String::from(HOSTILE[5]);
    hostile.cascade_id = Some(HOSTILE[1].to_owned());
    hostile.anchor_hashes = HOSTILE.iter().map(|text| (*text).to_owned()).collect();
    hostile.receipt = String::from(HOSTILE[9]);
    let mut about = card("a", &all[3], HOSTILE[4]);
    about.keywords = HOSTILE.iter().map(|text| (*text).to_owned()).collect();
    append(&store, receipts(vec![hostile.clone()])).await;
    append(&store, cards(vec![about.clone()])).await;
    let (a, s) = (tenant("a"), session("s"));
    assert_eq!(read(&store, "s").await, all);
    assert_eq!(store.receipts(&a, &s).await.expect("receipts"), [hostile]);
    assert_eq!(store.cards(&a, &s).await.expect("cards"), [about]);
}

pub async fn a_megabyte_comes_back(store: SharedHistory) {
    let text = "ab'%_\0 é".repeat((1 << 20) / 9 + 1);
    append(&store, batch(vec![message("s", 0, &text)])).await;
    assert_eq!(read(&store, "s").await[0].message.shown(), text);
}

pub async fn who_said_it_comes_back(store: SharedHistory) {
    let mut all = vec![message("s", 0, "one"), message("s", 1, "two")];
    all[0].message.id = Some("D1:1".into());
    all[0].message.speaker = Some(HOSTILE[0].into());
    all[0].message.time = Some(MillisSinceEpoch(-1));
    all[1].message.speaker = Some("Zoë \0".into());
    append(&store, batch(all.clone())).await;
    assert_eq!(read(&store, "s").await, all);
}

pub async fn appending_again_changes_nothing(store: SharedHistory) {
    let all = vec![message("s", 0, "one"), message("s", 1, "two")];
    append(&store, batch(all.clone())).await;
    let mut again = all.clone();
    again[0].recorded_at = MillisSinceEpoch(9_999);
    again.push(message("s", 2, "three"));
    assert_eq!(append(&store, batch(again)).await, Appended { added: 1, known: 2 });
    assert_eq!(read(&store, "s").await[..2], all);
    let rows = store.log(&tenant("a"), &LogQuery { limit: 10, ..LogQuery::default() }).await;
    assert_eq!(rows.expect("rows").len(), 3);
}

pub async fn another_content_at_a_position_is_a_conflict(store: SharedHistory) {
    append(&store, batch(vec![message("s", 0, "one")])).await;
    let other = vec![message("t", 0, "fresh"), message("s", 1, "two"), message("s", 0, "other")];
    assert_fails!(store.append(&tenant("a"), batch(other)), Conflict);
    let within = vec![message("t", 0, "fresh"), message("t", 0, "other")];
    assert_fails!(store.append(&tenant("a"), batch(within)), Conflict);
    assert_eq!((count(&store, "s").await, count(&store, "t").await), (1, 0), "all or nothing");
    assert_eq!(store.sessions(&tenant("a"), 10).await.expect("sessions").len(), 1);
    assert_eq!(found(&store, None, &asked("fresh")).await, [""; 0]);
}

pub async fn a_gap_is_refused(store: SharedHistory) {
    append(&store, batch(vec![message("s", 0, "one")])).await;
    for gap in [vec![message("s", 2, "x")], vec![message("t", 1, "x")]] {
        assert_fails!(store.append(&tenant("a"), batch(gap)), Invalid);
    }
    assert_eq!((count(&store, "s").await, count(&store, "t").await), (1, 0));
}

pub async fn a_hash_of_another_content_is_refused(store: SharedHistory) {
    let mut wrong = message("s", 0, "one");
    wrong.hash = message("s", 0, "two").hash;
    assert_fails!(store.append(&tenant("a"), batch(vec![wrong])), Invalid);
    assert_eq!(count(&store, "s").await, 0);
}

pub async fn the_first_receipt_stays(store: SharedHistory) {
    let first = vec![receipt("s", 1, "masking"), receipt("s", 0, "b"), receipt("s", 0, "a")];
    append(&store, receipts(first)).await;
    let mut again = receipt("s", 1, "masking");
    again.tokens_saved = 5;
    let appended = append(&store, receipts(vec![again])).await;
    assert_eq!(appended, Appended { added: 0, known: 1 });
    let kept = store.receipts(&tenant("a"), &session("s")).await.expect("receipts");
    let all = [receipt("s", 0, "a"), receipt("s", 0, "b"), receipt("s", 1, "masking")];
    assert_eq!(kept, all);
}

pub async fn a_later_card_replaces_an_earlier_one(store: SharedHistory) {
    let about = append_texts(&store, &["one", "two"]).await;
    let mut first = card("a", &about[0], "zebra");
    first.embedding = Some(embedding("m", 10.0));
    let second = card("a", &about[1], "second");
    append(&store, cards(vec![first.clone(), second.clone()])).await;
    let mut later = card("a", &about[0], "giraffe");
    later.generated_at = MillisSinceEpoch(first.generated_at.0 + 1);
    let mut earlier = card("a", &about[1], "earlier");
    earlier.generated_at = MillisSinceEpoch(1);
    let appended = append(&store, cards(vec![later.clone(), earlier])).await;
    assert_eq!(appended, Appended { added: 1, known: 1 });
    let kept = store.cards(&tenant("a"), &session("s")).await.expect("cards");
    assert_eq!(kept, [second, later], "the newest message first");
    assert_eq!(found(&store, None, &asked("zebra")).await, [""; 0]);
    assert_eq!(found(&store, None, &asked("giraffe")).await, ["one"]);
    assert_eq!(found(&store, None, &near(10.0, 5)).await, [""; 0], "the later card has no vector");
}

pub async fn messages_are_found_by_a_prefix_of_their_hash(store: SharedHistory) {
    let record = message("s", 0, "one");
    let mut later = message("r", 0, "one");
    later.recorded_at = MillisSinceEpoch(50_000);
    append(&store, batch(vec![record.clone(), later, message("s", 1, "two")])).await;
    let full = record.hash.full();
    for prefix in [&full[..8], &full[..16], &full, &full.to_ascii_uppercase()] {
        let read = store.message_by_hash(&tenant("a"), prefix).await.expect("found");
        assert_eq!(read, record, "{prefix}");
    }
    assert_fails!(store.message_by_hash(&tenant("a"), "0123456789"), NotFound);
    for bad in ["", "0123456", "%%%%%%%%", "________", "zzzzzzzzz", "01234567'", &"0".repeat(65)] {
        assert_fails!(store.message_by_hash(&tenant("a"), bad), Invalid);
    }
}

pub async fn sessions_come_newest_first(store: SharedHistory) {
    let messages = vec![message("old", 0, "one"), message("new", 0, "two"), message("new", 1, "x")];
    let receipts = vec![receipt("receipts", 0, "masking")];
    append(&store, HistoryBatch { messages, receipts, ..HistoryBatch::default() }).await;
    let sessions = store.sessions(&tenant("a"), 10).await.expect("sessions");
    let names: Vec<&str> = sessions.iter().map(|summary| summary.session.as_str()).collect();
    assert_eq!(names, ["receipts", "new", "old"]);
    let new = &sessions[1];
    assert_eq!((new.messages, new.tokens), (2, 15));
    assert_eq!((new.first_at, new.last_at), (MillisSinceEpoch(1_000), MillisSinceEpoch(1_001)));
    assert_eq!(store.sessions(&tenant("a"), 1).await.expect("sessions")[0], sessions[0]);
}

pub async fn words_are_found_and_nothing_else(store: SharedHistory) {
    let texts = [
        "The quick brown fox",
        "brown brown bears in brown caves",
        "src/foo_bar.rs: fn main()",
        "Straße Zoë 日本語の文",
        "nothing of it",
    ];
    append_texts(&store, &texts).await;
    append(&store, batch(vec![message("t", 0, "a fox elsewhere")])).await;
    assert_eq!(found(&store, None, &asked("bears")).await, [texts[1]]);
    assert_eq!(found(&store, None, &asked("QUICK")).await, [texts[0]]);
    assert_eq!(found(&store, None, &asked("foo bar main")).await, [texts[2]]);
    assert_eq!(found(&store, None, &asked("zoë")).await, [texts[3]]);
    assert_eq!(found(&store, None, &asked("本語")).await, [texts[3]]);
    assert_eq!(found(&store, None, &asked("bear")).await, [""; 0]);
    assert_eq!(found(&store, None, &asked("")).await, [""; 0]);
    assert_eq!(found(&store, Some("s"), &asked("fox")).await, [texts[0]]);
    assert_eq!(found(&store, None, &asked("fox")).await.len(), 2);
    assert_eq!(found(&store, None, &asked("quick fox")).await[0], texts[0], "more words first");
    let one = SearchQuery { limit: 1, ..asked("brown") };
    assert_eq!(found(&store, None, &one).await.len(), 1);
    assert_eq!(found(&store, None, &SearchQuery { limit: 0, ..asked("brown") }).await.len(), 0);
}

pub async fn operators_of_a_query_language_mean_nothing(store: SharedHistory) {
    let texts = ["alpha beta", "not near or and", "gamma"];
    append_texts(&store, &texts).await;
    for text in HOSTILE {
        found(&store, None, &asked(text)).await;
    }
    assert_eq!(found(&store, None, &asked("NOT")).await, [texts[1]]);
    assert_eq!(found(&store, None, &asked("al*")).await, [""; 0]);
    assert_eq!(found(&store, None, &asked("%")).await, [""; 0]);
    assert_eq!(found(&store, None, &asked("\"gamma\" -alpha:x")).await.len(), 2);
    let long = "gamma ' \" \0 ".repeat(100_000);
    assert_eq!(found(&store, None, &asked(&long)).await, [texts[2]]);
}

pub async fn vectors_are_found_by_the_model_that_made_them(store: SharedHistory) {
    let messages = append_texts(&store, &["text 0", "text 1", "text 2", "text 3", "text 4"]).await;
    let angles = messages.iter().zip([0.0, 30.0, 60.0, 90.0]);
    append(&store, cards(angles.map(|(record, angle)| pointed(record, angle)).collect())).await;
    let mut other = message("t", 0, "elsewhere");
    other.turn = 3;
    let mut of_other = pointed(&other, 31.0);
    of_other.embedding = Some(embedding("another model", 31.0));
    assert_eq!(found(&store, None, &near(32.0, 2)).await, ["text 1", "text 2"]);
    // The second search finds messages that were appended after the first.
    append(&store, HistoryBatch { cards: vec![of_other], ..batch(vec![other.clone()]) }).await;
    assert_eq!(found(&store, None, &near(32.0, 9)).await.len(), 4);
    let mut later = pointed(&other, 31.0);
    later.generated_at = MillisSinceEpoch(6_000);
    append(&store, cards(vec![later])).await;
    assert_eq!(found(&store, None, &near(32.0, 1)).await, ["elsewhere"]);
    assert_eq!(found(&store, Some("s"), &near(32.0, 1)).await, ["text 1"]);
    let hits = store.search(&tenant("a"), None, &near(31.0, 1)).await.expect("hits");
    assert!((hits[0].score - 1.0).abs() < 1e-3, "the score is the cosine");
    let by = |vector| {
        let embedding = Some(Embedding { model: "m".into(), vector });
        SearchQuery { text: None, embedding, limit: 5 }
    };
    assert_eq!(found(&store, None, &by(vec![1.0])).await, [""; 0], "of another dimension");
    for vector in [vec![], vec![0.0, 0.0], vec![f32::NAN], vec![2.0]] {
        assert_fails!(store.search(&tenant("a"), None, &by(vector)), Invalid);
    }
}

pub async fn words_and_vectors_are_fused(store: SharedHistory) {
    let texts = ["words alone apple", "both apple here", "vector alone"];
    let messages = append_texts(&store, &texts).await;
    append(&store, cards(vec![pointed(&messages[1], 20.0), pointed(&messages[2], 0.0)])).await;
    let query = SearchQuery { embedding: Some(embedding("m", 0.0)), ..asked("apple") };
    let hits = found(&store, None, &query).await;
    assert_eq!((&*hits[0], hits.len()), (texts[1], 3));
}

pub async fn the_log_returns_the_newest_rows(store: SharedHistory) {
    let messages = vec![message("s", 0, "\n first line\nsecond"), message("s", 1, "two")];
    let receipts = vec![receipt("s", 0, "masking")];
    append(&store, HistoryBatch { messages, receipts, ..HistoryBatch::default() }).await;
    append(&store, batch(vec![message("t", 0, "elsewhere")])).await;
    let all = LogQuery { limit: 10, ..LogQuery::default() };
    let log = async |query: LogQuery| store.log(&tenant("a"), &query).await.expect("rows");
    let rows = log(all.clone()).await;
    let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    let selection = "masking: 5 of 10 messages, 2 masked, 100 tokens saved";
    assert_eq!(texts, [" first line", "elsewhere", "two", selection]);
    assert_eq!(rows[0].content_hash.as_ref().map(String::len), Some(16));
    assert_eq!(rows[0].role.as_deref(), Some("user"));
    let metadata = rows[3].metadata.as_ref().expect("metadata");
    assert!(metadata.contains("\"tokens_saved\":100"), "{metadata}");
    assert_eq!(log(LogQuery { limit: 2, ..all.clone() }).await, rows[2..]);
    let of_session = LogQuery { session: Some(session("t")), ..all.clone() };
    assert_eq!(log(of_session).await, rows[1..2]);
    let of_type = LogQuery { node_type: Some("context_selection".into()), ..all.clone() };
    assert_eq!(log(of_type).await, rows[3..]);
    let since = LogQuery { since: Some(MillisSinceEpoch(1_001)), ..all.clone() };
    assert_eq!(log(since).await, rows[2..]);
    let none = LogQuery { node_type: Some("'%_".into()), ..all };
    assert_eq!(log(none).await, []);
}

pub async fn efficiency_is_counted_by_cascade(store: SharedHistory) {
    let mut all: Vec<_> = (0..4).map(|turn| receipt("s", turn, "masking")).collect();
    all[0].cascade_id = Some("b".into());
    all[1].cascade_id = Some("a".into());
    all[2].cascade_id = Some("a".into());
    all[2].tokens_saved = -40;
    append(&store, receipts(all)).await;
    let rows = store.efficiency(&tenant("a"), Gathering::Cascade).await.expect("rows");
    let ids: Vec<_> = rows.iter().map(|row| row.cascade_id.as_deref()).collect();
    assert_eq!(ids, [None, Some("a"), Some("b")]);
    assert_eq!((rows[1].selections, rows[1].tokens_saved), (2, 60));
    let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 1e-9, "{value}");
    near(rows[1].avg_full_size, 11.5);
    near(rows[1].avg_context_size, 5.0);
    near(rows[1].avg_tokens_saved, 30.0);
}

pub async fn bills_are_summed_by_cascade_and_by_session(store: SharedHistory) {
    let bill = |billed, without, estimate| Some(Bill { billed, without, estimate });
    let mut all: Vec<_> = (0..3).map(|turn| receipt("s", turn, "masking")).collect();
    all.push(receipt("r", 0, "masking"));
    all[0].bill = bill(0.25, 0.75, false);
    all[1].cascade_id = Some("c".into());
    all[1].bill = bill(0.5, 0.25, true);
    append(&store, receipts(all.clone())).await;
    let kept = store.receipts(&tenant("a"), &session("s")).await.expect("receipts");
    assert_eq!(kept, all[..3], "a receipt keeps its bill");
    let rows = async |by| store.efficiency(&tenant("a"), by).await.expect("rows");
    let bills = |requests_billed, dollars_billed, dollars_without, bills_estimated| Bills {
        requests_billed,
        dollars_billed,
        dollars_without,
        bills_estimated,
    };
    let by_cascade = rows(Gathering::Cascade).await;
    let found: Vec<_> = by_cascade.iter().map(|row| (row.selections, row.bills)).collect();
    assert_eq!(found, [(3, bills(1, 0.25, 0.75, 0)), (1, bills(1, 0.5, 0.25, 1))]);
    assert_eq!(by_cascade[1].bills.saved(), Some(-0.25));
    let by_session = rows(Gathering::Session).await;
    let found: Vec<_> =
        by_session.iter().map(|row| (row.session.clone(), row.selections, row.bills)).collect();
    let expected = [
        (Some(session("r")), 1, Bills::default()),
        (Some(session("s")), 3, bills(2, 0.75, 1.0, 1)),
    ];
    assert_eq!(found, expected);
    assert!(by_session.iter().all(|row| row.cascade_id.is_none()));
    assert_eq!(by_session[0].bills.saved(), None, "nothing was reported");
}

pub async fn everything_verifies(store: SharedHistory) {
    append(&store, batch(vec![message("s", 0, "one"), message("t", 0, "two")])).await;
    let rebuilt = store.verify(&tenant("a")).await.expect("verified");
    assert_eq!((rebuilt.messages, rebuilt.mismatches), (2, 0));
}

pub async fn tenants_never_meet(store: SharedHistory) {
    let (a, b) = (tenant("a"), tenant("b"));
    let record = message("s", 0, "canary");
    let receipts = vec![receipt("s", 0, "masking")];
    let cards = vec![pointed(&record, 0.0)];
    append(&store, HistoryBatch { messages: vec![record.clone()], receipts, cards, branch: None })
        .await;
    let s = session("s");
    assert_eq!(store.messages(&b, &s, 0, 9).await.expect("read"), []);
    assert_fails!(store.message_by_hash(&b, &record.hash.full()), NotFound);
    assert_eq!(store.sessions(&b, 9).await.expect("read"), []);
    assert_eq!(store.receipts(&b, &s).await.expect("read"), []);
    assert_eq!(store.cards(&b, &s).await.expect("read"), []);
    let query = SearchQuery { embedding: Some(embedding("m", 0.0)), ..asked("canary about") };
    assert_eq!(store.search(&b, None, &query).await.expect("read"), []);
    let all = LogQuery { limit: 9, ..LogQuery::default() };
    assert_eq!(store.log(&b, &all).await.expect("read"), []);
    assert_eq!(store.efficiency(&b, Gathering::Session).await.expect("read"), []);
    assert_eq!(store.verify(&b).await.expect("read").messages, 0);
    // The same session and position with other content is no conflict: it is another tenant's.
    let own = batch(vec![message("s", 0, "own")]);
    assert_eq!(store.append(&b, own).await.expect("own").added, 1);
    assert_eq!(store.messages(&a, &s, 0, 9).await.expect("read"), [record]);
}

pub async fn appends_at_once_are_all_kept(store: SharedHistory) {
    let sessions: Vec<String> = (0..40).map(|i| format!("s{i}")).collect();
    let calls: Vec<_> = sessions
        .iter()
        .map(|name| {
            let (store, name) = (store.clone(), name.clone());
            tokio::spawn(async move {
                for position in 0..5 {
                    let text = format!("{name} {position}");
                    let good = batch(vec![message(&name, position, &text)]);
                    store.append(&tenant("a"), good).await.expect("appended");
                    // One that is refused must not take others with it.
                    let bad = batch(vec![message(&name, position + 9, "gap")]);
                    store.append(&tenant("a"), bad).await.expect_err("a gap");
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("the task ends");
    }
    for name in &sessions {
        assert_eq!(count(&store, name).await, 5);
    }
}
