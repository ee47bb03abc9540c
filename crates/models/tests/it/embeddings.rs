//! Embeddings over HTTP.

use std::sync::Arc;

use plimsoll_engine::{Embedder, ModelError};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::{Value, json};

use crate::start::{Started, start, up};

fn embedder(upstream: &ScriptedServer, settings: &str) -> (Arc<dyn Embedder>, Started) {
    let config = format!("{}\n[embedder]\nmodel = 'up/e'\n{settings}", up("chat", ""));
    let started = start(upstream, &config);
    (started.models.embedder().expect("sound").expect("one is named"), started)
}

fn vectors(rows: &[(usize, [f32; 2])]) -> Scripted {
    let data: Vec<Value> =
        rows.iter().map(|(index, vector)| json!({"index": index, "embedding": vector})).collect();
    Scripted::body(200, json!({"data": data, "usage": {"prompt_tokens": 7}}).to_string())
}

#[tokio::test]
async fn texts_go_in_batches_and_vectors_come_back_in_order() {
    let upstream = ScriptedServer::start([
        vectors(&[(1, [0.0, 2.0]), (0, [3.0, 4.0])]),
        vectors(&[(0, [-1.0, 0.0])]),
    ])
    .await;
    let (embedder, _started) = embedder(&upstream, "dimension = 2\nbatch = 2");
    assert_eq!((embedder.model(), embedder.dimension()), ("up/e", 2));
    let found = embedder.embed(&["a", " ", "b", "c"]).await.expect("vectors");
    let numbers: Vec<&[f32]> = found.iter().map(|embedding| &*embedding.vector).collect();
    assert_eq!(numbers, [&[0.6, 0.8][..], &[0.0, 0.0], &[0.0, 1.0], &[-1.0, 0.0]]);
    assert!(found.iter().all(|embedding| embedding.model == "up/e"));
    let bodies: Vec<Value> = upstream
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .collect();
    assert_eq!(
        bodies,
        [
            json!({"model": "e", "input": ["a", "b"], "encoding_format": "float"}),
            json!({"model": "e", "input": ["c"], "encoding_format": "float"})
        ]
    );
    assert_eq!(upstream.requests()[0].path, "/v1/embeddings");
}

#[tokio::test]
async fn vectors_that_are_not_what_was_asked_for_are_unusable() {
    for answer in [
        vectors(&[(0, [1.0, 0.0])]),
        vectors(&[(0, [1.0, 0.0]), (0, [1.0, 0.0])]),
        vectors(&[(0, [1.0, 0.0]), (2, [1.0, 0.0])]),
        vectors(&[(0, [1.0, 0.0]), (1, [1.0, 0.0]), (0, [0.0, 1.0])]),
        Scripted::body(
            200,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}"#,
        ),
        Scripted::body(200, "{}"),
    ] {
        let upstream = ScriptedServer::start([answer]).await;
        let error = embedder(&upstream, "dimension = 2").0.embed(&["a", "b"]).await;
        assert!(matches!(error, Err(ModelError::Unusable(_))), "{error:?}");
        assert_eq!(upstream.requests().len(), 1);
    }
    let upstream =
        ScriptedServer::start([Scripted::body(200, r#"{"error":{"message":"full","code":503}}"#)])
            .await;
    let error = embedder(&upstream, "dimension = 2").0.embed(&["a"]).await.expect_err("full");
    assert!(error.is_temporary());
}

#[tokio::test]
async fn nothing_is_asked_about_nothing() {
    let upstream = ScriptedServer::start([]).await;
    let (embedder, _started) = embedder(&upstream, "dimension = 2");
    assert_eq!(embedder.embed(&[]).await, Ok(Vec::new()));
    assert_eq!(embedder.embed(&["", "\n"]).await.map(|found| found.len()), Ok(2));
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn embeddings_are_under_the_cap() {
    let upstream = ScriptedServer::start([]).await;
    let settings = "dimension = 2\n[spending]\nprocess_dollars = 0.000001\nunknown_model = { input = 1000, output = 0 }";
    let (embedder, _started) = embedder(&upstream, settings);
    assert!(matches!(embedder.embed(&["a"]).await, Err(ModelError::Capped(_))));
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn an_embedder_is_named_with_its_dimension_or_not_at_all() {
    let upstream = ScriptedServer::start([]).await;
    assert!(start(&upstream, "").models.embedder().expect("sound").is_none());
    let error = start(&upstream, "[embedder]\nmodel = 'ollama/e'").models.embedder();
    assert!(error.expect_err("no dimension").to_string().contains("dimension"));
}
