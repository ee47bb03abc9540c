//! The store of a command: opened by address, called from a runtime of its own.

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
use plimsoll_store::{StoreAddress, StorePorts, StoreSettings};
use tokio::runtime::Runtime;

use crate::arguments::{ReadingArguments, StoreArguments, StorePlaceArguments};
use crate::clock;
use crate::config::{self, HISTORY, STORE};
use crate::error::CommandError;
use crate::load::Loaded;
use crate::output;

/// Where the store is, and the history if it is apart.
#[derive(Debug)]
pub(crate) struct Addresses {
    pub(crate) store: StoreAddress,
    pub(crate) history: Option<StoreAddress>,
}

impl Addresses {
    /// Takes the addresses of the flags, else those of the settings, else the file in the user's data folder.
    pub(crate) fn new(
        arguments: &StorePlaceArguments,
        settings: &StoreSettings,
    ) -> Result<Self, CommandError> {
        let pick = |flag: &Option<String>, setting: &Option<StoreAddress>| {
            flag.as_deref().map(StoreAddress::new).or_else(|| setting.clone())
        };
        let store = match pick(&arguments.store, &settings.address) {
            Some(address) => address,
            None => StoreAddress::new(usual_file()?.to_string_lossy()),
        };
        let history = pick(&arguments.history, &settings.history);
        Ok(Self { store, history: history.filter(|address| !address.is_empty()) })
    }

    /// Opens both.
    pub(crate) async fn open(&self) -> Result<StorePorts, CommandError> {
        self.opened(plimsoll_store::open(&self.store).await).await
    }

    /// Opens both where the store is there; one that cannot be changed is opened for reading.
    pub(crate) async fn open_existing(&self) -> Result<StorePorts, CommandError> {
        self.opened(plimsoll_store::open_existing(&self.store).await).await
    }

    async fn opened(
        &self,
        opened: Result<StorePorts, StoreError>,
    ) -> Result<StorePorts, CommandError> {
        let (own_history, knowledge) =
            opened.map_err(|error| failed(error, "the store cannot be opened"))?;
        let history = match &self.history {
            Some(address) => self::open_history(address).await?,
            None => own_history,
        };
        Ok((history, knowledge))
    }
}

/// Opens a history that is apart from the store.
pub(crate) async fn open_history(
    address: &StoreAddress,
) -> Result<Arc<dyn HistoryStore>, CommandError> {
    plimsoll_store::open_history(address).await.map_err(|error| {
        failed(error, "the history cannot be opened").hint(format!(
            "`--history` or `{HISTORY}` names it; docs/clickhouse.md says how it is set up"
        ))
    })
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    runtime: Runtime,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    tenant: TenantId,
}

impl Store {
    /// Opens the store that the arguments and the settings name.
    pub(crate) fn open(
        arguments: &StoreArguments,
        settings: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let addresses = Addresses::new(&arguments.place, &config::read(settings)?.store)?;
        Self::at(&addresses, tenant(arguments)?)
    }

    /// Opens the store for a command that reads; it makes none.
    pub(crate) fn open_existing(
        arguments: &StoreArguments,
        settings: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let addresses = Addresses::new(&arguments.place, &config::read(settings)?.store)?;
        if !plimsoll_store::exists(&addresses.store) {
            return Err(missing(&addresses.store).hint(
                "`plimsoll import` makes one, and so does a gateway; `--store` names another",
            ));
        }
        Self::by(tenant(arguments)?, addresses.open_existing())
    }

    fn at(addresses: &Addresses, tenant: TenantId) -> Result<Self, CommandError> {
        Self::by(tenant, addresses.open())
    }

