//! Checks of the knowledge port.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    AnswerQuota, Artefact, ArtefactKind, JobId, JobOutcome, JobState, KnowledgeStore, MemoryId,
    Quota, RefQuery, Scope, StoreError,
};

use super::memory::{everything, recalled, remember};
use crate::sample::{
    HOSTILE, answer, artefact, embedding, job, memory, session, tenant, tool_schema,
};

type Store = Arc<dyn KnowledgeStore>;

const NOW: MillisSinceEpoch = MillisSinceEpoch(10_000);
const LEASE: Duration = Duration::from_secs(1);

async fn put(store: &Store, artefacts: &[&Artefact]) {
    for artefact in artefacts {
        store.put_artefact(artefact).await.expect("an artefact that is in order");
    }
}

async fn lease(store: &Store, owner: &str, now: i64, quota: &Quota) -> Option<JobId> {
    let leased = store.lease_job(&tenant("a"), owner, MillisSinceEpoch(now), LEASE, quota).await;
    leased.expect("a lease").map(|job| job.id)
}

async fn states(store: &Store) -> Vec<JobState> {
    let jobs = store.jobs(&tenant("a"), None, 100).await.expect("jobs");
    jobs.into_iter().map(|job| job.state).collect()
}

pub async fn an_artefact_is_found_by_every_form_of_its_ref(store: Store) {
    let plain = artefact("a", "notion_page", "the content \0 'quoted' é");
    let mut view = artefact("a", "notion_page", "an outline");
    view.reference.view = Some("outline".into());
    let binary = Artefact {
        content: vec![0, 255, 254, 10, 13],
        reference: plimsoll_engine::ArtefactRef {
            digest: plimsoll_engine::digest(&[0, 255, 254, 10, 13]),
            ..plain.reference.clone()
        },
        ..plain.clone()
    };
    put(&store, &[&plain, &view, &binary]).await;
    for wanted in [&plain, &view, &binary] {
        let digest = &wanted.reference.digest;
        let kind = &wanted.reference.kind.0;
        let view = wanted.reference.view.as_ref().map(|v| format!(":{v}")).unwrap_or_default();
        for form in [
            wanted.reference.print(),
            digest.clone(),
            digest[..8].to_owned(),
            format!("ref:{kind}:{digest}{view}"),
        ] {
            let read = store.artefact(&tenant("a"), &form, NOW).await.expect("found");
            assert_eq!(read.content, wanted.content, "{form}");
            assert_eq!(read.reference, wanted.reference);
        }
    }
    let digest = &plain.reference.digest[..16];
    for missing in [format!("ref:other:{digest}"), format!("ref:notion_page:{digest}:outline")] {
        let result = store.artefact(&tenant("a"), &missing, NOW).await;
        assert!(matches!(result, Err(StoreError::NotFound { .. })), "{missing}");
    }
    for bad in ["", "ref:", "0123", "%%%%%%%%", "ref:a':01234567", "ref:a:________"] {
        let result = store.artefact(&tenant("a"), bad, NOW).await;
        assert!(matches!(result, Err(StoreError::Invalid { .. })), "{bad:?}");
    }
    for hostile in HOSTILE {
        let result = store.artefact(&tenant("a"), hostile, NOW).await;
        assert!(matches!(result, Err(StoreError::Invalid { .. })), "{hostile:?}");
    }
}

pub async fn accesses_are_counted(store: Store) {
    let mut page = artefact("a", "page", "text");
    page.ttl_expires_at = Some(MillisSinceEpoch(5_000));
    put(&store, &[&page]).await;
    let reference = page.reference.print();
    store.artefact(&tenant("a"), &reference, MillisSinceEpoch(4_000)).await.expect("found");
    let read = store.artefact(&tenant("a"), &reference, NOW).await.expect("stale, and found");
    assert!(read.is_stale(NOW));
    assert_eq!((read.access_count, read.last_accessed_at), (2, Some(NOW)));
    page.access_count = 2;
    page.last_accessed_at = Some(NOW);
    assert_eq!(read, page);
}

