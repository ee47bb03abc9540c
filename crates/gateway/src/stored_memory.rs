//! Memory over a store: assembled when the user says something, and put behind the user's message.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::{Message, MillisSinceEpoch, Role, Tokenizer};
use plimsoll_engine::assemble::{
    AssembleSettings, AssembledMemory, Assembler, AssemblyReceipt, AssemblyTurn, FrameBook,
    record_assembly,
};
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    Clock, Embedder, HistoryStore, KnowledgeStore, MemoryConfig, Scope, SessionId, TenantId,
};

use crate::ports::Memory;

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
        }
    }
}

impl StoredMemory {
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
        let turn = AssemblyTurn {
            scope: &scope,
            text: &question,
            frame: None,
            tags: &[],
            budget: None,
            focus: None,
            about_to_act: false,
            force_refresh: false,
            previous: None,
            now: began,
        };
        let assembler = Assembler {
            history: &*self.history,
            knowledge: &*self.knowledge,
            embedder: self.embedder.as_deref(),
            tenant,
            frames: &self.frames,
            settings: &self.settings,
            tokenizer: Tokenizer::O200k { factor: 1.0 },
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
                let is_known = memory.context.items().any(|item| !item.id.is_empty());
                if is_known {
                    self.record(tenant, session, messages.len(), &memory, began).await;
                }
                is_known.then(|| memory.context.text())
            }
            Err(error) => {
                tracing::warn!(%error, "memory has no part in this request");
                None
            }
        }
    }
}
