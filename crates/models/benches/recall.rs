//! How long the built-in embedder, an index and a question take: `cargo bench -p plimsoll-models -- TURNS.jsonl QUERIES.jsonl`.
//!
//! The files are those of `plimsoll import` and `plimsoll recall --batch`. Without them it measures nothing: what a question
//! costs depends on how words are spread, and made-up text spreads them wrongly.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::recall::{IndexedMessage, RecallIndex, RecallSettings};
use plimsoll_models::BuiltInEmbedder;
use serde::Deserialize;

#[derive(Deserialize)]
struct Turn {
    #[serde(default)]
    session: String,
    speaker: Option<String>,
    text: String,
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

fn main() {
    let mut files = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let (Some(turns), Some(queries)) = (files.next(), files.next()) else {
        println!("give TURNS.jsonl and QUERIES.jsonl");
        return;
    };
    let turns: Vec<Turn> = lines(&turns);
    let queries: Vec<Query> = lines(&queries);

    let begun = Instant::now();
    let sum: f32 = turns.iter().map(|turn| BuiltInEmbedder.vector(&turn.text)[0]).sum();
    let took = begun.elapsed().as_secs_f64();
    println!("embed: {:.0} texts/s on one core ({sum:.1})", turns.len() as f64 / took);

    let begun = Instant::now();
    let mut index = RecallIndex::new(RecallSettings::default(), Some(Arc::new(BuiltInEmbedder)));
    index.add(turns.iter().map(|turn| IndexedMessage {
        session: &turn.session,
        role: plimsoll_core::Role::User,
        speaker: turn.speaker.as_deref(),
        time: None,
        text: &turn.text,
    }));
    index.embed();
    println!("index: {} messages in {:.0?}", index.len(), begun.elapsed());

    let mut times: Vec<Duration> = queries
        .iter()
        .map(|query| {
            let begun = Instant::now();
            std::hint::black_box(index.search(&query.query));
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("search: p50 {:.2?}, p90 {:.2?}, p99 {:.2?}", at(50), at(90), at(99));
}

fn lines<T: for<'a> Deserialize<'a>>(path: &str) -> Vec<T> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of the right form")).collect()
}
