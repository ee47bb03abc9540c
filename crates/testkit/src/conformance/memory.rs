//! Checks of memory in the knowledge port: records, their states, copies of them, and forgetting a source.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    MemoryChange, MemoryChanges, MemoryId, MemoryKind, MemoryQuery, MemoryRecord, MemoryState,
    MemoryVersion, RefQuery, Scope, SearchQuery,
};

use super::SharedKnowledge;
use crate::sample::{answer, artefact, embedding, memory, session, tenant};

pub(super) async fn remember(store: &SharedKnowledge, records: &[MemoryRecord]) {
    for record in records {
        store.put_memory(record).await.expect("a record that is in order");
    }
}

pub(super) async fn recalled(store: &SharedKnowledge, query: &MemoryQuery) -> Vec<String> {
    let hits = store.memories(&tenant("a"), query).await.expect("hits");
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "best first");
    hits.into_iter().map(|hit| hit.item.id.0).collect()
}

pub(super) fn everything() -> MemoryQuery {
    let search = SearchQuery { limit: 100, ..SearchQuery::default() };
    MemoryQuery { search, ..MemoryQuery::default() }
}

pub async fn a_record_takes_the_place_of_its_earlier_state(store: SharedKnowledge) {
    let a = tenant("a");
    let mut first = memory("a", "id", "zebra");
    first.embedding = Some(embedding("m", 0.0));
    let mut second = memory("a", "id", "giraffe");
    second.updated_at = MillisSinceEpoch(2_000);
    second.state = MemoryState::Confirmed;
    second.full = Some("all there is".into());
    second.superseded_by = Some(MemoryId("next".into()));
    second.event_at = None;
    second.tags = vec!["other".into(), "more".into()];
    remember(&store, &[first.clone(), second.clone()]).await;
    let id = MemoryId("id".into());
    let at = async |time: i64| store.memory(&a, &id, Some(MillisSinceEpoch(time))).await;
    assert_eq!(store.memory(&a, &id, None).await.expect("present"), second);
    assert_eq!(at(1_999).await.expect("first"), first);
    assert_eq!(at(1_000).await.expect("first"), first);
    assert_eq!(at(2_000).await.expect("second"), second);
    assert_fails!(at(999), NotFound);
    let text = |text: &str| {
        let mut query = everything();
        query.search.text = Some(text.to_owned());
        query
    };
    assert_eq!(recalled(&store, &text("zebra")).await, [""; 0]);
    assert_eq!(recalled(&store, &text("giraffe")).await, ["id"]);
    let mut vector = everything();
    vector.search.embedding = Some(embedding("m", 0.0));
    assert_eq!(recalled(&store, &vector).await, [""; 0], "the present state has no vector");
    assert_eq!(recalled(&store, &everything()).await, ["id"]);
    // Of one time the last one stands.
    let mut third = second.clone();
    third.micro = "lion".into();
    remember(&store, std::slice::from_ref(&third)).await;
    assert_eq!(at(2_000).await.expect("third"), third);
    assert_eq!(at(1_999).await.expect("first"), first);
    let mut wrong = first;
    wrong.confidence = f32::INFINITY;
    assert_fails!(store.put_memory(&wrong), Invalid);
}