    fn by(
        tenant: TenantId,
        open: impl Future<Output = Result<StorePorts, CommandError>>,
    ) -> Result<Self, CommandError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CommandError::failure)?;
        let (history, knowledge) = runtime.block_on(open)?;
        Ok(Self { runtime, history, knowledge, tenant })
    }

    /// Asks the history.
    pub(crate) fn history<T>(
        &self,
        ask: impl AsyncFnOnce(&dyn HistoryStore, &TenantId) -> Result<T, StoreError>,
    ) -> Result<T, CommandError> {
        let answer = self.runtime.block_on(ask(&*self.history, &self.tenant));
        answer.map_err(unanswered)
    }

    /// Returns the session of this id, or the only one whose id begins like that: tables print beginnings.
    pub(crate) fn session_named(&self, text: &str) -> Result<SessionId, CommandError> {
        let beginning = text.trim_end_matches('…');
        let named = session_id(beginning)?;
        let known = self.history(async |history, tenant| {
            if history.session(tenant, &named).await?.is_some() {
                return Ok(vec![named.clone()]);
            }
            let all = history.sessions(tenant, usize::MAX >> 1).await?;
            let ids = all.into_iter().map(|summary| summary.session);
            Ok(ids.filter(|id| id.as_str().starts_with(beginning)).collect())
        })?;
        match known.as_slice() {
            [] => Ok(named),
            [only] => Ok(only.clone()),
            [first, second, ..] => Err(CommandError::usage(anyhow::anyhow!(
                "{} sessions begin with `{beginning}`, such as {first} and {second}",
                known.len()
            ))
            .hint("give more of the id; `plimsoll sessions` lists them")),
        }
    }

    /// Returns `session`, or a name of its own for messages that differ from those that the store has under that id.
    ///
    /// Agents write files of sub-agents, of other machines and of rewound conversations under one id; merged, they would be a
    /// conversation that nobody had. A file that ends earlier or goes on further is of the same session.
    pub(crate) fn own_session(
        &self,
        session: &SessionId,
        messages: &[ContentHash],
    ) -> Result<SessionId, CommandError> {
        let mut own = session.clone();
        // It ends: each turn makes the name longer, and a name that is too long is refused.
        loop {
            let kept = self.history(async |history, tenant| {
                history.messages(tenant, &own, 0, messages.len()).await
            })?;
            let other = messages.iter().zip(kept).find(|(hash, kept)| **hash != kept.hash);
            let Some((hash, _)) = other else { return Ok(own) };
            own = session_id(&format!("{own}:{}", hash.short()))?;
        }
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

pub(crate) fn tenant(arguments: &StoreArguments) -> Result<TenantId, CommandError> {
    let named = arguments.tenant.as_deref().map(TenantId::new).transpose();
    named.map(Option::unwrap_or_default).map_err(CommandError::usage)
}

/// Makes the error of a command that reads where no store is.
pub(crate) fn missing(address: &StoreAddress) -> CommandError {
    let is_empty = plimsoll_store::is_empty_file(address);
    let why = if is_empty { ": the file is empty" } else { "" };
    CommandError::usage(anyhow::anyhow!("there is no store at {address}{why}"))
}

/// Makes the error of a store that cannot be opened.
pub(crate) fn failure(error: StoreError) -> CommandError {
    failed(error, "the store cannot be opened")
}

/// Makes the error of a request to an open store.
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
    Ok(folder.join("plimsoll.db"))
}

/// A store that sessions are recorded in.
#[derive(Debug)]
pub(crate) struct Recorder {
    store: Store,
    ingestion: Handling,
}

/// A session whose receipts are recorded in a store.
#[derive(Debug)]
pub(crate) struct Recording<'r> {
    store: &'r Store,
    session: SessionId,
}

/// Opens the store that a flag or the environment names; `None` where neither does.
pub(crate) fn recorder(
    reading: &ReadingArguments,
    settings: Option<&Path>,
) -> Result<Option<Recorder>, CommandError> {
    let (store, history) = (reading.store.clone(), reading.history.clone());
    let config = config::read(settings)?;
    let asked = [&store, &history].iter().any(|flag| flag.is_some())
        || config.store != StoreSettings::default();
    if !asked {
        return Ok(None);
    }
    let addresses = Addresses::new(&StorePlaceArguments { store, history }, &config.store)?;
    let store = Store::at(&addresses, TenantId::default())?;
    Ok(Some(Recorder { store, ingestion: config.safety.ingestion }))
}

impl Recorder {
    /// Stores a session's messages.
    ///
    /// `[safety.ingestion]` of the settings decides about personal data and secrets in them. A redacted message is
    /// another message: the original is not stored.
    pub(crate) fn record(&self, loaded: &Loaded) -> Result<Recording<'_>, CommandError> {
        let named = id_of(&loaded.session)?;
        let mut messages = message_records(&named, &loaded.counted.history(), clock::now());
        let flags = handle(&mut messages, self.ingestion);
        if !flags.is_empty() {
            output::warning(&format!(
                "session {named} holds {}; `[safety.ingestion]` of the settings redacts",
                told(&flags)
            ));
        }
        let hashes: Vec<ContentHash> = messages.iter().map(|record| record.hash).collect();
        let session = self.store.own_session(&named, &hashes)?;
        for record in &mut messages {
            record.session.clone_from(&session);
        }
        self.store.history(async |history, tenant| {
            history.append(tenant, HistoryBatch { messages, ..HistoryBatch::default() }).await
        })?;
        Ok(Recording { store: &self.store, session })
    }
}

/// Stores a session's messages where a flag or the environment names a store.
pub(crate) fn record(
    reading: &ReadingArguments,
    settings: Option<&Path>,
    file: &Path,
    loaded: &Loaded,
) -> Result<(), CommandError> {
    if let Some(recorder) = recorder(reading, settings)? {
        recorder.record(loaded).map_err(|error| error.in_file(file))?;
    }
    Ok(())
}

/// Redacts or flags personal data and secrets in records before they are stored.
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

impl Recording<'_> {
    /// Makes the record of one turn.
    pub(crate) fn receipt(&self, policy: &str, turn: &Turn<'_>) -> ReceiptRecord {
        let plan = turn.state.plan();
        let (receipt, context) = (turn.receipt, turn.context);
        ReceiptRecord::of_context(&self.session, policy, receipt, context, plan, clock::now())
    }

    /// Stores receipts; existing ones stay.
    pub(crate) fn keep_receipts(&self, receipts: Vec<ReceiptRecord>) -> Result<(), CommandError> {
        self.store.history(async |history, tenant| {
            history.append(tenant, HistoryBatch { receipts, ..HistoryBatch::default() }).await
        })?;
        Ok(())
    }
}
