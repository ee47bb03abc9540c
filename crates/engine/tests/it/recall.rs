//! Recall over a store: one tenant, one session or all, always as the store is now.

use std::sync::Arc;

use plimsoll_core::recall::RecallSettings;
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, Tokenizer};
use plimsoll_engine::{HistoryBatch, HistoryStore, MessageRecord, Recall};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{session, tenant};
use proptest::prelude::*;

fn record(name: &str, position: u32, text: &str, recorded_at: i64) -> MessageRecord {
    let mut message = Message::text(Role::User, text);
    message.id = Some(format!("D{position}").into());
    message.speaker = Some(["Ann", "Ben"][position as usize % 2].into());
    message.time = Some(MillisSinceEpoch(1_683_554_160_000));
    MessageRecord {
        session: session(name),
        position,
        hash: ContentHash::of(&message),
        message,
        tokens: 1,
        turn: 0,
        recorded_at: MillisSinceEpoch(recorded_at),
    }
}

async fn append(store: &MemoryStore, owner: &str, messages: Vec<MessageRecord>) {
    let batch = HistoryBatch { messages, ..HistoryBatch::default() };
    store.append(&tenant(owner), batch).await.expect("it is in order");
}

fn recall() -> Recall {
    Recall::new(RecallSettings::default(), None)
}

/// Ranks for tenant `a`.
async fn ranked(
    recall: &Recall,
    store: &MemoryStore,
    within: Option<&str>,
    question: &str,
) -> Vec<(String, u32, f32)> {
    let within = within.map(session);
    let scope = recall.scope(store, &tenant("a"), within.as_ref()).await.expect("messages");
    let found = scope.rank(question).into_iter();
    found.map(|(r, recalled)| (r.session.to_string(), r.position, recalled.score)).collect()
}

#[tokio::test]
async fn what_was_appended_since_is_found() {
    let store = MemoryStore::new();
    let recall = recall();
    assert_eq!(ranked(&recall, &store, None, "harbour").await, []);
    append(&store, "a", vec![record("s", 0, "the harbour", 1)]).await;
    assert_eq!(ranked(&recall, &store, None, "harbour").await.len(), 1);
    append(&store, "a", vec![record("s", 1, "that harbour", 2), record("t", 0, "a harbour", 2)])
        .await;
    assert_eq!(ranked(&recall, &store, None, "harbour").await.len(), 3);
    assert_eq!(ranked(&recall, &store, Some("t"), "harbour").await.len(), 1);
    assert_eq!(ranked(&recall, &store, Some("u"), "harbour").await, []);
}

#[tokio::test]
async fn a_long_session_is_read_to_its_end() {
    let store = MemoryStore::new();
    let recall = recall();
    for begin in [0, 4000] {
        let all = (begin..begin + 4000).map(|n| record("s", n, &format!("word{n}"), 1)).collect();
        append(&store, "a", all).await;
        for n in [begin + 3999, begin + 2000, begin + 1999, begin] {
            let best = &ranked(&recall, &store, Some("s"), &format!("word{n}")).await[0];
            assert_eq!(best.1, n);
        }
    }
}

#[tokio::test]
async fn what_is_returned_stands_behind_its_header_and_fits() {
    let store = MemoryStore::new();
    append(&store, "a", vec![record("s", 0, "the harbour\nat night", 1)]).await;
    let recall = recall();
    let scope = recall.scope(&store, &tenant("a"), None).await.expect("messages");
    let found = scope.recall("harbour", 100, Tokenizer::Estimate);
    let [hit] = &found.hits[..] else { panic!("one hit") };
    assert_eq!(hit.text, "[D0 | 2023-05-08T13:56:00] Ann: the harbour\nat night\n");
    assert_eq!(found.tokens, u64::from(Tokenizer::Estimate.count(&hit.text)));
    let none = scope.recall("harbour", found.tokens - 1, Tokenizer::Estimate);
    assert_eq!((none.hits.len(), none.tokens), (0, 0));
    drop(scope);
    append(&store, "a", vec![record("t", 0, "another", 1)]).await;
    let scope = recall.scope(&store, &tenant("a"), None).await.expect("messages");
    let found = scope.recall("harbour", 100, Tokenizer::Estimate);
    assert!(found.hits[0].text.starts_with("[s/D0 | "), "ids repeat between sessions");
}

fn texts() -> impl Strategy<Value = Vec<(bool, String)>> {
    prop::collection::vec((any::<bool>(), "(ship|sea|cake|Ann|[a-d]{1,2}| ){0,8}"), 0..25)
}

fn records(texts: &[(bool, String)]) -> Vec<MessageRecord> {
    let mut next = [0, 0];
    let all = texts.iter().zip(1..).map(|((second, text), at)| {
        let position = &mut next[usize::from(*second)];
        *position += 1;
        record(if *second { "t" } else { "s" }, *position - 1, text, at)
    });
    all.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn other_tenants_change_nothing(own in texts(), others in texts(), question in "(ship|sea|Ann|a|b| ){1,5}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (alone, shared) = runtime.block_on(async {
            let (alone, shared) = (MemoryStore::new(), MemoryStore::new());
            append(&alone, "a", records(&own)).await;
            append(&shared, "b", records(&others)).await;
            append(&shared, "a", records(&own)).await;
            let recalls = (recall(), recall());
            recalls.1.scope(&shared, &tenant("b"), None).await.expect("messages");
            (
                ranked(&recalls.0, &alone, None, &question).await,
                ranked(&recalls.1, &shared, None, &question).await,
            )
        });
        prop_assert_eq!(alone, shared);
    }

    #[test]
    fn an_index_that_followed_is_the_same_as_a_new_one(all in texts(), cut in 0..25_usize, question in "(ship|sea|Ann|a|b| ){1,5}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (followed, new) = runtime.block_on(async {
            let store = Arc::new(MemoryStore::new());
            let mut records = records(&all);
            let later = records.split_off(cut.min(records.len()));
            let followed = recall();
            append(&store, "a", records).await;
            ranked(&followed, &store, None, &question).await;
            append(&store, "a", later).await;
            (
                ranked(&followed, &store, None, &question).await,
                ranked(&recall(), &store, None, &question).await,
            )
        });
        prop_assert_eq!(followed, new);
    }

    #[test]
    fn the_budget_is_a_ceiling(all in texts(), budget in 0..200_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let store = MemoryStore::new();
            append(&store, "a", records(&all)).await;
            let recall = recall();
            let scope = recall.scope(&store, &tenant("a"), None).await.expect("messages");
            let found = scope.recall("ship cake sea", budget, Tokenizer::Estimate);
            let tokens: u64 = found.hits.iter().map(|hit| u64::from(Tokenizer::Estimate.count(&hit.text))).sum();
            assert!(tokens == found.tokens && tokens <= budget);
        });
    }
}
