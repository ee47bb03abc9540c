//! How long it takes to find and assemble what is known: `cargo bench -p plimsoll-store --bench memory`.
//!
//! Plain timing of whole calls through the engine, on a file, with a vector of 128 numbers for each record; p50 and p90 over
//! different questions. What an embedder takes is not in it.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

mod random;

use std::path::Path;
use std::time::Instant;

use async_trait::async_trait;
use plimsoll_core::memory::MemoryKind;
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use plimsoll_engine::assemble::{AssembleSettings, Assembler, AssemblyTurn, FrameBook};
use plimsoll_engine::memories::{AskedMemory, Memories, MemorySearch};
use plimsoll_engine::{
    Embedder, Embedding, KnowledgeStore as _, MemoryId, MemoryRecord, ModelError, Scope,
};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{memory, tenant};
use random::Random;

const DIMENSIONS: usize = 128;
const QUESTIONS: usize = 200;
const NOW: MillisSinceEpoch = MillisSinceEpoch(1_700_000_000_000);

/// Gives a vector that follows from the text, at once.
#[derive(Debug)]
struct Prompt;

#[async_trait]
impl Embedder for Prompt {
    fn model(&self) -> &'static str {
        "m"
    }

    fn dimension(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, ModelError> {
        let seed = |text: &str| text.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte));
        Ok(texts.iter().map(|text| Random(seed(text) | 1).vector(DIMENSIONS)).collect())
    }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        for records in [10_000, 100_000] {
            let folder = tempfile::tempdir().expect("a folder");
            measure(&folder.path().join("store.db"), records).await;
        }
    });
}

fn record(random: &mut Random, number: usize) -> MemoryRecord {
    let mut record = memory("a", &format!("r{number}"), &random.text(14));
    record.id = MemoryId(format!("r{number}"));
    // As the document has them: 2,000 decisions, 5,000 facts, 1,500 episodes, 200 procedures, 100 censors.
    record.kind = match number % 88 {
        0..=19 => MemoryKind::Decision,
        20..=34 => MemoryKind::Episode,
        35..=36 => MemoryKind::Procedure,
        _ => MemoryKind::Fact,
    };
    record.state = plimsoll_core::memory::score::first_state(record.kind);
    record.summary = (record.kind != MemoryKind::Fact).then(|| random.text(50));
    record.created_at = MillisSinceEpoch(NOW.0 - i64::from(number as u32 % 400) * 86_400_000);
    record.updated_at = record.created_at;
    record.event_at = None;
    record.source_ref = None;
    record.embedding = Some(random.vector(DIMENSIONS));
    record
}

async fn measure(path: &Path, records: usize) {
    let mut random = Random(0xBE_2C);
    let a = tenant("a");
    let store = SqliteStore::open(path).await.expect("a store");
    for first in (0..records).step_by(1000) {
        let some: Vec<MemoryRecord> =
            (first..first + 1000).map(|number| record(&mut random, number)).collect();
        store.put_memories(&a, &some).await.expect("stored");
    }
    drop(store);
    let frames = FrameBook::new(Frames::built_in(), Some(&Prompt)).await.expect("frames");
    let settings = AssembleSettings::default();
    let search = MemorySearch::default();
    let scope = Scope::default();

    let began = Instant::now();
    let store = SqliteStore::open(path).await.expect("a store");
    let memories = Memories::new(search.clone());
    let assembler = Assembler {
        history: &store,
        knowledge: &store,
        embedder: Some(&Prompt),
        tenant: &a,
        frames: &frames,
        settings: &settings,
        tokenizer: Tokenizer::Estimate,
        identity: "An agent.",
        rules: "",
        profile: "",
        recall: None,
    };
    let question = random.text(8);
    assembler.memory(&memories, &turn(&scope, &question), None, None).await.expect("assembled");
    println!("{records} records: cold start, opening included, {:.1} ms", milliseconds(began));

    for (name, tokenizer) in
        [("estimated tokens", Tokenizer::Estimate), ("o200k", Tokenizer::O200k { factor: 1.0 })]
    {
        let assembler = Assembler { tokenizer, ..assembler };
        let mut times = Vec::new();
        for asked in 0..=QUESTIONS {
            let question = random.text(8);
            let began = Instant::now();
            let found = assembler
                .memory(&memories, &turn(&scope, &question), None, None)
                .await
                .expect("found");
            // The first one builds the vocabulary's tables.
            if asked > 0 {
                times.push(milliseconds(began));
            }
            assert!(found.found > 0);
        }
        report(&format!("assembly, {name}"), times);
    }

    let mut times = Vec::new();
    for _ in 0..QUESTIONS {
        let question = random.text(8);
        let vector = random.vector(DIMENSIONS);
        let began = Instant::now();
        let known = memories.of(&store, &a).await.expect("records");
        let asked = AskedMemory {
            question: &question,
            vector: Some(&vector),
            scope: &scope,
            tags: &[],
            now: NOW,
        };
        assert!(
            !known
                .search(&asked, &search, &plimsoll_core::memory::score::StateFactors::default())
                .is_empty()
        );
        times.push(milliseconds(began));
    }
    report("facts", times);
}

fn turn<'a>(scope: &'a Scope, text: &'a str) -> AssemblyTurn<'a> {
    AssemblyTurn {
        scope,
        text,
        frame: Some("decision"),
        tags: &[],
        budget: None,
        focus: None,
        about_to_act: false,
        force_refresh: false,
        previous: None,
        now: NOW,
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!("  {name:26} p50 {:6.2} ms, p90 {:6.2} ms", at(0.5), at(0.9));
}