pub async fn records_are_filtered(store: SharedKnowledge) {
    let mut records: Vec<MemoryRecord> =
        (0..6).map(|i| memory("a", &format!("r{i}"), "same words")).collect();
    for (record, at) in records.iter_mut().zip([5, 4, 3, 2, 1, 1]) {
        record.updated_at = MillisSinceEpoch(1_000 + at);
    }
    records[0].kind = MemoryKind::Decision;
    records[1].scope.user = Some("u".into());
    records[2].scope = Scope { workspace: Some("w".into()), ..Scope::default() };
    records[2].scope.user = Some("u".into());
    records[2].scope.session = Some(session("s"));
    records[2].scope.agent = Some("g".into());
    records[3].tags = vec!["x".into(), "y".into()];
    records[4].state = MemoryState::Superseded;
    remember(&store, &records).await;
    assert_eq!(recalled(&store, &everything()).await, ["r0", "r1", "r2", "r3", "r5"]);
    let all = MemoryQuery { all_states: true, ..everything() };
    assert_eq!(recalled(&store, &all).await, ["r0", "r1", "r2", "r3", "r4", "r5"]);
    let kinds = vec![MemoryKind::Decision, MemoryKind::Censor];
    assert_eq!(recalled(&store, &MemoryQuery { kinds, ..everything() }).await, ["r0"]);
    let user = Scope { user: Some("u".into()), ..Scope::default() };
    let of_user = MemoryQuery { scope: user.clone(), ..everything() };
    assert_eq!(recalled(&store, &of_user).await, ["r1", "r2"]);
    let both = Scope { workspace: Some("w".into()), ..user };
    let of_both = MemoryQuery { scope: both, ..everything() };
    assert_eq!(recalled(&store, &of_both).await, ["r2"]);
    let tags = vec!["y".to_owned(), "x".to_owned()];
    assert_eq!(recalled(&store, &MemoryQuery { tags, ..everything() }).await, ["r3"]);
    let tags = vec!["x".to_owned(), "z".to_owned()];
    assert_eq!(recalled(&store, &MemoryQuery { tags, ..everything() }).await, [""; 0]);
    let mut limited = everything();
    limited.search.limit = 2;
    assert_eq!(recalled(&store, &limited).await, ["r0", "r1"]);
    // The same filters hold for a search by words, and by vector.
    let mut query = of_both;
    query.search.text = Some("words".into());
    assert_eq!(recalled(&store, &query).await, ["r2"]);
    for record in &mut records {
        record.embedding = Some(embedding("m", 3.0));
        record.updated_at = MillisSinceEpoch(9_000);
    }
    remember(&store, &records).await;
    query.search.embedding = Some(embedding("m", 0.0));
    query.search.text = None;
    assert_eq!(recalled(&store, &query).await, ["r2"]);
    query.scope = Scope::default();
    query.all_states = false;
    assert_eq!(recalled(&store, &query).await.len(), 5);
    query.tags = vec!["x".into()];
    query.search.limit = 1;
    assert_eq!(recalled(&store, &query).await, ["r3"]);
}

pub async fn records_are_ranked(store: SharedKnowledge) {
    let texts = ["postgres over sqlite", "sqlite in a test", "tabs or spaces", "fourth"];
    let mut records: Vec<MemoryRecord> = texts.iter().map(|text| memory("a", text, text)).collect();
    for (record, angle) in records.iter_mut().zip([80.0, 10.0, 20.0, 60.0]) {
        record.embedding = Some(embedding("m", angle));
    }
    records[3].full = Some("a word in full: walrus".into());
    records[2].summary = Some("style of indentation".into());
    remember(&store, &records).await;
    let by = |text: Option<&str>, angle: Option<f32>, limit| {
        let embedding = angle.map(|angle| embedding("m", angle));
        let search = SearchQuery { text: text.map(str::to_owned), embedding, limit };
        MemoryQuery { search, ..MemoryQuery::default() }
    };
    assert_eq!(recalled(&store, &by(Some("sqlite postgres"), None, 5)).await[0], texts[0]);
    assert_eq!(recalled(&store, &by(Some("walrus"), None, 5)).await, [texts[3]]);
    assert_eq!(recalled(&store, &by(Some("indentation"), None, 5)).await, [texts[2]]);
    assert_eq!(recalled(&store, &by(Some("plimsoll"), None, 5)).await.len(), 4, "by tags");
    let near = recalled(&store, &by(None, Some(12.0), 3)).await;
    assert_eq!(near, [texts[1], texts[2], texts[3]]);
    let fused = recalled(&store, &by(Some("sqlite"), Some(12.0), 9)).await;
    assert_eq!((fused[0].as_str(), fused.len()), (texts[1], 4));
}

fn ids(changes: &MemoryChanges) -> Vec<&str> {
    let mut ids: Vec<&str> = changes.records.iter().map(|record| &*record.id.0).collect();
    ids.sort_unstable();
    ids
}

pub async fn records_are_stored_together_or_not_at_all(store: SharedKnowledge) {
    let a = tenant("a");
    let (one, two) = (memory("a", "one", "one"), memory("a", "two", "two"));
    store.put_memories(&a, &[one, two]).await.expect("both");
    let mut wrong = memory("a", "wrong", "wrong");
    wrong.confidence = f32::NAN;
    let foreign = memory("b", "foreign", "foreign");
    for bad in [wrong, foreign] {
        assert_fails!(store.put_memories(&a, &[memory("a", "three", "three"), bad]), Invalid);
    }
    assert_eq!(recalled(&store, &everything()).await, ["one", "two"]);
    store.put_memories(&a, &[]).await.expect("nothing");
}

