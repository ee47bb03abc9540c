//! Checks of both ports together: what is forgotten is gone from everywhere.

use plimsoll_core::{MillisSinceEpoch, Ref};
use plimsoll_engine::{
    Forgotten, HistoryBatch, JobId, LogQuery, MemoryId, MemoryQuery, RefQuery, Scope, SearchQuery,
    StoreError, forget,
};

use super::{NOW, SharedHistory, SharedKnowledge};
use crate::sample::{
    answer, artefact, card, embedding, job, memory, message, receipt, session, tenant,
};

type Stores = (SharedHistory, SharedKnowledge);

/// Fills two sessions, `s` and `t`, of tenant `name` with one of everything.
async fn fill((history, knowledge): &Stores, name: &str) {
    for of in ["s", "t"] {
        let record = message(of, 0, &format!("walrus in {of}"));
        let mut about = card(name, &record, "penguin");
        about.embedding = Some(embedding("m", 0.0));
        let batch = HistoryBatch {
            branch: None,
            messages: vec![record.clone()],
            receipts: vec![receipt(of, 0, "masking")],
            cards: vec![about],
        };
        history.append(&tenant(name), batch).await.expect("appended");
        let mut page = artefact(name, "page", &format!("page of {of}"));
        page.session = Some(session(of));
        knowledge.put_artefact(&page).await.expect("stored");
        let mut fact = memory(name, of, "walrus");
        fact.scope.session = Some(session(of));
        fact.scope.user = Some(format!("user {of}"));
        fact.embedding = Some(embedding("m", 0.0));
        knowledge.put_memory(&fact).await.expect("stored");
        fact.updated_at = NOW;
        knowledge.put_memory(&fact).await.expect("stored");
        for (key, used) in
            [("page", page.reference.print()), ("message", Ref::message(record.hash).to_string())]
        {
            let mut kept = answer(name, &format!("{key} {of}"));
            kept.used_refs = vec!["ref:x:0011223344556677".into(), used];
            knowledge.put_answer(&kept).await.expect("stored");
        }
        let mut new = job(of);
        new.session = Some(session(of));
        knowledge.queue_job(&tenant(name), &new).await.expect("queued");
    }
}

fn of_session(name: &str) -> Scope {
    Scope { session: Some(session(name)), ..Scope::default() }
}

pub async fn a_session_is_forgotten_everywhere(stores: Stores) {
    fill(&stores, "a").await;
    let (history, knowledge) = stores;
    let a = tenant("a");
    let forgotten = forget(&*history, &*knowledge, &a, &of_session("s")).await.expect("forgotten");
    let wanted =
        Forgotten { messages: 1, cards: 1, artefacts: 1, memories: 1, answers: 2, jobs: 1 };
    assert_eq!(forgotten, wanted);
    let s = session("s");
    assert_eq!(history.messages(&a, &s, 0, 9).await.expect("messages"), []);
    assert_eq!(history.receipts(&a, &s).await.expect("receipts"), []);
    assert_eq!(history.cards(&a, &s).await.expect("cards"), []);
    assert_eq!(history.sessions(&a, 9).await.expect("sessions").len(), 1);
    let all = LogQuery { limit: 9, ..LogQuery::default() };
    assert_eq!(history.log(&a, &all).await.expect("rows").len(), 2);
    let hash = message("s", 0, "walrus in s").hash.full();
    assert_fails!(history.message_by_hash(&a, &hash), NotFound);
    for query in [
        SearchQuery { text: Some("walrus penguin".into()), embedding: None, limit: 9 },
        SearchQuery { text: None, embedding: Some(embedding("m", 0.0)), limit: 9 },
    ] {
        let hits = history.search(&a, None, &query).await.expect("hits");
        assert_eq!(hits.len(), 1, "{query:?}");
        assert_eq!(hits[0].item.session, session("t"));
        let query = MemoryQuery { search: query, ..MemoryQuery::default() };
        assert_eq!(knowledge.memories(&a, &query).await.expect("hits").len(), 1);
    }
    for as_of in [None, Some(MillisSinceEpoch(1_000))] {
        assert_fails!(knowledge.memory(&a, &MemoryId("s".into()), as_of), NotFound);
    }
    let page = artefact("a", "page", "page of s").reference.print();
    assert_fails!(knowledge.artefact(&a, &page, NOW), NotFound);
    let refs = RefQuery { limit: 9, ..RefQuery::default() };
    assert_eq!(knowledge.artefacts(&a, &refs).await.expect("refs").len(), 1);
    assert_eq!(knowledge.answer(&a, "page s", NOW).await.expect("read"), None);
    assert_eq!(knowledge.answer(&a, "message s", NOW).await.expect("read"), None);
    assert!(knowledge.answer(&a, "page t", NOW).await.expect("read").is_some());
    let jobs = knowledge.jobs(&a, None, 9).await.expect("jobs");
    assert_eq!((jobs.len(), jobs[0].id), (1, JobId(2)));
    // A forgotten session may begin again, and a job's id is not given twice.
    let batch = HistoryBatch { messages: vec![message("s", 0, "anew")], ..HistoryBatch::default() };
    assert_eq!(history.append(&a, batch).await.expect("appended").added, 1);
    assert_eq!(knowledge.queue_job(&a, &job("s")).await.expect("queued"), (JobId(3), true));
    let again = forget(&*history, &*knowledge, &a, &of_session("unknown")).await.expect("nothing");
    assert_eq!(again, Forgotten::default());
}