pub async fn a_ref_that_is_there_keeps_its_content_and_counters(store: Store) {
    let page = artefact("a", "page", "text");
    put(&store, &[&page]).await;
    store.artefact(&tenant("a"), &page.reference.digest, NOW).await.expect("found");
    let mut again = page.clone();
    again.summary = None;
    again.compressed = Some("short".into());
    again.ttl_expires_at = Some(MillisSinceEpoch(77));
    again.freshness_score = 0.25;
    again.source_meta = None;
    again.session = Some(session("another"));
    again.created_at = MillisSinceEpoch(50_000);
    let other_kind = artefact("a", "other", "text");
    put(&store, &[&again, &other_kind]).await;
    let read = store.artefact(&tenant("a"), &page.reference.print(), NOW).await.expect("found");
    assert_eq!(read.access_count, 2);
    assert_eq!((read.session, read.created_at), (page.session, page.created_at));
    assert_eq!((read.summary, read.compressed), (None, again.compressed));
    assert_eq!((read.ttl_expires_at, read.source_meta), (again.ttl_expires_at, None));
    let first = store.artefact(&tenant("a"), &page.reference.digest, NOW).await.expect("found");
    assert_eq!(first.reference.kind.0, "other", "by kind where only digits are given");
}

pub async fn what_is_no_artefact_is_refused(store: Store) {
    let good = artefact("a", "page", "text");
    let mut bad = vec![good.clone(); 5];
    bad[0].content.push(b'x');
    bad[1].summary = Some("é".repeat(501));
    bad[2].reference.kind = ArtefactKind("a:b".into());
    bad[3].reference.view = Some(String::new());
    bad[4].freshness_score = f32::NAN;
    for artefact in &bad {
        let result = store.put_artefact(artefact).await;
        assert!(matches!(result, Err(StoreError::Invalid { .. })), "{artefact:?}");
    }
    let mut longest = good;
    longest.summary = Some("é".repeat(500));
    put(&store, &[&longest]).await;
}

pub async fn refs_are_listed_newest_first(store: Store) {
    let mut newer = artefact("a", "page", "newer");
    newer.created_at = MillisSinceEpoch(2_000);
    newer.session = None;
    let older = artefact("a", "mail", "older");
    put(&store, &[&older, &newer]).await;
    let list = async |query: RefQuery| store.artefacts(&tenant("a"), &query).await.expect("refs");
    let bare = |artefact: &Artefact| Artefact { content: Vec::new(), ..artefact.clone() };
    let all = RefQuery { limit: 9, ..RefQuery::default() };
    assert_eq!(list(all.clone()).await, [bare(&newer), bare(&older)]);
    let kind = Some(ArtefactKind("mail".into()));
    assert_eq!(list(RefQuery { kind, ..all.clone() }).await, [bare(&older)]);
    let of_session = RefQuery { session: Some(session("s")), ..all.clone() };
    assert_eq!(list(of_session).await, [bare(&older)]);
    assert_eq!(list(RefQuery { limit: 1, ..all }).await, [bare(&newer)]);
}

pub async fn refs_past_their_time_are_collected(store: Store) {
    let mut ended = artefact("a", "page", "shared");
    ended.ttl_expires_at = Some(MillisSinceEpoch(5_000));
    let mut just = artefact("a", "page", "just");
    just.ttl_expires_at = Some(NOW);
    let other_kind = artefact("a", "other", "shared");
    put(&store, &[&ended, &just, &other_kind]).await;
    let gone = store.collect_artefacts(&tenant("a"), NOW).await.expect("collected");
    assert_eq!(gone, [ended.reference.clone()]);
    let missing = store.artefact(&tenant("a"), &ended.reference.print(), NOW).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    let kept = store.artefact(&tenant("a"), &other_kind.reference.print(), NOW).await;
    assert_eq!(kept.expect("its content has another ref").content, b"shared");
    let later = MillisSinceEpoch(NOW.0 + 1);
    let gone = store.collect_artefacts(&tenant("a"), later).await.expect("collected");
    assert_eq!(gone, [just.reference.clone()]);
    put(&store, &[&just]).await;
    let again = store.artefact(&tenant("a"), &just.reference.print(), NOW).await;
    assert_eq!(again.expect("stored anew").content, b"just");
}

