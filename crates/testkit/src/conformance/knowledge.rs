//! Checks of the knowledge port as a whole.

use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{JobId, MemoryId, Quota, RefQuery, Scope};

use super::memory::{everything, recalled, remember};
use super::{NOW, SharedKnowledge};
use crate::sample::{
    HOSTILE, answer, artefact, embedding, job, memory, session, tenant, tool_schema,
};

pub async fn schemas_are_replaced_and_sorted(store: SharedKnowledge) {
    let mut replaced = tool_schema("a", "server", "b");
    let other = tool_schema("a", "server", "a");
    let first = tool_schema("a", "earlier", "z");
    for schema in [&replaced, &other, &first] {
        store.put_tool_schema(schema).await.expect("stored");
    }
    replaced.version = "v2".into();
    store.put_tool_schema(&replaced).await.expect("stored");
    let kept = store.tool_schemas(&tenant("a")).await.expect("schemas");
    assert_eq!(kept, [first, other, replaced]);
}

pub async fn hostile_ids_and_texts_are_taken_literally(store: SharedKnowledge) {
    let megabyte = "m'\"%_\0".repeat((1 << 20) / 6);
    let mut texts: Vec<&str> = HOSTILE.to_vec();
    texts.push(&megabyte);
    let mut all = Vec::new();
    for text in &texts {
        let mut record = memory("a", text, text);
        record.summary = Some((*text).to_owned());
        record.tags = vec![(*text).to_owned(), "shared".to_owned()];
        record.scope = Scope {
            workspace: Some((*text).to_owned()),
            user: Some((*text).to_owned()),
            session: Some(session("s")),
            agent: None,
        };
        record.details = format!("{{{text}");
        record.origin = String::from(*text);
        all.push(record);
    }
    remember(&store, &all).await;
    for record in &all {
        let read = store.memory(&tenant("a"), &record.id, None).await.expect("found");
        assert_eq!(&read, record);
        let mut query = everything();
        query.tags = vec![record.tags[0].clone()];
        assert_eq!(recalled(&store, &query).await, [record.id.0.as_str()], "by tag");
        let mut query = everything();
        query.scope.user.clone_from(&record.scope.user);
        assert_eq!(recalled(&store, &query).await, [record.id.0.as_str()], "by user");
    }
    for text in &texts {
        let key = answer("a", text);
        store.put_answer(&key).await.expect("stored");
        let read = store.answer(&tenant("a"), text, NOW).await.expect("read").expect("kept");
        assert_eq!(read.cache_key, *text);
        let (_, new) = store.queue_job(&tenant("a"), &job(text)).await.expect("queued");
        assert!(new, "{text:?}");
        let schema = tool_schema("a", text, text);
        store.put_tool_schema(&schema).await.expect("stored");
    }
    assert_eq!(store.jobs(&tenant("a"), None, 99).await.expect("jobs").len(), texts.len());
    assert_eq!(store.tool_schemas(&tenant("a")).await.expect("schemas").len(), texts.len());
    let percent = store.drop_answers(&tenant("a"), Some("%"), None).await.expect("dropped");
    assert_eq!(percent, 1, "% is a key like any other");
    assert_fails!(store.memory(&tenant("a"), &MemoryId("' OR 1=1 --".into()), None), NotFound);
}

pub async fn tenants_never_meet(store: SharedKnowledge) {
    let (a, b) = (tenant("a"), tenant("b"));
    let page = artefact("a", "page", "secret");
    store.put_artefact(&page).await.expect("stored");
    let mut record = memory("a", "id", "canary");
    record.embedding = Some(embedding("m", 0.0));
    remember(&store, &[record]).await;
    let mut kept = answer("a", "k");
    kept.query_embedding = Some(embedding("m", 0.0));
    store.put_answer(&kept).await.expect("stored");
    store.put_tool_schema(&tool_schema("a", "s", "t")).await.expect("stored");
    store.queue_job(&a, &job("k")).await.expect("queued");
    assert_fails!(store.artefact(&b, &page.reference.digest, NOW), NotFound);
    assert_fails!(store.artefact(&b, &"0".repeat(64), NOW), NotFound);
    let all = RefQuery { limit: 9, ..RefQuery::default() };
    assert_eq!(store.artefacts(&b, &all).await.expect("refs"), []);
    assert_fails!(store.memory(&b, &MemoryId("id".into()), None), NotFound);
    assert_eq!(store.memories(&b, &everything()).await.expect("hits"), []);
    let mut query = everything();
    query.search.text = Some("canary".into());
    query.search.embedding = Some(embedding("m", 0.0));
    assert_eq!(store.memories(&b, &query).await.expect("hits"), []);
    assert_eq!(store.answer(&b, "k", NOW).await.expect("read"), None);
    let similar = store.similar_answers(&b, "signature", &embedding("m", 0.0), NOW, 9).await;
    assert_eq!(similar.expect("hits"), []);
    assert_eq!(store.answers(&b, 9).await.expect("answers"), []);
    let dropped = store.drop_answers(&b, Some("k"), Some("ref:a:0011223344556677")).await;
    assert_eq!(dropped.expect("dropped"), 0);
    assert_eq!(store.tool_schemas(&b).await.expect("schemas"), []);
    assert_eq!(store.jobs(&b, None, 9).await.expect("jobs"), []);
    let leased = store.lease_job(&b, "w", NOW, Duration::from_secs(1), &Quota::default()).await;
    assert_eq!(leased.expect("a lease"), None);
    let queued = store.queue_job(&b, &job("other")).await.expect("queued");
    assert_eq!(queued, (JobId(1), true), "ids count within the tenant");
    store.put_artefact(&artefact("b", "page", "secret")).await.expect("stored");
    let gone = store.collect_artefacts(&b, MillisSinceEpoch(i64::MAX)).await.expect("collected");
    assert_eq!(gone, []);
    assert_eq!(
        store.artefact(&a, &page.reference.digest, NOW).await.expect("kept").access_count,
        1
    );
}
