//! The results of one tenant never depend on another.

use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Gathering, HistoryBatch, HistoryStore, JobId, JobOutcome, KnowledgeStore, LogQuery, MemoryId,
    MemoryQuery, Quota, RefQuery, Scope, SearchQuery,
};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{
    answer, artefact, card, embedding, job, memory, message, receipt, session, tenant, tool_schema,
};
use proptest::prelude::*;

const WORDS: [&str; 6] = ["walrus", "penguin", "walrus penguin", "seal", "the the seal", "orca"];

/// An operation: whose, which, and two numbers to vary it by.
pub(crate) type Operation = (bool, u8, u8, u8);

/// Does one operation and returns all that the caller sees of it.
pub(crate) async fn act(
    store: &(impl HistoryStore + KnowledgeStore),
    who: &str,
    which: u8,
    x: u8,
    y: u8,
) -> String {
    let me = tenant(who);
    let of = if x.is_multiple_of(2) { "s" } else { "t" };
    let text = WORDS[usize::from(y) % WORDS.len()];
    let now = MillisSinceEpoch(1_000 + i64::from(x) * 10);
    let angle = f32::from(y) * 5.0;
    let fused = SearchQuery {
        text: (!y.is_multiple_of(3)).then(|| text.to_owned()),
        embedding: (y % 3 != 1).then(|| embedding("m", angle)),
        limit: 3,
    };
    match which {
        0 => {
            let at = store.messages(&me, &session(of), 0, 999).await.expect("messages").len();
            let record = message(of, at as u32, &format!("{text} {at}"));
            let mut about = card(who, &record, text);
            about.embedding = Some(embedding("m", angle));
            let batch = HistoryBatch {
                branch: None,
                messages: vec![record],
                receipts: vec![receipt(of, at as u32, "masking")],
                cards: vec![about],
            };
            format!("{:?}", store.append(&me, batch).await)
        }
        1 => {
            let mut record = memory(who, &format!("m{}", x % 5), text);
            record.embedding = Some(embedding("m", angle));
            record.scope.session = Some(session(of));
            record.updated_at = now;
            format!("{:?}", store.put_memory(&record).await)
        }
        2 => {
            let mut page = artefact(who, "page", text);
            page.session = Some(session(of));
            page.ttl_expires_at = Some(now);
            format!("{:?}", store.put_artefact(&page).await)
        }
        3 => format!("{:?}", store.queue_job(&me, &job(text)).await),
        4 => {
            let quota = Quota { session: Some(20), ..Quota::default() };
            let lease = store.lease_job(&me, "w", now, Duration::from_millis(50), &quota).await;
            format!("{lease:?}")
        }
        5 => {
            let done = JobOutcome::Done { result: String::new(), token_cost: u64::from(y) };
            format!("{:?}", store.finish_job(&me, JobId(i64::from(x % 4)), "w", now, done).await)
        }
        6 => {
            let mut kept = answer(who, text);
            kept.query_embedding = Some(embedding("m", angle));
            format!("{:?}", store.put_answer(&kept).await)
        }
        7 => format!("{:?}", store.put_tool_schema(&tool_schema(who, text, of)).await),
        8 => {
            let scope = Scope { session: Some(session(of)), ..Scope::default() };
            format!("{:?}", store.forget(&me, &scope).await)
        }
        9 => format!("{:?}", store.collect_artefacts(&me, now).await),
        10 => format!("{:?}", store.search(&me, None, &fused).await),
        11 => {
            let query = MemoryQuery { search: fused, ..MemoryQuery::default() };
            format!("{:?}", store.memories(&me, &query).await)
        }
        12 => format!("{:?}", store.answer(&me, text, now).await),
        13 => {
            let asked = embedding("m", angle);
            format!("{:?}", store.similar_answers(&me, "signature", &asked, now, 5).await)
        }
        14 => {
            let digest = artefact(who, "page", text).reference.digest;
            format!("{:?}", store.artefact(&me, &digest, now).await)
        }
        _ => everything(store, who).await,
    }
}

/// Reads all that can be read without a change.
pub(crate) async fn everything(store: &(impl HistoryStore + KnowledgeStore), who: &str) -> String {
    let me = tenant(who);
    let log = LogQuery { limit: 99, ..LogQuery::default() };
    let refs = RefQuery { limit: 99, ..RefQuery::default() };
    let id = MemoryId("m1".into());
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        store.messages(&me, &session("s"), 0, 99).await,
        store.receipts(&me, &session("t")).await,
        store.cards(&me, &session("t")).await,
        store.sessions(&me, 9).await,
        store.log(&me, &log).await,
        store.efficiency(&me, Gathering::Session).await,
        store.verify(&me).await,
        store.artefacts(&me, &refs).await,
        store.memory(&me, &id, Some(MillisSinceEpoch(1_500))).await,
        store.jobs(&me, None, 99).await,
        store.tool_schemas(&me).await,
    )
}

async fn seen(operations: &[Operation], with_other: bool) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("store.db")).await.expect("a store");
    let mut seen = Vec::new();
    for &(mine, which, x, y) in operations {
        if mine {
            seen.push(act(&store, "a", which, x, y).await);
        } else if with_other {
            act(&store, "b", which, x, y).await;
        }
    }
    seen.push(everything(&store, "a").await);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn one_tenant_sees_the_same_with_and_without_another(
        operations in prop::collection::vec((any::<bool>(), 0..16_u8, 0..50_u8, 0..20_u8), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (alone, beside) =
            runtime.block_on(async { (seen(&operations, false).await, seen(&operations, true).await) });
        prop_assert_eq!(alone, beside);
    }
}
