//! Memory over a store: assembled when the user says something, put behind the user's message, and refreshed by appending.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_core::memory::assemble::MemoryContext;
use plimsoll_core::memory::question::MemoryQuestion;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::{Message, Tokenizer};
use plimsoll_engine::assemble::{
    AssembleSettings, Assembler, AssemblyReceipt, AssemblyTurn, FrameBook, Refreshed,
    record_assembly,
};
use plimsoll_engine::live::AddedMemory;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Scope, SessionId, TenantId,
};

use crate::ports::{Memory, Recalled};

/// The most sessions whose last assembly is kept; beyond it all are forgotten, and the next question of each makes a new one
/// (chosen: at some 8,000 tokens each, a few megabytes).
const SESSIONS: usize = 256;
/// The tokenizer that counts what is added.
const TOKENIZER: Tokenizer = Tokenizer::O200k { factor: 1.0 };

/// Memory in a store.
#[derive(Debug)]
pub struct StoredMemory {
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    embedder: Option<Arc<dyn Embedder>>,
    clock: Arc<dyn Clock>,
    frames: FrameBook,
    settings: AssembleSettings,
    identity: String,
    memories: Memories,
    /// The last assembly of each session, by which the next question decides whether anything is new.
    last: Mutex<HashMap<(TenantId, SessionId), MemoryContext>>,
}

impl StoredMemory {
    /// Makes the memory of a gateway; without an `embedder` records are found by their words.
    pub fn new(
        config: &MemoryConfig,
        request: &RequestSettings,
        frames: FrameBook,
        (history, knowledge): (Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>),
        embedder: Option<Arc<dyn Embedder>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            history,
            knowledge,
            embedder,
            clock,
            frames,
            settings: config.assemble(request),
            identity: config.identity.clone(),
            memories: Memories::new(config.search.clone()),
            last: Mutex::default(),
        }
    }
}

impl StoredMemory {
    /// Returns the last assembly of a session.
    fn last(&self, key: &(TenantId, SessionId)) -> Option<MemoryContext> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn remember(&self, key: (TenantId, SessionId), context: MemoryContext) {
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SESSIONS && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, context);
    }
}

#[async_trait]
impl Memory for StoredMemory {
    async fn recalled(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        messages: &[Arc<Message>],
        shown: &BTreeSet<Arc<str>>,
        most: Option<u64>,
    ) -> Option<Recalled> {
        let question = MemoryQuestion::of(messages)?;
        let scope = Scope { session: Some(session.clone()), ..Scope::default() };
        let began = self.clock.now();
        let key = (tenant.clone(), session.clone());
        // After a compaction nothing stands any more, and everything is new.
        let previous = if shown.is_empty() { None } else { self.last(&key) };
        let turn = AssemblyTurn {
            scope: &scope,
            text: &question.text,
            frame: None,
            tags: &[],
            budget: None,
            focus: None,
            about_to_act: question.is_decision_point,
            force_refresh: false,
            previous: previous.as_ref(),
            now: began,
        };
        let assembler = Assembler {
            history: &*self.history,
            knowledge: &*self.knowledge,
            embedder: self.embedder.as_deref(),
            tenant,
            frames: &self.frames,
            settings: &self.settings,
            tokenizer: TOKENIZER,
            identity: &self.identity,
            rules: "",
            profile: "",
            recall: None,
        };
        // The question itself is the task, and the request has it already.
        let task = Some(("", OPERATOR));
        let mut found = assembler.memory(&self.memories, &turn, task, None).await;
        // The frame sets the budget; the request may leave less.
        if let (Ok(memory), Some(most)) = (&found, most)
            && memory.context.used > most
        {
            found = assembler.memory(&self.memories, &turn, task, Some(most)).await;
        }
        let memory = match found {
            Ok(memory) => memory,
            Err(error) => {
                tracing::warn!(%error, "memory has no part in this request");
                return None;
            }
        };
        // What stands in the context stays there: nothing of it is evicted, and nothing is said twice.
        if matches!(memory.refreshed, Refreshed::Kept | Refreshed::Evicted) {
            return None;
        }
        let new = memory.context.without(|id| shown.contains(id), TOKENIZER);
        let records: Vec<Arc<str>> = new
            .items()
            .filter(|item| !item.id.is_empty())
            .map(|item| item.id.as_str().into())
            .collect();
        if records.is_empty() {
            return None;
        }
        let position = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let took = (self.clock.now().0 - began.0) as f64;
        let assembly = AssemblyReceipt::of_memory(&memory, position, took);
        self.remember(key, memory.context);
        let added = AddedMemory { text: new.text().into(), records };
        Some(Recalled { added, assembly: Some(assembly) })
    }

    async fn note(&self, tenant: &TenantId, session: &SessionId, assembly: &AssemblyReceipt) {
        let now = self.clock.now();
        if let Err(error) = record_assembly(&*self.history, tenant, session, assembly, now).await {
            tracing::warn!(%error, "an assembly is not counted");
        }
    }
}
