//! The answer cache on SQLite: found, counted, dropped and trimmed as on any store.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::answer::AnswerSettings;
use plimsoll_engine::answer::{
    AnswerCache, AnswerMatch, AnswerQuestion, evict_answer, find_answer, keep_answer, ref_changed,
};
use plimsoll_testkit::sample::{artefact, tenant};

const NOW: MillisSinceEpoch = MillisSinceEpoch(1_000);

#[tokio::test]
async fn answers_come_and_go_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = folder.path().join("kept.db");
    let (_, knowledge) =
        plimsoll_store::open(&plimsoll_store::StoreAddress::new(address.to_string_lossy()))
            .await
            .expect("a store");
    let tenant = tenant("t");
    let settings = AnswerSettings { enabled: true, most_entries: 2, ..AnswerSettings::default() };
    let cache = AnswerCache {
        knowledge: &*knowledge,
        embedder: None,
        tenant: &tenant,
        settings: &settings,
    };
    let page = artefact("t", "page", "text");
    knowledge.put_artefact(&page).await.expect("stored");
    let used = [page.reference.print()];
    let keep = async |text: &str, at: i64| {
        let question = AnswerQuestion { text, signature: "s" };
        keep_answer(&cache, &question, "so", &used, MillisSinceEpoch(at)).await.expect("kept")
    };
    let hits = async |text: &str| {
        let question = AnswerQuestion { text, signature: "s" };
        match find_answer(&cache, &question, NOW).await.expect("an answer") {
            AnswerMatch::Exact(answer) => Some(answer.hit_count),
            _ => None,
        }
    };
    keep("a?", 1).await;
    let key = keep("b?", 2).await;
    assert_eq!((hits("a?").await, hits("a?").await), (Some(1), Some(2)));
    keep("c?", 3).await;
    assert_eq!(hits("a?").await, None, "the oldest went");
    assert_eq!(hits("b?").await, Some(1));
    evict_answer(&*knowledge, &tenant, &key[..10]).await.expect("evicted");
    assert_eq!(hits("b?").await, None);
    assert_eq!(ref_changed(&*knowledge, &tenant, &used[0]).await.expect("dropped"), 1);
    assert_eq!(hits("c?").await, None);
}
