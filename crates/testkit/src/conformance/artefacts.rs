//! Checks of artefacts in the knowledge port.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Artefact, ArtefactKind, ArtefactRef, RefQuery, digest};

use super::{NOW, SharedKnowledge};
use crate::sample::{HOSTILE, artefact, session, tenant};

async fn put(store: &SharedKnowledge, artefacts: &[&Artefact]) {
    for artefact in artefacts {
        store.put_artefact(artefact).await.expect("an artefact that is in order");
    }
}

pub async fn an_artefact_is_found_by_every_form_of_its_ref(store: SharedKnowledge) {
    let plain = artefact("a", "notion_page", "the content \0 'quoted' é");
    let mut view = artefact("a", "notion_page", "an outline");
    view.reference.view = Some("outline".into());
    let binary = Artefact {
        content: vec![0, 255, 254, 10, 13],
        reference: ArtefactRef {
            digest: digest(&[0, 255, 254, 10, 13]),
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
        assert_fails!(store.artefact(&tenant("a"), &missing, NOW), NotFound);
    }
    let bad = ["", "ref:", "0123", "%%%%%%%%", "ref:a':01234567", "ref:a:________"];
    for bad in bad.iter().chain(HOSTILE) {
        assert_fails!(store.artefact(&tenant("a"), bad, NOW), Invalid);
    }
}

pub async fn accesses_are_counted(store: SharedKnowledge) {
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

pub async fn a_ref_that_is_there_keeps_its_content_and_counters(store: SharedKnowledge) {
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

pub async fn what_is_no_artefact_is_refused(store: SharedKnowledge) {
    let good = artefact("a", "page", "text");
    let mut bad = vec![good.clone(); 5];
    bad[0].content.push(b'x');
    bad[1].summary = Some("é".repeat(501));
    bad[2].reference.kind = ArtefactKind("a:b".into());
    bad[3].reference.view = Some(String::new());
    bad[4].freshness_score = f32::NAN;
    for artefact in &bad {
        assert_fails!(store.put_artefact(artefact), Invalid);
    }
    let mut longest = good;
    longest.summary = Some("é".repeat(500));
    put(&store, &[&longest]).await;
}

pub async fn refs_are_listed_newest_first(store: SharedKnowledge) {
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

pub async fn refs_past_their_time_are_collected(store: SharedKnowledge) {
    let mut ended = artefact("a", "page", "shared");
    ended.ttl_expires_at = Some(MillisSinceEpoch(5_000));
    let mut just = artefact("a", "page", "just");
    just.ttl_expires_at = Some(NOW);
    let other_kind = artefact("a", "other", "shared");
    put(&store, &[&ended, &just, &other_kind]).await;
    let gone = store.collect_artefacts(&tenant("a"), NOW).await.expect("collected");
    assert_eq!(gone, [ended.reference.clone()]);
    assert_fails!(store.artefact(&tenant("a"), &ended.reference.print(), NOW), NotFound);
    let kept = store.artefact(&tenant("a"), &other_kind.reference.print(), NOW).await;
    assert_eq!(kept.expect("its content has another ref").content, b"shared");
    let later = MillisSinceEpoch(NOW.0 + 1);
    let gone = store.collect_artefacts(&tenant("a"), later).await.expect("collected");
    assert_eq!(gone, [just.reference.clone()]);
    put(&store, &[&just]).await;
    let again = store.artefact(&tenant("a"), &just.reference.print(), NOW).await;
    assert_eq!(again.expect("stored anew").content, b"just");
}
