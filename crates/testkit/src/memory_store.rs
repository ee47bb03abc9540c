//! A store in memory: nothing is kept, and every rule of the ports is.

mod history;
mod knowledge;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_engine::{
    Answer, Artefact, ContextCard, Embedding, Hit, Job, MemoryRecord, MemoryVersion, MessageRecord,
    ReceiptRecord, SearchQuery, TenantId, ToolSchema, fuse, words,
};

/// A store in memory, for tests and for a process that keeps nothing.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tenants: Mutex<HashMap<TenantId, Records>>,
}

/// What one tenant has.
#[derive(Debug, Default)]
struct Records {
    /// By session, in the order of positions.
    messages: BTreeMap<String, Vec<MessageRecord>>,
    /// By session, turn and strategy.
    receipts: BTreeMap<(String, u32, String), ReceiptRecord>,
    /// By session and content hash.
    cards: BTreeMap<(String, String), ContextCard>,
    /// Messages and receipts in the order of their arrival.
    arrivals: Vec<Arrival>,
    /// By kind, digest and view.
    artefacts: BTreeMap<(String, String, Option<String>), Artefact>,
    /// By id: the states in the order of `updated_at`, and the present one.
    memories: BTreeMap<String, Memory>,
    /// Counts of their changes and removals, and at which change each was put.
    memory_version: MemoryVersion,
    jobs: Vec<Job>,
    last_job: i64,
    /// By server and tool.
    schemas: BTreeMap<(String, String), ToolSchema>,
    answers: BTreeMap<String, Answer>,
}

#[derive(Debug)]
enum Arrival {
    Message(String, u32),
    Receipt(String, u32, String),
}

#[derive(Debug)]
struct Memory {
    present: MemoryRecord,
    generation: i64,
    states: BTreeMap<i64, MemoryRecord>,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the content of every message and artefact without changing its hash, as a failing disk would.
    pub fn spoil(&self) {
        for records in self.lock().values_mut() {
            for message in records.messages.values_mut().flatten() {
                message.message.blocks.push(plimsoll_core::Block::Text("spoilt".into()));
            }
            for artefact in records.artefacts.values_mut() {
                artefact.content.push(0);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, Records>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, tenant: &TenantId, run: impl FnOnce(&mut Records) -> T) -> T {
        run(self.lock().entry(tenant.clone()).or_default())
    }
}

/// Ranks documents by words and vector: indexes into `documents`, best first.
fn rank(documents: &[(Vec<String>, Option<&Embedding>)], query: &SearchQuery) -> Vec<Hit<usize>> {
    let by_text = query.text.as_ref().map(|text| {
        let asked: HashSet<String> = words(text).collect();
        let holds: HashMap<&String, usize> = asked
            .iter()
            .map(|word| (word, documents.iter().filter(|(has, _)| has.contains(word)).count()))
            .collect();
        scored(documents.iter().map(|(has, _)| {
            let score = asked
                .iter()
                .map(|word| {
                    let count = has.iter().filter(|other| *other == word).count() as f64;
                    let rarity = (1.0 + documents.len() as f64 / (1.0 + holds[word] as f64)).ln();
                    rarity * count / (count + 0.5 + has.len() as f64 / 50.0)
                })
                .sum::<f64>();
            (score > 0.0).then_some(score)
        }))
    });
    let by_vector = query.embedding.as_ref().map(|asked| {
        scored(documents.iter().map(|(_, has)| has.and_then(|has| cosine(asked, has))))
    });
    match (by_text, by_vector) {
        (Some(text), Some(vector)) => {
            let order = |hits: Vec<Hit<usize>>| hits.into_iter().map(|hit| hit.item).collect();
            fuse(&[order(text), order(vector)], query.limit)
        }
        (Some(mut hits), None) | (None, Some(mut hits)) => {
            hits.truncate(query.limit);
            hits
        }
        (None, None) => Vec::new(),
    }
}

fn scored(scores: impl Iterator<Item = Option<f64>>) -> Vec<Hit<usize>> {
    let mut hits: Vec<Hit<usize>> = scores
        .enumerate()
        .filter_map(|(item, score)| score.map(|score| Hit { item, score }))
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits
}

/// The cosine of two unit vectors; `None` if they are of different models or lengths.
fn cosine(a: &Embedding, b: &Embedding) -> Option<f64> {
    let alike = a.model == b.model && a.vector.len() == b.vector.len();
    alike.then(|| a.vector.iter().zip(&b.vector).map(|(a, b)| f64::from(a * b)).sum())
}