pub async fn hostile_ids_and_texts_are_taken_literally(store: Store) {
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
    let unknown = store.memory(&tenant("a"), &MemoryId("' OR 1=1 --".into()), None).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn a_job_is_one_by_its_key(store: Store) {
    let a = tenant("a");
    let first = store.queue_job(&a, &job("k")).await.expect("queued");
    assert_eq!(first, (JobId(1), true));
    assert_eq!(store.queue_job(&a, &job("k")).await.expect("queued"), (JobId(1), false));
    assert_eq!(store.queue_job(&a, &job("l")).await.expect("queued"), (JobId(2), true));
    let kept = store.jobs(&a, Some(JobState::Queued), 1).await.expect("jobs");
    assert_eq!((kept.len(), &kept[0].job), (1, &job("k")));
    assert_eq!(store.jobs(&a, Some(JobState::Done), 9).await.expect("jobs"), []);
    let mut high = job("m");
    high.priority = 10;
    assert!(matches!(store.queue_job(&a, &high).await, Err(StoreError::Invalid { .. })));
}

pub async fn jobs_are_leased_in_order(store: Store) {
    let a = tenant("a");
    for (key, priority, due) in [("late", 5, 900), ("early", 5, 100), ("high", 9, 950)] {
        let mut new = job(key);
        new.priority = priority;
        new.next_attempt_at = MillisSinceEpoch(due);
        store.queue_job(&a, &new).await.expect("queued");
    }
    let quota = Quota::default();
    assert_eq!(lease(&store, "w", 50, &quota).await, None, "none is due");
    assert_eq!(lease(&store, "w", 940, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "w", 960, &quota).await, Some(JobId(3)));
    assert_eq!(lease(&store, "w", 960, &quota).await, Some(JobId(1)));
    assert_eq!(lease(&store, "w", 960, &quota).await, None);
    let running = &store.jobs(&a, Some(JobState::Running), 9).await.expect("jobs")[1];
    assert_eq!(running.lease_owner.as_deref(), Some("w"));
    assert_eq!(running.lease_until, Some(MillisSinceEpoch(1_940)));
    assert_eq!(running.attempt_count, 1);
}

pub async fn a_job_is_tried_again_and_parked(store: Store) {
    let a = tenant("a");
    store.queue_job(&a, &job("k")).await.expect("queued");
    let quota = Quota::default();
    for attempt in 1_i64..=3 {
        let now = attempt * 100;
        assert_eq!(lease(&store, "w", now, &quota).await, Some(JobId(1)));
        let retry_at = MillisSinceEpoch(now + 100);
        let failed = JobOutcome::Failed { error: format!("no {attempt}"), retry_at };
        let now = MillisSinceEpoch(now + 1);
        store.finish_job(&a, JobId(1), "w", now, failed).await.expect("ended");
        assert_eq!(lease(&store, "w", now.0, &quota).await, None, "not before its time");
    }
    let parked = &store.jobs(&a, Some(JobState::Parked), 9).await.expect("jobs")[0];
    assert_eq!((parked.attempt_count, parked.error_message.as_deref()), (3, Some("no 3")));
    assert_eq!(lease(&store, "w", 99_999, &quota).await, None);
    let done = JobOutcome::Done { result: String::new(), token_cost: 0 };
    let late = store.finish_job(&a, JobId(1), "w", NOW, done.clone()).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));
    let unknown = store.finish_job(&a, JobId(77), "w", NOW, done).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn a_lease_that_ended_is_taken_over(store: Store) {
    let a = tenant("a");
    let mut new = job("k");
    new.max_attempts = 2;
    store.queue_job(&a, &new).await.expect("queued");
    let quota = Quota::default();
    let done = || JobOutcome::Done { result: "it".into(), token_cost: 9 };
    assert_eq!(lease(&store, "one", 0, &quota).await, Some(JobId(1)));
    assert_eq!(lease(&store, "two", 999, &quota).await, None);
    assert_eq!(lease(&store, "two", 1_000, &quota).await, Some(JobId(1)));
    let stolen = store.finish_job(&a, JobId(1), "one", MillisSinceEpoch(1_001), done()).await;
    assert!(matches!(stolen, Err(StoreError::Conflict { .. })));
    assert_eq!(states(&store).await, [JobState::Running]);
    let late = MillisSinceEpoch(5_000);
    store.finish_job(&a, JobId(1), "two", late, done()).await.expect("nobody took it over");
    let ended = &store.jobs(&a, None, 9).await.expect("jobs")[0];
    assert_eq!((ended.state, ended.attempt_count), (JobState::Done, 2));
    assert_eq!((ended.result.as_deref(), ended.token_cost), (Some("it"), Some(9)));
    assert_eq!((ended.completed_at, ended.lease_owner.as_deref()), (Some(late), None));
    let twice = store.finish_job(&a, JobId(1), "two", late, done()).await;
    assert!(matches!(twice, Err(StoreError::Conflict { .. })), "once");
    new.key = "l".into();
    store.queue_job(&a, &new).await.expect("queued");
    assert_eq!(lease(&store, "one", 0, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "one", 2_000, &quota).await, Some(JobId(2)));
    assert_eq!(lease(&store, "one", 4_000, &quota).await, None, "no third attempt");
    assert_eq!(states(&store).await, [JobState::Done, JobState::Parked]);
}

