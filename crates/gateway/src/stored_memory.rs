//! Memory over a store: assembled when the user says something, and put behind the user's message.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::{Message, Role, Tokenizer};
use plimsoll_engine::assemble::{AssembleSettings, Assembler, FrameBook, Turn};
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
        let turn = Turn {
            scope: &scope,
            text: &question,
            frame: None,
            tags: &[],
            budget: None,
            focus: None,
            about_to_act: false,
            force_refresh: false,
            previous: None,
            now: self.clock.now(),
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
                is_known.then(|| memory.context.text())
            }
            Err(error) => {
                tracing::warn!(%error, "memory has no part in this request");
                None
            }
        }
    }
}
