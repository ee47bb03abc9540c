//! A ref gives back its message or its artefact, and one error says why it does not.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::expand::{
    ContentPart, ExpandError, ExpandOptions, Expansion, Originals, expand,
};
use plimsoll_engine::{
    Artefact, HistoryBatch, HistoryStore as _, KnowledgeStore, MemoryState, MessageRecord, Scope,
    StoreError,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{artefact, message, tenant};

async fn store() -> (MemoryStore, MessageRecord) {
    let store = MemoryStore::default();
    let said = message("s", 0, "one\ntwo\nthree");
    let batch = HistoryBatch { messages: vec![said.clone()], ..HistoryBatch::default() };
    store.append(&tenant("t"), batch).await.expect("appended");
    (store, said)
}

async fn expanded(
    store: &MemoryStore,
    knowledge: Option<&dyn KnowledgeStore>,
    owner: &str,
    reference: &str,
    part: ContentPart,
) -> Result<Expansion, ExpandError> {
    let tenant = tenant(owner);
    let originals = Originals { history: store, knowledge, tenant: &tenant, asker: None };
    let options = ExpandOptions { part, ..ExpandOptions::default() };
    expand(&originals, reference, &options, MillisSinceEpoch(9)).await
}

#[tokio::test]
async fn messages_and_artefacts_are_found_by_ref_and_by_digits() {
    let (store, said) = store().await;
    let kept = Artefact {
        ttl_expires_at: Some(MillisSinceEpoch(5)),
        ..artefact("t", "page", "{\"id\": 1}")
    };
    store.put_artefact(&kept).await.expect("kept");
    let lines = ContentPart::Lines { first: 2, last: 2 };
    for reference in [format!("ref:message:{}", said.hash), said.hash.short()] {
        let found = expanded(&store, None, "t", &reference, lines.clone()).await.expect("found");
        assert_eq!((&*found.text, found.is_stale), ("two", false));
    }
    let digits = &kept.reference.digest[..16];
    for reference in [kept.reference.print(), digits.to_owned()] {
        let found = expanded(&store, Some(&store), "t", &reference, ContentPart::Whole).await;
        let found = found.expect("found");
        assert_eq!((&*found.text, found.is_stale), ("{\"id\": 1}", true));
    }
}

#[tokio::test]
async fn a_record_gives_its_detail_to_those_who_may_see_it() {
    let store = MemoryStore::default();
    let mut record = plimsoll_testkit::sample::memory("t", "one", "a line");
    record.scope = Scope { user: Some("ben".to_owned()), ..Scope::default() };
    record.full = Some("all that ben knows".to_owned());
    record.state = MemoryState::New;
    let reference = format!("ref:memory:{}", record.id.0);
    store.put_memory(&record).await.expect("kept");
    let found = async |asker: Option<&Scope>| {
        let tenant = tenant("t");
        let originals =
            Originals { history: &store, knowledge: Some(&store), tenant: &tenant, asker };
        expand(&originals, &reference, &ExpandOptions::default(), MillisSinceEpoch(9)).await
    };
    let ben = found(Some(&record.scope)).await.expect("his own");
    assert_eq!(ben.text, "all that ben knows");
    for asker in [None, Some(&Scope::default())] {
        let refused = found(asker).await;
        assert!(matches!(refused, Err(ExpandError::Store(StoreError::NotFound { .. }))));
    }
}

#[tokio::test]
async fn what_is_not_there_or_not_text_is_an_error() {
    let (store, said) = store().await;
    let mut binary = artefact("t", "image", "");
    binary.content = vec![0xff, 0xfe];
    binary.reference.digest = plimsoll_engine::digest(&binary.content);
    store.put_artefact(&binary).await.expect("kept");
    let image = binary.reference.print();
    let found = expanded(&store, Some(&store), "t", &image, ContentPart::Whole).await;
    assert!(matches!(found, Err(ExpandError::NotText { bytes: 2 })));
    for (owner, reference) in
        [("t", "ref:message:0000000000000000"), ("other", &*said.hash.short()), ("t", &*image)]
    {
        let found = expanded(&store, None, owner, reference, ContentPart::Whole).await;
        let is_unknown = matches!(found, Err(ExpandError::Store(StoreError::NotFound { .. })));
        assert!(is_unknown, "{reference}");
    }
    let found = expanded(&store, Some(&store), "t", "no ref", ContentPart::Whole).await;
    assert!(matches!(found, Err(ExpandError::Store(StoreError::Invalid { .. }))));
}
