//! The transformer on this machine: run where `PLIMSOLL_TEST_ONNX` names a folder with `model.onnx` and `tokenizer.json`, and
//! `PLIMSOLL_TEST_ONNXRUNTIME` the library.

use std::sync::Arc;

use plimsoll_engine::Embedder;
use plimsoll_testkit::upstream::ScriptedServer;

use crate::start::start;

/// What the tests are told: folder and library.
fn files() -> Option<(String, String)> {
    #[expect(clippy::disallowed_methods, reason = "a test is told here where its model is")]
    let files = std::env::var("PLIMSOLL_TEST_ONNX")
        .ok()
        .zip(std::env::var("PLIMSOLL_TEST_ONNXRUNTIME").ok());
    if files.is_none() {
        #[expect(
            clippy::print_stderr,
            reason = "a check that was skipped must not look like one that passed"
        )]
        {
            eprintln!("skipped: PLIMSOLL_TEST_ONNX or PLIMSOLL_TEST_ONNXRUNTIME is not set");
        }
    }
    files
}

async fn open(folder: &str, library: &str, more: &str) -> Result<Arc<dyn Embedder>, String> {
    let upstream = ScriptedServer::start([]).await;
    let config = format!("[embedder]\nmodel = 'onnx/{folder}'\nlibrary = '{library}'\n{more}");
    let embedder =
        start(&upstream, &config).models.embedder().map_err(|error| error.to_string())?;
    Ok(embedder.expect("one is named"))
}

#[tokio::test]
async fn texts_of_like_meaning_have_like_vectors() {
    let Some((folder, library)) = files() else { return };
    let embedder = open(&folder, &library, "batch = 2").await.expect("it opens");
    let texts =
        ["How do I reset my password?", "", "I forgot my login.", "The ship is deep in the water."];
    let found = embedder.embed(&texts).await.expect("vectors");
    assert!(found.iter().all(|found| found.vector.len() == embedder.dimension()));
    let like = |a: usize, b: usize| -> f32 {
        found[a].vector.iter().zip(&found[b].vector).map(|(a, b)| a * b).sum()
    };
    assert!((like(0, 0) - 1.0).abs() < 1e-4, "{}", like(0, 0));
    assert!(found[1].vector.iter().all(|number| *number == 0.0));
    assert!(like(0, 2) > like(0, 3) + 0.2, "{} {}", like(0, 2), like(0, 3));
    let alone = embedder.embed(&texts[..1]).await.expect("a vector");
    let same: f32 = alone[0].vector.iter().zip(&found[0].vector).map(|(a, b)| a * b).sum();
    // An int8 model scales by the batch, so its padding shows a little.
    assert!(same > 0.98, "{same}");
    assert!(open(&folder, &library, "dimension = 3").await.is_err());
    assert!(open("/nowhere", &library, "").await.is_err());
}

#[tokio::test]
async fn a_library_that_is_none_is_an_error() {
    let error = open("/nowhere", "/nowhere.so", "").await.expect_err("no library");
    assert!(error.contains("library"), "{error}");
}
