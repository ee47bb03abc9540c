//! Memory over a store: assembled when the user says something, put behind the user's message, and refreshed by appending.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_core::memory::assemble::MemoryContext;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, Tokenizer};
use plimsoll_engine::assemble::{
    AssembleSettings, AssembledMemory, Assembler, AssemblyReceipt, AssemblyTurn, FrameBook,
    Refreshed, record_assembly,
};
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Scope, SessionId, TenantId,
};

use crate::ports::Memory;

/// The most sessions whose memory is known to stand in their context; beyond it all are forgotten, and each gets its memory
/// once more (chosen: at some 8,000 tokens each, a few megabytes).
const SESSIONS: usize = 256;
/// The tokenizer that counts what is added.
const TOKENIZER: Tokenizer = Tokenizer::O200k { factor: 1.0 };

/// What stands in the context of a session.
#[derive(Debug)]
struct ShownMemory {
    /// The last assembly, by which the next turn decides whether anything is new.
    context: MemoryContext,
    /// Ids of all records that stand in the context.
    ids: HashSet<String>,
    /// The message behind which the last part stands: after a compaction it is gone, and what was shown with it.
    behind: ContentHash,
}

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
    shown: Mutex<HashMap<(TenantId, SessionId), ShownMemory>>,
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
            shown: Mutex::default(),
        }
    }
}

impl StoredMemory {
    /// Returns what stands in the context of a session already: the last assembly and all ids.
    fn standing(
        &self,
        key: &(TenantId, SessionId),
        messages: &[Arc<Message>],
    ) -> Option<(MemoryContext, HashSet<String>)> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let one = shown.get(key)?;
        let stands = messages.iter().any(|message| ContentHash::of(message) == one.behind);
        stands.then(|| (one.context.clone(), one.ids.clone()))
    }

    /// Remembers what stands in the context of a session behind its newest message.
    fn stand(&self, key: (TenantId, SessionId), shown: ShownMemory) {
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SESSIONS && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, shown);
    }

    /// Records an assembly for the metrics of memory, once its session is in the store; a failure is logged.
    async fn record(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        messages: usize,
        memory: &AssembledMemory,
        began: MillisSinceEpoch,
    ) {
        let now = self.clock.now();
        let position = u32::try_from(messages).unwrap_or(u32::MAX);
        let receipt = AssemblyReceipt::of_memory(memory, position, (now.0 - began.0) as f64);
        let recorded = match self.history.session(tenant, session).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => record_assembly(&*self.history, tenant, session, &receipt, now).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tracing::warn!(%error, "an assembly is not counted");
        }
    }
}

#[async_trait]
impl Memory for StoredMemory {
    async fn recalled(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        messages: &[Arc<Message>],
        most: Option<u64>,
    ) -> Option<String> {
        // A request that continues a task asks nothing new.
        let newest = messages.last().filter(|message| message.role == Role::User)?;
        let question = newest.shown();
        let scope = Scope { session: Some(session.clone()), ..Scope::default() };
        let began = self.clock.now();
        let key = (tenant.clone(), session.clone());
        let (previous, mut ids) = self.standing(&key, messages).unzip();
        let turn = AssemblyTurn {
            scope: &scope,
            text: &question,
            frame: None,
            tags: &[],
            budget: None,
            focus: None,
            about_to_act: false,
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
        match found {
            Ok(memory) => {
                // What stands in the context stays there: nothing of it is evicted, and nothing is said twice.
                if matches!(memory.refreshed, Refreshed::Kept | Refreshed::Evicted) {
                    return None;
                }
                let mut ids = ids.take().unwrap_or_default();
                let new = memory.context.without(|id| ids.contains(id), TOKENIZER);
                if !new.items().any(|item| !item.id.is_empty()) {
                    return None;
                }
                self.record(tenant, session, messages.len(), &memory, began).await;
                ids.extend(new.items().map(|item| item.id.clone()));
                let behind = ContentHash::of(newest);
                self.stand(key, ShownMemory { context: memory.context, ids, behind });
                Some(new.text())
            }
            Err(error) => {
                tracing::warn!(%error, "memory has no part in this request");
                None
            }
        }
    }
}
