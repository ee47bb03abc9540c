//! A store in memory, which keeps every rule of the ports and writes nothing to a disk.

mod answers;
mod artefacts;
mod forgetting;
mod history;
mod jobs;
mod knowledge;
mod memories;
mod ranking;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_engine::{
    Answer, Artefact, ContextCard, Job, MemoryRecord, MemoryVersion, MessageRecord, ReceiptRecord,
    StoreError, TenantId, ToolSchema,
};

type StoreResult<T> = Result<T, StoreError>;

/// A store in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tenants: Mutex<HashMap<TenantId, Records>>,
}

/// The records of one tenant.
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
    /// By id.
    memories: BTreeMap<String, MemoryHistory>,
    /// Counts the changes and the removals of memories.
    memory_version: MemoryVersion,
    /// Keys of what was forgotten.
    tombstones: BTreeSet<String>,
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

/// A memory record with its earlier states.
#[derive(Debug)]
struct MemoryHistory {
    present: MemoryRecord,
    /// The change that put the present state.
    generation: i64,
    /// By `updated_at`.
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

fn not_found<T>(what: String) -> StoreResult<T> {
    Err(StoreError::NotFound { what })
}

/// Removes entries and returns how many they were.
fn remove<K: Ord, V>(entries: &mut BTreeMap<K, V>, is_gone: impl Fn(&V) -> bool) -> u64 {
    entries.extract_if(.., |_, value| is_gone(value)).count() as u64
}
