//! The store as the command line uses it: opened by address, spoken to from a runtime of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use plimsoll_core::ContentHash;
use plimsoll_core::replay::Turn;
use plimsoll_core::safety::{Action, Flags, Handling, add, handle_message, told};
use plimsoll_core::{Message, Tokenizer};
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{
    HistoryBatch, HistoryStore, Imported, KnowledgeStore, MessageRecord, Recall, RecallScope,
    ReceiptRecord, SessionId, StoreError, TenantId, import, message_records,
};
use plimsoll_formats::Session;
use tokio::runtime::Runtime;

use crate::clock;
use crate::config::{self, environment};
use crate::error::CommandError;
use crate::load::Loaded;
use crate::output;

/// `PLIMSOLL_STORE`: the path or address of the store.
pub(crate) const STORE: &str = "PLIMSOLL_STORE";

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    runtime: Runtime,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    tenant: TenantId,
}

impl Store {
    /// Opens the store that is named, else that of the environment, else the file in the user's data folder.
    pub(crate) fn open(named: Option<&str>) -> Result<Self, CommandError> {
        let address = address(named)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CommandError::failure)?;
        let (history, knowledge) = runtime
            .block_on(plimsoll_store::open(&address))
            .map_err(|error| failed(error, "the store cannot be opened"))?;
        Ok(Self { runtime, history, knowledge, tenant: TenantId::default() })
    }

    /// Asks the history.
    pub(crate) fn history<T>(
        &self,
        ask: impl AsyncFnOnce(&dyn HistoryStore, &TenantId) -> Result<T, StoreError>,
    ) -> Result<T, CommandError> {
        let answer = self.runtime.block_on(ask(&*self.history, &self.tenant));
        answer.map_err(unanswered)
    }

    /// Gives both ports to work of its own.
    pub(crate) fn with<T>(
        &self,
        work: impl AsyncFnOnce(Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>, &TenantId) -> T,
    ) -> T {
        let (history, knowledge) = (self.history.clone(), self.knowledge.clone());
        self.runtime.block_on(work(history, knowledge, &self.tenant))
    }

    /// Asks both.
    pub(crate) fn both<T>(
        &self,
        ask: impl AsyncFnOnce(
            &dyn HistoryStore,
            &dyn KnowledgeStore,
            &TenantId,
        ) -> Result<T, StoreError>,
    ) -> Result<T, CommandError> {
        let answer = self.runtime.block_on(ask(&*self.history, &*self.knowledge, &self.tenant));
        answer.map_err(unanswered)
    }

    /// Imports messages that are not there yet.
    pub(crate) fn import(
        &self,
        messages: Vec<(SessionId, Message)>,
        settings: &CardSettings,
    ) -> Result<Imported, CommandError> {
        // The vocabulary that most models count by; `recall` counts anew by the one that it is told.
        let tokenizer = Tokenizer::O200k { factor: 1.0 };
        self.both(async |history, knowledge, tenant| {
            let observer = MessageObserver { history, knowledge, tenant, settings };
            import(&observer, messages, tokenizer, clock::now()).await
        })
    }

    /// Brings recall up to date with the store and asks it.
    pub(crate) fn recall<T>(
        &self,
        recall: &Recall,
        session: Option<&SessionId>,
        ask: impl FnOnce(&RecallScope) -> T,
    ) -> Result<T, CommandError> {
        let scope = self.runtime.block_on(recall.scope(&*self.history, &self.tenant, session));
        scope.map(|scope| ask(&scope)).map_err(unanswered)
    }

    /// Asks the knowledge.
    pub(crate) fn knowledge<T>(
        &self,
        ask: impl AsyncFnOnce(&dyn KnowledgeStore, &TenantId) -> Result<T, StoreError>,
    ) -> Result<T, CommandError> {
        let answer = self.runtime.block_on(ask(&*self.knowledge, &self.tenant));
        answer.map_err(unanswered)
    }
}

/// Returns the address of the store that is named, else that of the environment, else the file in the user's data folder.
pub(crate) fn address(named: Option<&str>) -> Result<String, CommandError> {
    match named.map(str::to_owned).or_else(|| environment(STORE)) {
        Some(address) => Ok(address),
        None => Ok(usual_file()?.to_string_lossy().into_owned()),
    }
}