pub async fn quotas_hold(store: Store) {
    let a = tenant("a");
    for (key, of_session, reference) in
        [("1", "s", "r"), ("2", "s", "q"), ("3", "t", "r"), ("4", "t", "q")]
    {
        let mut new = job(key);
        new.session = Some(session(of_session));
        new.ref_id = Some(reference.into());
        store.queue_job(&a, &new).await.expect("queued");
    }
    let none = Quota::default();
    assert_eq!(lease(&store, "w", 0, &none).await, Some(JobId(1)));
    let done = JobOutcome::Done { result: String::new(), token_cost: 100 };
    store.finish_job(&a, JobId(1), "w", MillisSinceEpoch(10), done).await.expect("ended");
    let narrow = Quota { session: Some(100), artefact: Some(100), ..none };
    let wide = Quota { session: Some(101), artefact: Some(101), day: Some(101), ..none };
    assert_eq!(lease(&store, "w", 20, &narrow).await, Some(JobId(4)), "2 and 3 are beyond it");
    let (done, skipped) = (JobState::Done, JobState::Skipped);
    assert_eq!(states(&store).await, [done, skipped, skipped, JobState::Running]);
    store.queue_job(&a, &job("5")).await.expect("queued");
    store.queue_job(&a, &job("6")).await.expect("queued");
    assert_eq!(lease(&store, "w", 20, &wide).await, Some(JobId(5)));
    let tomorrow = Quota { day: Some(100), day_began: MillisSinceEpoch(11), ..none };
    assert_eq!(lease(&store, "w", 20, &tomorrow).await, Some(JobId(6)), "spent the day before");
    store.queue_job(&a, &job("7")).await.expect("queued");
    let today = Quota { day: Some(100), day_began: MillisSinceEpoch(10), ..none };
    assert_eq!(lease(&store, "w", 20, &today).await, None);
    assert_eq!(states(&store).await[6], skipped);
}

