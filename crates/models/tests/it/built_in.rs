//! The built-in embedder beside the table and the tokenizer that it was made from.

use plimsoll_core::recall::WordVectors;
use plimsoll_engine::Embedder;
use plimsoll_models::BuiltInEmbedder;
use serde::Deserialize;

/// What `scripts/make-embedder.py` wrote: token ids of the reference, and the mean of its unrounded vectors.
#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u16>,
    vector: Vec<f32>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("word_vectors.json")).expect("the script writes JSON")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn tokens_are_those_of_the_reference() {
    for case in cases() {
        assert_eq!(BuiltInEmbedder.tokens(&case.text), case.ids, "{:?}", case.text);
    }
    assert!(BuiltInEmbedder.tokens("").is_empty());
}

#[test]
fn four_bits_keep_the_direction() {
    for case in cases() {
        let likeness = cosine(&BuiltInEmbedder.vector(&case.text), &case.vector);
        // Measured: .990 for a single token, .995 and more for a sentence.
        assert!(likeness > 0.985, "{:?}: {likeness}", case.text);
    }
}

#[test]
fn what_means_alike_is_alike() {
    let vector = |text: &str| BuiltInEmbedder.vector(text);
    let ship = vector("the ship left the harbour");
    assert!(
        cosine(&ship, &vector("a boat sailed from the port"))
            > cosine(&ship, &vector("the function returns an integer")) + 0.1
    );
}

#[test]
fn words_are_means_and_any_text_is_taken() {
    let mut word = vec![1.0; BuiltInEmbedder::DIMENSION];
    BuiltInEmbedder.word("", &mut word);
    assert!(word.iter().all(|part| *part == 0.0));
    BuiltInEmbedder.word("unloading", &mut word);
    let length = word.iter().map(|part| part * part).sum::<f32>().sqrt();
    let direction: Vec<f32> = word.iter().map(|part| part / length).collect();
    assert!(cosine(&direction, &BuiltInEmbedder.vector("unloading")) > 0.9999);
    for odd in
        ["\0", "\u{10FFFF}", "\u{2581}\u{2581} \u{2581}", &"a".repeat(100_000), &" ".repeat(10_000)]
    {
        let vector = BuiltInEmbedder.vector(odd);
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-3, "{odd:.20}");
    }
}

#[tokio::test]
async fn a_batch_keeps_its_order() {
    let texts = ["a ship", "", "an integer"];
    let batch = BuiltInEmbedder.embed(&texts).await.expect("nothing can fail");
    assert_eq!(batch.len(), 3);
    assert_eq!(batch[0].vector, BuiltInEmbedder.vector("a ship"));
    assert!(batch[1].vector.iter().all(|part| *part == 0.0));
    for embedding in batch {
        assert_eq!(embedding.model, BuiltInEmbedder.model());
        assert_eq!(embedding.vector.len(), Embedder::dimension(&BuiltInEmbedder));
    }
}