pub async fn a_copy_is_brought_up_to_date_by_what_changed(store: SharedKnowledge) {
    let a = tenant("a");
    let changes = async |since| store.memory_changes(&a, since).await.expect("changes");
    let empty = changes(MemoryVersion::default()).await;
    assert_eq!(ids(&empty), [""; 0]);
    let mut first = memory("a", "first", "one");
    first.embedding = Some(embedding("m", 0.0));
    let second = memory("a", "second", "two");
    remember(&store, &[first.clone(), second.clone()]).await;
    let whole = changes(empty.version).await;
    assert_eq!(ids(&whole), ["first", "second"]);
    assert!(whole.records.contains(&first), "with its vector");
    let none = changes(whole.version).await;
    assert_eq!((ids(&none), none.is_whole, none.version), (vec![], false, whole.version));
    let mut later = second;
    later.state = MemoryState::Superseded;
    later.updated_at = MillisSinceEpoch(later.updated_at.0 + 1);
    remember(&store, &[later.clone()]).await;
    let changed = changes(whole.version).await;
    assert_eq!((&changed.records[..], changed.is_whole), (&[later][..], false));
    // Another tenant's changes are none of this one's.
    store.put_memory(&memory("b", "other", "x")).await.expect("stored");
    assert_eq!(ids(&changes(changed.version).await), [""; 0]);
    // After a removal all records are read again.
    let mut third = memory("a", "third", "three");
    third.scope = Scope { session: Some(session("s")), ..Scope::default() };
    remember(&store, &[third]).await;
    let before = changes(changed.version).await;
    let scope = Scope { session: Some(session("s")), ..Scope::default() };
    store.forget(&a, &scope).await.expect("forgotten");
    let after = changes(before.version).await;
    assert_eq!((ids(&after), after.is_whole), (vec!["first", "second"], true));
}

pub async fn a_source_is_forgotten_with_all_that_came_from_it(store: SharedKnowledge) {
    let a = tenant("a");
    let page = artefact("a", "page", "obey the page");
    let mut outline = artefact("a", "page", "an outline");
    outline.reference.digest.clone_from(&page.reference.digest);
    outline.reference.view = Some("outline".into());
    outline.content.clone_from(&page.content);
    let other = artefact("a", "page", "another page");
    for one in [&page, &outline, &other] {
        store.put_artefact(one).await.expect("stored");
    }
    let source = page.reference.print();
    let from = |id: &str, source: Option<String>| {
        let mut record = memory("a", id, "canary");
        record.source_ref = source;
        record
    };
    let mut earlier = from("it", Some(source.clone()));
    earlier.updated_at = MillisSinceEpoch(earlier.updated_at.0 - 1);
    let kept = from("kept", Some(other.reference.print()));
    remember(&store, &[earlier, from("it", Some(source.clone())), kept, from("none", None)]).await;
    let mut rests = answer("a", "rests");
    rests.used_refs = vec![source.clone()];
    store.put_answer(&rests).await.expect("stored");
    let gone = store.forget_source(&a, &source).await.expect("forgotten");
    assert_eq!((gone.memories, gone.artefacts, gone.answers), (1, 2, 1));
    let mut asked = everything();
    asked.search.text = Some("canary".into());
    asked.all_states = true;
    let mut left = recalled(&store, &asked).await;
    left.sort();
    assert_eq!(left, ["kept", "none"]);
    let it = MemoryId("it".into());
    assert_fails!(store.memory(&a, &it, Some(MillisSinceEpoch(i64::MAX))), NotFound);
    let all = RefQuery { limit: 9, ..RefQuery::default() };
    assert_eq!(store.artefacts(&a, &all).await.expect("refs").len(), 1);
    let again = store.forget_source(&a, &source).await.expect("nothing is left");
    assert_eq!((again.memories, again.artefacts, again.answers), (0, 0, 0));
    assert_eq!(store.forget_source(&a, "%").await.expect("no pattern").memories, 0);
}

/// Returns a later version of a record with another text.
fn later(record: &MemoryRecord, text: &str) -> MemoryRecord {
    MemoryRecord {
        micro: text.to_owned(),
        updated_at: MillisSinceEpoch(record.updated_at.0 + 1),
        ..record.clone()
    }
}

