//! What is known, for the gateway: assembled when the user says something, and put behind what was said.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::{Message, Role, Tokenizer};
use plimsoll_engine::assemble::{AssembleSettings, Assembler, FrameBook, Turn};
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{Embedder, HistoryStore, KnowledgeStore, Scope, SessionId, TenantId};
use plimsoll_gateway::Memory;
use tokio::sync::Mutex;

use crate::clock;
use crate::config::Config;
use crate::error::CommandError;
use crate::models;
use crate::work::embedder;

/// Memory over a store.
#[derive(Debug)]
pub(super) struct StoredMemory {
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    embedder: Option<Arc<dyn Embedder>>,
    frames: FrameBook,
    settings: AssembleSettings,
    identity: String,
    memories: Mutex<Memories>,
}

impl StoredMemory {
    pub(super) async fn open(
        config: &Config,
        history: Arc<dyn HistoryStore>,
        knowledge: Arc<dyn KnowledgeStore>,
    ) -> Result<Self, CommandError> {
        let embedder = embedder(&models::open(config.models.clone())?);
        let frames = FrameBook::new(config.frames()?, embedder.as_deref())
            .await
            .map_err(CommandError::failure)?;
        Ok(Self {
            history,
            knowledge,
            embedder,
            frames,
            settings: config.memory.assemble(&config.request),
            identity: config.memory.identity.clone(),
            memories: Mutex::new(Memories::new(config.memory.search.clone())),
        })
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
        // A step of what is being done asks nothing new.
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
            now: clock::now(),
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
        let mut memories = self.memories.lock().await;
        // The question itself is the task; it stands there already.
        let task = Some(("", OPERATOR));
        let mut found = assembler.memory(&mut memories, &turn, task, None).await;
        // Its own budget is that of its frame; the whole context may have less.
        if let (Ok(memory), Some(most)) = (&found, most)
            && memory.context.used > most
        {
            found = assembler.memory(&mut memories, &turn, task, Some(most)).await;
        }
        match found {
            Ok(memory) => {
                let is_known = memory.context.items().any(|item| !item.id.is_empty());
                is_known.then(|| memory.context.text())
            }
            Err(error) => {
                tracing::warn!(%error, "what is known stays out of this request");
                None
            }
        }
    }
}