pub async fn no_two_callers_get_the_same_job(store: Store) {
    let a = tenant("a");
    for key in 0..60 {
        store.queue_job(&a, &job(&key.to_string())).await.expect("queued");
    }
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut had = Vec::new();
                let owner = format!("w{worker}");
                while let Some(id) = lease(&store, &owner, 0, &Quota::default()).await {
                    had.push(id);
                }
                had
            })
        })
        .collect();
    let mut had = Vec::new();
    for worker in workers {
        had.extend(worker.await.expect("the task ends"));
    }
    assert_eq!(had.len(), 60);
    assert_eq!(had.into_iter().collect::<HashSet<_>>().len(), 60);
}

pub async fn schemas_are_replaced_and_sorted(store: Store) {
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

pub async fn answers_live_until_their_time(store: Store) {
    let a = tenant("a");
    let mut kept = answer("a", "k");
    kept.ttl_expires_at = Some(NOW);
    kept.query_embedding = Some(embedding("m", 0.0));
    store.put_answer(&kept).await.expect("stored");
    let before = MillisSinceEpoch(NOW.0 - 1);
    store.answer(&a, "k", before).await.expect("read").expect("alive");
    let read = store.answer(&a, "k", before).await.expect("read").expect("alive");
    kept.hit_count = 2;
    kept.last_hit_at = Some(before);
    assert_eq!(read, kept);
    assert_eq!(store.answer(&a, "k", NOW).await.expect("read"), None);
    assert_eq!(store.answer(&a, "other", before).await.expect("read"), None);
    let mut replaced = answer("a", "k");
    replaced.answer_text = "another".into();
    replaced.hit_count = 7;
    store.put_answer(&replaced).await.expect("stored");
    let read = store.answer(&a, "k", NOW).await.expect("read").expect("alive");
    assert_eq!((read.answer_text.as_str(), read.hit_count), ("another", 8));
}

pub async fn similar_answers_share_a_signature_and_a_model(store: Store) {
    let mut near = answer("a", "near");
    near.query_embedding = Some(embedding("m", 5.0));
    let mut far = answer("a", "far");
    far.query_embedding = Some(embedding("m", 50.0));
    let mut other = answer("a", "other model");
    other.query_embedding = Some(embedding("n", 0.0));
    let mut elsewhere = answer("a", "elsewhere");
    elsewhere.query_embedding = Some(embedding("m", 0.0));
    elsewhere.context_signature = "another".into();
    let mut past = answer("a", "past");
    past.query_embedding = Some(embedding("m", 0.0));
    past.ttl_expires_at = Some(NOW);
    for kept in [&far, &near, &other, &elsewhere, &past, &answer("a", "without")] {
        store.put_answer(kept).await.expect("stored");
    }
    let asked = embedding("m", 0.0);
    let hits =
        store.similar_answers(&tenant("a"), "signature", &asked, NOW, 9).await.expect("hits");
    let items: Vec<_> = hits.iter().map(|hit| &hit.item).collect();
    assert_eq!(items, [&near, &far], "no hit is counted");
    assert!((hits[0].score - f64::from(5.0_f32.to_radians().cos())).abs() < 1e-3);
    let one = store.similar_answers(&tenant("a"), "signature", &asked, NOW, 1).await;
    assert_eq!(one.expect("hits").len(), 1);
}

pub async fn answers_are_dropped_by_key_and_by_ref(store: Store) {
    let a = tenant("a");
    for (key, used) in [("1", "r"), ("2", "r"), ("3", "q"), ("4", "q")] {
        let mut kept = answer("a", key);
        kept.used_refs = vec![used.into(), "both".into()];
        store.put_answer(&kept).await.expect("stored");
    }
    let dropped = async |key: Option<&str>, used: Option<&str>| {
        store.drop_answers(&a, key, used).await.expect("dropped")
    };
    assert_eq!(dropped(None, None).await, 0);
    assert_eq!(dropped(None, Some("%")).await, 0);
    assert_eq!(dropped(Some("1"), None).await, 1);
    assert_eq!(dropped(Some("1"), None).await, 0);
    assert_eq!(dropped(Some("3"), Some("r")).await, 2);
    assert_eq!(dropped(None, Some("both")).await, 1);
}

pub async fn answers_are_listed_newest_first_and_trimmed(store: Store) {
    let a = tenant("a");
    for (key, at, text) in [("old", 1, "four"), ("b", 3, "four"), ("a", 3, "fünf"), ("new", 9, "")]
    {
        let mut kept = answer("a", key);
        (kept.created_at, kept.query_text) = (MillisSinceEpoch(at), text.into());
        kept.answer_text = "six666".into();
        kept.ttl_expires_at = (key == "new").then_some(NOW);
        store.put_answer(&kept).await.expect("stored");
    }
    let keys = async |limit| {
        let found = store.answers(&a, limit).await.expect("answers").into_iter();
        found.map(|answer| (answer.cache_key, answer.hit_count)).collect::<Vec<_>>()
    };
    let named =
        |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect::<Vec<_>>();
    assert_eq!(keys(9).await, named(&["new", "a", "b", "old"]));
    assert_eq!(keys(2).await, named(&["new", "a"]));
    assert_eq!(keys(0).await, []);
    let trim = async |now, entries, bytes| {
        store.trim_answers(&a, now, AnswerQuota { entries, bytes }).await.expect("trimmed")
    };
    let roomy = u64::MAX;
    assert_eq!(trim(MillisSinceEpoch(NOW.0 - 1), roomy, roomy).await, 0);
    assert_eq!(trim(NOW, roomy, roomy).await, 1, "past its time");
    assert_eq!(trim(NOW, roomy, 31).await, 0, "eleven bytes and twice ten");
    assert_eq!(trim(NOW, roomy, 30).await, 1, "by bytes");
    assert_eq!(keys(9).await, named(&["a", "b"]));
    assert_eq!(
        store
            .trim_answers(&tenant("b"), NOW, AnswerQuota { entries: 0, bytes: 0 })
            .await
            .expect("trimmed"),
        0
    );
    assert_eq!(trim(NOW, 1, roomy).await, 1, "by entries");
    assert_eq!(keys(9).await, named(&["a"]));
    assert_eq!(trim(NOW, 0, roomy).await, 1);
}

pub async fn tenants_never_meet(store: Store) {
    let (a, b) = (tenant("a"), tenant("b"));
    let page = artefact("a", "page", "secret");
    put(&store, &[&page]).await;
    let mut record = memory("a", "id", "canary");
    record.embedding = Some(embedding("m", 0.0));
    remember(&store, &[record]).await;
    let mut kept = answer("a", "k");
    kept.query_embedding = Some(embedding("m", 0.0));
    store.put_answer(&kept).await.expect("stored");
    store.put_tool_schema(&tool_schema("a", "s", "t")).await.expect("stored");
    store.queue_job(&a, &job("k")).await.expect("queued");
    let unknown = store.artefact(&b, &page.reference.digest, NOW).await;
    let never = store.artefact(&b, &"0".repeat(64), NOW).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
    assert!(matches!(never, Err(StoreError::NotFound { .. })));
    let all = RefQuery { limit: 9, ..RefQuery::default() };
    assert_eq!(store.artefacts(&b, &all).await.expect("refs"), []);
    let missing = store.memory(&b, &MemoryId("id".into()), None).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
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
    let leased = store.lease_job(&b, "w", NOW, LEASE, &Quota::default()).await;
    assert_eq!(leased.expect("a lease"), None);
    let queued = store.queue_job(&b, &job("other")).await.expect("queued");
    assert_eq!(queued, (JobId(1), true), "ids count within the tenant");
    put(&store, &[&artefact("b", "page", "secret")]).await;
    let gone = store.collect_artefacts(&b, MillisSinceEpoch(i64::MAX)).await.expect("collected");
    assert_eq!(gone, []);
    assert_eq!(
        store.artefact(&a, &page.reference.digest, NOW).await.expect("kept").access_count,
        1
    );
}
