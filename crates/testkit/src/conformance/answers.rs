//! Checks of cached answers in the knowledge port.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Answer, AnswerQuota};

use super::{NOW, SharedKnowledge};
use crate::sample::{answer, embedding, tenant};

async fn put(store: &SharedKnowledge, answer: &Answer) {
    store.put_answer(answer).await.expect("an answer that is in order");
}

async fn live_answer(store: &SharedKnowledge, key: &str, now: MillisSinceEpoch) -> Option<Answer> {
    store.answer(&tenant("a"), key, now).await.expect("read")
}

pub async fn answers_live_until_their_time(store: SharedKnowledge) {
    let mut kept = answer("a", "k");
    kept.ttl_expires_at = Some(NOW);
    kept.query_embedding = Some(embedding("m", 0.0));
    put(&store, &kept).await;
    let before = MillisSinceEpoch(NOW.0 - 1);
    live_answer(&store, "k", before).await.expect("alive");
    let read = live_answer(&store, "k", before).await.expect("alive");
    kept.hit_count = 2;
    kept.last_hit_at = Some(before);
    assert_eq!(read, kept);
    assert_eq!(live_answer(&store, "k", NOW).await, None);
    assert_eq!(live_answer(&store, "other", before).await, None);
    let mut replaced = answer("a", "k");
    replaced.answer_text = "another".into();
    replaced.hit_count = 7;
    put(&store, &replaced).await;
    let read = live_answer(&store, "k", NOW).await.expect("alive");
    assert_eq!((read.answer_text.as_str(), read.hit_count), ("another", 8));
}

pub async fn similar_answers_share_a_signature_and_a_model(store: SharedKnowledge) {
    let kept = |key: &str, model: &str, angle: f32| {
        let query_embedding = Some(embedding(model, angle));
        Answer { query_embedding, ..answer("a", key) }
    };
    let (near, far) = (kept("near", "m", 5.0), kept("far", "m", 50.0));
    let mut elsewhere = kept("elsewhere", "m", 0.0);
    elsewhere.context_signature = "another".into();
    let mut past = kept("past", "m", 0.0);
    past.ttl_expires_at = Some(NOW);
    let other = kept("other model", "n", 0.0);
    for answer in [&far, &near, &other, &elsewhere, &past, &answer("a", "without")] {
        put(&store, answer).await;
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

pub async fn answers_are_dropped_by_key_and_by_ref(store: SharedKnowledge) {
    let a = tenant("a");
    for (key, used) in [("1", "r"), ("2", "r"), ("3", "q"), ("4", "q")] {
        let mut kept = answer("a", key);
        kept.used_refs = vec![used.into(), "both".into()];
        put(&store, &kept).await;
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

pub async fn answers_are_listed_newest_first_and_trimmed(store: SharedKnowledge) {
    let a = tenant("a");
    for (key, at, text) in [("old", 1, "four"), ("b", 3, "four"), ("a", 3, "fünf"), ("new", 9, "")]
    {
        let mut kept = answer("a", key);
        (kept.created_at, kept.query_text) = (MillisSinceEpoch(at), text.into());
        kept.answer_text = "six666".into();
        kept.ttl_expires_at = (key == "new").then_some(NOW);
        put(&store, &kept).await;
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
    let none = AnswerQuota { entries: 0, bytes: 0 };
    assert_eq!(store.trim_answers(&tenant("b"), NOW, none).await.expect("trimmed"), 0);
    assert_eq!(trim(NOW, 1, roomy).await, 1, "by entries");
    assert_eq!(keys(9).await, named(&["a"]));
    assert_eq!(trim(NOW, 0, roomy).await, 1);
}