pub async fn the_history_of_a_session_is_forgotten_by_itself(stores: Stores) {
    fill(&stores, "a").await;
    let (history, knowledge) = stores;
    let (a, s) = (tenant("a"), session("s"));
    let forgotten = history.forget_session(&a, &s).await.expect("forgotten");
    assert_eq!(forgotten, Forgotten { messages: 1, cards: 1, ..Forgotten::default() });
    assert_eq!(history.messages(&a, &s, 0, 9).await.expect("messages"), []);
    assert_eq!(history.receipts(&a, &s).await.expect("receipts"), []);
    assert_eq!(history.cards(&a, &s).await.expect("cards"), []);
    assert_eq!(history.session(&a, &s).await.expect("read"), None);
    assert_eq!(history.cards(&a, &session("t")).await.expect("cards").len(), 1);
    assert!(knowledge.answer(&a, "message s", NOW).await.expect("read").is_some());
    let again = history.forget_session(&a, &s).await.expect("nothing");
    assert_eq!(again, Forgotten::default());
}

pub async fn a_user_is_forgotten_and_no_other(stores: Stores) {
    fill(&stores, "a").await;
    let (history, knowledge) = stores;
    let a = tenant("a");
    let scope = Scope { user: Some("user s".into()), ..of_session("t") };
    assert_eq!(
        forget(&*history, &*knowledge, &a, &scope).await.expect("none"),
        Forgotten::default()
    );
    let scope = Scope { user: Some("%".into()), ..Scope::default() };
    assert_eq!(
        forget(&*history, &*knowledge, &a, &scope).await.expect("none"),
        Forgotten::default()
    );
    let scope = Scope { user: Some("user s".into()), ..Scope::default() };
    let forgotten = forget(&*history, &*knowledge, &a, &scope).await.expect("forgotten");
    assert_eq!(forgotten, Forgotten { memories: 1, ..Forgotten::default() });
    assert_eq!(history.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
    assert!(knowledge.memory(&a, &MemoryId("t".into()), None).await.is_ok());
}

pub async fn a_scope_without_parts_is_refused((history, knowledge): Stores) {
    assert_fails!(forget(&*history, &*knowledge, &tenant("a"), &Scope::default()), Invalid);
}

pub async fn one_tenant_forgets_alone(stores: Stores) {
    fill(&stores, "a").await;
    fill(&stores, "b").await;
    let (history, knowledge) = stores;
    forget(&*history, &*knowledge, &tenant("b"), &of_session("s")).await.expect("forgotten");
    let a = tenant("a");
    assert_eq!(history.messages(&a, &session("s"), 0, 9).await.expect("messages").len(), 1);
    let page = artefact("a", "page", "page of s").reference.print();
    assert_eq!(knowledge.artefact(&a, &page, NOW).await.expect("kept").content, b"page of s");
    assert!(knowledge.answer(&a, "page s", NOW).await.expect("read").is_some());
    assert!(knowledge.memory(&a, &MemoryId("s".into()), None).await.is_ok());
    assert_eq!(knowledge.jobs(&a, None, 9).await.expect("jobs").len(), 2);
}

/// Fills a store, has the backend's own `spoil` change every message's and artefact's content behind its hash, and checks
/// that nothing of it is returned. It is called by itself: only a backend knows how to spoil what it keeps.
pub async fn spoilt_contents_are_never_returned(stores: Stores, spoil: impl AsyncFn()) {
    fill(&stores, "a").await;
    spoil().await;
    let (history, knowledge) = stores;
    let a = tenant("a");
    let is_corrupt = |error: StoreError| matches!(error, StoreError::Corrupt { .. });
    let messages = history.messages(&a, &session("s"), 0, 9).await;
    assert!(is_corrupt(messages.expect_err("spoilt messages")));
    let hash = message("s", 0, "walrus in s").hash.full();
    let by_hash = history.message_by_hash(&a, &hash).await;
    assert!(is_corrupt(by_hash.expect_err("a spoilt message")));
    let page = artefact("a", "page", "page of s").reference.print();
    let read = knowledge.artefact(&a, &page, NOW).await;
    assert!(is_corrupt(read.expect_err("a spoilt artefact")));
    let query = SearchQuery { text: Some("walrus".into()), embedding: None, limit: 9 };
    let hits = history.search(&a, None, &query).await.expect("hits");
    assert_eq!(hits, [], "not returned");
    let rebuilt = history.verify(&a).await.expect("verified");
    assert_eq!((rebuilt.messages, rebuilt.mismatches), (2, 2));
}