/// Tells why a store does not do what it is asked.
pub(crate) fn failure(error: StoreError) -> CommandError {
    failed(error, "the store cannot be opened")
}

/// Tells why an open store does not do what it is asked.
pub(crate) fn unanswered(error: StoreError) -> CommandError {
    failed(error, "the store did not answer")
}

/// Reads a session's id as the command line gives it.
pub(crate) fn session_id(text: &str) -> Result<SessionId, CommandError> {
    SessionId::new(text).map_err(CommandError::usage)
}

fn failed(error: StoreError, what: &'static str) -> CommandError {
    let usage = matches!(
        error,
        StoreError::NotFound { .. } | StoreError::Invalid { .. } | StoreError::Unsupported { .. }
    );
    let error = anyhow::Error::new(error).context(what);
    if usage { CommandError::usage(error) } else { CommandError::failure(error) }
}

fn usual_file() -> Result<PathBuf, CommandError> {
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        CommandError::usage(error).hint(format!("name the store with `--store` or `{STORE}`"))
    })?;
    let folder = strategy.data_dir().join("plimsoll");
    std::fs::create_dir_all(&folder).map_err(|error| {
        CommandError::failure(
            anyhow::Error::new(error).context(format!("cannot make {}", folder.display())),
        )
    })?;
    Ok(folder.join("plimsoll.db"))
}

/// A session that is being kept.
#[derive(Debug)]
pub(crate) struct Recording {
    store: Store,
    session: SessionId,
}

/// Keeps a session's messages where a store was asked for, by flag or by the environment.
///
/// `[safety.ingestion]` of the settings says what becomes of personal data and secrets in them. A message that is redacted is
/// another one: nothing gives back the words that it had.
pub(crate) fn record(
    named: Option<&str>,
    settings: Option<&Path>,
    loaded: &Loaded,
) -> Result<Option<Recording>, CommandError> {
    let named = named.map(str::to_owned).or_else(|| environment(STORE));
    let Some(address) = named else { return Ok(None) };
    let store = Store::open(Some(&address))?;
    let session = id_of(&loaded.session)?;
    let mut messages = message_records(&session, &loaded.history(), clock::now());
    let flags = handle(&mut messages, config::read(settings)?.safety.ingestion);
    if !flags.is_empty() {
        output::warning(&format!(
            "session {session} holds {}; `[safety.ingestion]` of the settings redacts",
            told(&flags)
        ));
    }
    store.history(async |history, tenant| {
        history.append(tenant, HistoryBatch { messages, ..HistoryBatch::default() }).await
    })?;
    Ok(Some(Recording { store, session }))
}

/// Handles personal data and secrets in what is about to be kept.
fn handle(messages: &mut [MessageRecord], handling: Handling) -> Flags {
    let mut flags = Flags::new();
    if handling.personal == Action::Ignore && handling.secrets == Action::Ignore {
        return flags;
    }
    for record in messages {
        let (changed, found) = handle_message(&record.message, handling);
        add(&mut flags, &found);
        if let Some(message) = changed {
            record.hash = ContentHash::of(&message);
            record.message = message;
        }
    }
    flags
}

/// Returns the session's own id, else one made of its first message.
pub(crate) fn id_of(session: &Session) -> Result<SessionId, CommandError> {
    let own = session.header.id.as_deref().and_then(|id| SessionId::new(id).ok());
    if let Some(id) = own {
        return Ok(id);
    }
    let first = session.messages.first().map(|message| ContentHash::of(message).short());
    session_id(first.as_deref().unwrap_or("empty"))
}

impl Recording {
    /// Makes the record of one turn.
    pub(crate) fn receipt(&self, policy: &str, turn: &Turn<'_>) -> ReceiptRecord {
        let plan = turn.state.plan();
        let (receipt, context) = (turn.receipt, turn.context);
        ReceiptRecord::of_context(&self.session, policy, receipt, context, plan, clock::now())
    }

    /// Keeps receipts; those that are there already stay.
    pub(crate) fn keep_receipts(&self, receipts: Vec<ReceiptRecord>) -> Result<(), CommandError> {
        self.store.history(async |history, tenant| {
            history.append(tenant, HistoryBatch { receipts, ..HistoryBatch::default() }).await
        })?;
        Ok(())
    }
}
