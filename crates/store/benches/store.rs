//! How long searches, appends and opening take: `cargo bench -p plimsoll-store`.
//!
//! Plain timing of whole calls through the ports, as a caller sees them; p50 and p90 over different queries.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

mod random;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, KnowledgeStore as _, MemoryId, MemoryQuery, SearchQuery,
};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{card, memory, message, tenant};
use random::Random;

const DIMENSIONS: usize = 256;
const QUERIES: usize = 100;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        for records in [10_000, 100_000] {
            let folder = tempfile::tempdir().expect("a folder");
            searches(&folder.path().join("store.db"), records).await;
        }
        let folder = tempfile::tempdir().expect("a folder");
        appends(&folder.path().join("store.db")).await;
        observations(&folder.path().join("store.db")).await;
    });
}

async fn searches(path: &Path, records: usize) {
    let mut random = Random(0xBE_2C);
    let store = Arc::new(SqliteStore::open(path).await.expect("a store"));
    let a = tenant("a");
    let start = Instant::now();
    let mut at = 0;
    for first in (0..records).step_by(1_000) {
        let mut batch = HistoryBatch::default();
        let mut waiting = tokio::task::JoinSet::new();
        for number in first..first + 1_000 {
            let text = random.text(40);
            let of = format!("s{}", number / 1_000);
            let record = message(&of, (number % 1_000) as u32, &text);
            let mut about = card("a", &record, &random.text(12));
            about.embedding = Some(random.vector(DIMENSIONS));
            batch.messages.push(record);
            batch.cards.push(about);
            let mut fact = memory("a", &format!("m{number}"), &text);
            fact.id = MemoryId(format!("m{number}"));
            fact.updated_at = MillisSinceEpoch(at);
            at += 1;
            fact.embedding = Some(random.vector(DIMENSIONS));
            let store = store.clone();
            waiting.spawn(async move { store.put_memory(&fact).await.expect("stored") });
        }
        store.append(&a, batch).await.expect("appended");
        while waiting.join_next().await.is_some() {}
    }
    let size = path.metadata().expect("the file").len() / (1 << 20);
    println!("{records} records in {:.1} s, {size} MB", start.elapsed().as_secs_f64());
    drop(store);
    let start = Instant::now();
    let store = SqliteStore::open(path).await.expect("a store");
    println!("  open             {:8.1} ms", milliseconds(start));
    for (name, with_text, with_vector) in
        [("text", true, false), ("vector", false, true), ("fused", true, true)]
    {
        let mut history = Vec::new();
        let mut remembered = Vec::new();
        for number in 0..=QUERIES {
            let query = SearchQuery {
                text: with_text.then(|| random.text(6)),
                embedding: with_vector.then(|| random.vector(DIMENSIONS)),
                limit: 20,
            };
            let start = Instant::now();
            let hits = store.search(&a, None, &query).await.expect("hits");
            let took = milliseconds(start);
            assert!(!hits.is_empty());
            let query = MemoryQuery { search: query, ..MemoryQuery::default() };
            let start = Instant::now();
            let hits = store.memories(&a, &query).await.expect("hits");
            assert!(!hits.is_empty());
            if number > 0 {
                history.push(took);
                remembered.push(milliseconds(start));
            } else {
                println!(
                    "  {name:7} first    {took:8.1} ms, memory {:8.1} ms",
                    milliseconds(start)
                );
            }
        }
        report(name, "messages", history);
        report(name, "memory", remembered);
    }
}

async fn appends(path: &Path) {
    const WRITERS: usize = 64;
    const EACH: usize = 200;
    let store = Arc::new(SqliteStore::open(path).await.expect("a store"));
    let start = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            let mut random = Random(writer as u64 + 1);
            for position in 0..EACH {
                let text = random.text(40);
                let messages = vec![message(&format!("s{writer}"), position as u32, &text)];
                let batch = HistoryBatch { messages, ..HistoryBatch::default() };
                store.append(&tenant("a"), batch).await.expect("appended");
            }
        });
    }
    while writers.join_next().await.is_some() {}
    let rate = (WRITERS * EACH) as f64 / start.elapsed().as_secs_f64();
    println!("append, {WRITERS} callers of one message each: {rate:.0} messages/s");
    let start = Instant::now();
    let mut random = Random(7);
    for group in 0..100 {
        let of = format!("g{group}");
        let messages = (0..200).map(|position| message(&of, position, &random.text(40))).collect();
        let batch = HistoryBatch { messages, ..HistoryBatch::default() };
        store.append(&tenant("a"), batch).await.expect("appended");
    }
    let rate = 20_000.0 / start.elapsed().as_secs_f64();
    println!("append, one caller of 200 messages: {rate:.0} messages/s");
}

/// Turns of three messages each, with and without the cards that observing adds, and the jobs behind them.
async fn observations(path: &Path) {
    const TURNS: u32 = 400;
    let store = SqliteStore::open(path).await.expect("a store");
    let (a, settings) = (tenant("a"), CardSettings::default());
    let observer =
        MessageObserver { history: &store, knowledge: &store, tenant: &a, settings: &settings };
    let (mut random, now) = (Random(11), MillisSinceEpoch(0));
    let mut times = [const { Vec::new() }; 3];
    for turn in 0..TURNS {
        let is_observed = turn % 2 == 1;
        let of = if is_observed { "observed" } else { "plain" };
        let from = turn / 2 * 3;
        let messages = [20, 400, 80].iter().zip(from..);
        let messages = messages.map(|(words, at)| message(of, at, &random.text(*words))).collect();
        let mut batch = HistoryBatch { messages, ..HistoryBatch::default() };
        let start = Instant::now();
        let mut new = Vec::new();
        if is_observed {
            new = observer.add_cards(&mut batch, |_| false, now).await.expect("cards");
        }
        store.append(&a, batch).await.expect("appended");
        times[usize::from(is_observed)].push(milliseconds(start));
        let start = Instant::now();
        if is_observed {
            observer.queue(&new, now).await.expect("queued");
            times[2].push(milliseconds(start));
        }
    }
    println!("a turn of three messages:");
    for (name, times) in ["plain", "cards", "jobs"].into_iter().zip(times) {
        report(name, "append", times);
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn report(name: &str, of: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!("  {name:7} {of:8} p50 {:6.1} ms, p90 {:6.1} ms", at(0.5), at(0.9));
}