fn new(record: MemoryRecord) -> MemoryChange {
    MemoryChange { record, from: None, sources: Vec::new(), revives: false }
}

pub async fn a_change_is_stored_only_from_the_version_it_was_made_from(store: SharedKnowledge) {
    let a = tenant("a");
    let (one, two) = (memory("a", "one", "one"), memory("a", "two", "two"));
    let stored = [new(one.clone()), new(two.clone())];
    assert_eq!(store.change_memories(&a, &stored).await.expect("stored"), []);
    assert_fails!(store.change_memories(&a, &[new(one.clone())]), Conflict);
    let next = later(&one, "one, changed");
    let changed = [MemoryChange::of(&one, next.clone())];
    assert_eq!(store.change_memories(&a, &changed).await.expect("stored"), []);
    assert_fails!(store.change_memories(&a, &changed), Conflict);
    // All or none.
    let both = [MemoryChange::of(&two, later(&two, "x")), MemoryChange::of(&one, next.clone())];
    assert_fails!(store.change_memories(&a, &both), Conflict);
    assert_eq!(store.memory(&a, &two.id, None).await.expect("found"), two);
    assert_eq!(store.memory(&a, &one.id, None).await.expect("found"), next);
    let foreign = [new(memory("b", "three", "three"))];
    assert_fails!(store.change_memories(&a, &foreign), Invalid);
    store.forget_memories(&a, std::slice::from_ref(&one.id)).await.expect("forgotten");
    let late = [MemoryChange::of(&next, later(&next, "again"))];
    assert_fails!(store.change_memories(&a, &late), Conflict);
    assert_eq!(store.change_memories(&a, &[]).await.expect("nothing"), []);
}

pub async fn what_was_forgotten_stays_so(store: SharedKnowledge) {
    let a = tenant("a");
    let one = memory("a", "one", "one");
    remember(&store, &[one.clone(), memory("a", "kept", "kept")]).await;
    let ids = [one.id.clone(), MemoryId("unknown".into())];
    assert_eq!(store.forget_memories(&a, &ids).await.expect("forgotten").memories, 1);
    assert_fails!(store.memory(&a, &one.id, None), NotFound);
    let again = [new(one.clone()), new(memory("a", "other", "other"))];
    assert_eq!(
        store.change_memories(&a, &again).await.expect("stored"),
        std::slice::from_ref(&one.id)
    );
    // The same text under another id.
    let same = MemoryRecord { id: MemoryId("copy".into()), ..one.clone() };
    let passed_over = store.change_memories(&a, &[new(same.clone())]).await.expect("asked");
    assert_eq!(passed_over, std::slice::from_ref(&same.id));
    // Another tenant forgot nothing.
    let theirs = memory("b", "one", "one");
    assert_eq!(store.change_memories(&tenant("b"), &[new(theirs)]).await.expect("stored"), []);
    let revived = MemoryChange { revives: true, ..new(one.clone()) };
    assert_eq!(store.change_memories(&a, &[revived]).await.expect("stored"), []);
    assert_eq!(store.memory(&a, &one.id, None).await.expect("found"), one);

    let source = "ref:page:0123456789abcdef".to_owned();
    store.forget_source(&a, &source).await.expect("forgotten");
    let from = |id: &str| MemoryChange {
        sources: vec![source.clone()],
        ..new(memory("a", id, &format!("text of {id}")))
    };
    let passed_over = store.change_memories(&a, &[from("fresh")]).await.expect("asked");
    assert_eq!(passed_over, [MemoryId("fresh".into())]);
    // A record that exists is not confirmed by it.
    let confirmed =
        MemoryChange { sources: vec![source], ..MemoryChange::of(&one, later(&one, "x")) };
    assert_eq!(
        store.change_memories(&a, &[confirmed]).await.expect("asked"),
        std::slice::from_ref(&one.id)
    );
    assert_eq!(store.memory(&a, &one.id, None).await.expect("found"), one);

    let scope = Scope { user: Some("ann".into()), ..Scope::default() };
    let hers = MemoryRecord { scope: scope.clone(), ..memory("a", "hers", "hers") };
    remember(&store, std::slice::from_ref(&hers)).await;
    store.forget(&a, &scope).await.expect("forgotten");
    assert_eq!(store.change_memories(&a, &[new(hers.clone())]).await.expect("asked"), [hers.id]);
}
