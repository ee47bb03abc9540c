//! `plimsoll memory`: writes, searches, changes and forgets records.

mod add;
mod list;
mod review;
mod stats;
mod transfer;

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::Event;
use plimsoll_engine::memories::{AskedMemory, Memories};
use plimsoll_engine::remember::{
    Details, Edit, ExtractedFacts, MemoryError, Remember, extract_session, queue_model_pass,
};
use plimsoll_engine::{
    Embedder, Forgotten, HistoryStore, KnowledgeStore, MemoryId, MemoryRecord, Scope, StoreError,
    TenantId,
};

use crate::clock;
use crate::config::Config;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::models::{self, embedder};
use crate::output;
use crate::store::{Store, session_id};
use crate::tenant::still_in_log;

use crate::arguments::{
    EditArguments, ExtractArguments, ForgetArguments, MemoryArguments, MemoryCommand,
    PlainArguments, ScopeArguments, SearchMemoryArguments, StoreArguments, UsedArguments,
};

pub(crate) fn run(arguments: &MemoryArguments) -> Result<(), CommandError> {
    use MemoryCommand as Command;
    match &arguments.command {
        Command::Add(add) => add::run(add),
        Command::Supersede(supersede) => add::supersede(supersede),
        Command::List(list) => list::run(list),
        Command::Show(show) => list::show(show),
        Command::Search(search) => self::search(search),
        Command::Extract(extract) => self::extract(extract),
        Command::Confirm(one) => change(&one.id, &Event::Confirmed, &one.plain),
        Command::Mark(one) => change(&one.id, &Event::Marked, &one.plain),
        Command::Edit(edit) => self::edit(edit),
        Command::Disprove(one) => change(&one.id, &Event::Disproved, &one.plain),
        Command::Retire(one) => change(&one.id, &Event::Retired, &one.plain),
        Command::Review(review) => review::run(review),
        Command::Used(used) => self::used(used),
        Command::Outcome(outcome) => {
            let desk = Desk::open_existing(&outcome.plain)?;
            let id = MemoryId(outcome.id.clone());
            let record = desk.remember(async |remember, now| {
                remember.review(&id, outcome.outcome, &outcome.result, now).await
            })?;
            list::print(&record, outcome.plain.json)
        }
        Command::Age(plain) => {
            let desk = Desk::open_existing(plain)?;
            let changed = desk.remember(async |remember, now| remember.age(now).await)?;
            list::print_all(&changed, plain.json)
        }
        Command::Forget(forget) => self::forget(forget),
        Command::Export(export) => transfer::export(export),
        Command::Import(import) => transfer::import(import),
        Command::Stats(plain) => stats::run(plain),
    }
}

/// The store, the settings and the embedder of a memory command.
pub(crate) struct Desk {
    pub(crate) store: Store,
    pub(crate) config: Config,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

impl Desk {
    /// Opens the store for a command that may begin one.
    pub(crate) fn open(plain: &PlainArguments) -> Result<Self, CommandError> {
        Self::with(plain, Store::open)
    }

    /// Opens the store for a command that needs what is in it; it makes none.
    pub(crate) fn open_existing(plain: &PlainArguments) -> Result<Self, CommandError> {
        Self::with(plain, Store::open_existing)
    }

    fn with(
        plain: &PlainArguments,
        open: impl FnOnce(&StoreArguments, Option<&Path>) -> Result<Store, CommandError>,
    ) -> Result<Self, CommandError> {
        let config = crate::config::read(plain.config.as_deref())?;
        let models = models::open(&config.models)?;
        let embedder = embedder(&models);
        Ok(Self { store: open(&plain.store, plain.config.as_deref())?, config, embedder })
    }

    /// Does work that writes.
    pub(crate) fn remember<T>(
        &self,
        work: impl AsyncFnOnce(Remember<'_>, MillisSinceEpoch) -> Result<T, MemoryError>,
    ) -> Result<T, CommandError> {
        self.ask(async |_, knowledge, tenant| {
            work(self.desk(knowledge, tenant), clock::now()).await
        })?
        .map_err(refused)
    }

    /// Asks the store.
    pub(crate) fn ask<T>(
        &self,
        ask: impl AsyncFnOnce(&dyn HistoryStore, &dyn KnowledgeStore, &TenantId) -> T,
    ) -> Result<T, CommandError> {
        self.store
            .both(async |history, knowledge, tenant| Ok(ask(history, knowledge, tenant).await))
    }

    pub(crate) fn desk<'a>(
        &'a self,
        knowledge: &'a dyn KnowledgeStore,
        tenant: &'a TenantId,
    ) -> Remember<'a> {
        Remember {
            knowledge,
            embedder: self.embedder.as_deref(),
            tenant,
            lifecycles: &self.config.memory.lifecycles,
            confidence: &self.config.memory.confidence,
            handling: self.config.safety.ingestion,
        }
    }
}

/// Makes the error of a memory command: wrong input, or a failure.
pub(crate) fn refused(error: MemoryError) -> CommandError {
    match error {
        MemoryError::Refused(_)
        | MemoryError::Circle(_)
        | MemoryError::Incomplete { .. }
        | MemoryError::Taken { .. }
        | MemoryError::Store(StoreError::Invalid { .. }) => CommandError::usage(error),
        MemoryError::Store(StoreError::NotFound { .. }) => {
            CommandError::usage(error).hint("`plimsoll memory list --all` shows what there is")
        }
        error => CommandError::failure(error),
    }
}

pub(crate) fn scope(arguments: &ScopeArguments) -> Result<Scope, CommandError> {
    Ok(Scope {
        workspace: arguments.workspace.clone(),
        user: arguments.user.clone(),
        session: arguments.session.as_deref().map(session_id).transpose()?,
        agent: arguments.agent.clone(),
    })
}

fn change(id: &str, event: &Event, plain: &PlainArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(plain)?;
    let id = MemoryId(id.to_owned());
    let record = desk.remember(async |remember, now| remember.change(&id, event, now).await)?;
    list::print(&record, plain.json)
}

fn used(arguments: &UsedArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let id = MemoryId(arguments.id.clone());
    let record: MemoryRecord = desk.remember(async |remember, now| {
        let record = remember.knowledge.memory(remember.tenant, &id, None).await?;
        let event = match (record.kind, arguments.wrong) {
            (plimsoll_core::memory::MemoryKind::Censor, false) => Event::Triggered,
            (plimsoll_core::memory::MemoryKind::Censor, true) => Event::FalsePositive,
            (_, wrong) => Event::Activated { worked: !wrong },
        };
        remember.change(&id, &event, now).await
    })?;
    list::print(&record, arguments.plain.json)
}

fn search(arguments: &SearchMemoryArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let question = arguments.words.join(" ");
    let scope = scope(&arguments.scope)?;
    let settings = desk.config.memory.search.clone();
    let states = &desk.config.memory.context.scoring.states;
    let found = desk.ask(async |_, knowledge, tenant| {
        let vector = match desk.embedder.as_deref() {
            Some(embedder) => embedder.embed(&[&question]).await?.pop(),
            None => None,
        };
        let memories = Memories::new(settings.clone());
        let known = memories.of(knowledge, tenant).await?;
        let asked = AskedMemory {
            question: &question,
            vector: vector.as_ref(),
            scope: &scope,
            tags: &arguments.tags,
            now: clock::now(),
        };
        let found = known.search(&asked, &settings, states);
        let found = found.into_iter().filter(|one| one.similarity > 0.0).take(arguments.limit);
        Ok(found.map(|one| (one.record.clone(), one.similarity)).collect::<Vec<_>>())
    })?;
    list::print_found(&found.map_err(refused)?, arguments.plain.json)
}

fn extract(arguments: &ExtractArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let scope = scope(&arguments.scope)?;
    let settings = &desk.config.memory.extraction;
    let found = desk.ask(async |history, knowledge, tenant| {
        let remember = desk.desk(knowledge, tenant);
        let sessions = if let Some(session) = &scope.session {
            vec![session.clone()]
        } else {
            let all = history.sessions(tenant, usize::MAX >> 1).await?;
            all.into_iter().map(|summary| summary.session).collect()
        };
        let (mut sum, mut queued) = (ExtractedFacts::default(), 0);
        for session in &sessions {
            let now = clock::now();
            let found = extract_session(&remember, history, session, &scope, settings, now).await?;
            sum.add(found);
            if arguments.queue_model {
                let records = history.messages(tenant, session, 0, usize::MAX >> 1).await?;
                let settings = &desk.config.cards;
                queued +=
                    queue_model_pass(knowledge, tenant, &records, &scope, settings, now).await?;
            }
        }
        Ok((sum, queued))
    })?;
    let (found, queued) = found.map_err(refused)?;
    if queued > 0 {
        output::note(&format!("{queued} messages wait for a model; `plimsoll work` asks it"));
    }
    if arguments.plain.json {
        return output::json(&found);
    }
    output::data(&format!(
        "{} messages: {} records new, {} confirmed, {} known, {} forgotten\n",
        thousands(found.messages),
        thousands(found.new),
        thousands(found.confirmed),
        thousands(found.known),
        thousands(found.forgotten)
    ))
}

fn forget(arguments: &ForgetArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let scope = scope(&arguments.scope)?;
    let ids: Vec<MemoryId> = arguments.ids.iter().cloned().map(MemoryId).collect();
    let gone = match &arguments.source {
        _ if !ids.is_empty() => {
            let found = desk.ask(async |_, knowledge, tenant| {
                for id in &ids {
                    knowledge.memory(tenant, id, None).await?;
                }
                Ok(())
            })?;
            found.map_err(|error: StoreError| refused(error.into()))?;
            desk.remember(async |remember, _| remember.forget(&ids).await)?
        }
        Some(source) => {
            desk.remember(async |remember, now| remember.forget_source(source, now).await)?
        }
        None => desk.store.both(async |history, knowledge, tenant| {
            plimsoll_engine::forget(history, knowledge, tenant, &scope).await
        })?,
    };
    let is_purged = gone == Forgotten::default()
        || desk.store.knowledge(async |knowledge, _| knowledge.purge().await)?;
    if !is_purged {
        output::warning(&format!("removed, {}", still_in_log()));
    }
    let Forgotten { messages, cards, artefacts, memories, answers, jobs } = gone;
    if arguments.plain.json {
        return output::json(&serde_json::json!({
            "memories": memories, "messages": messages, "cards": cards,
            "artefacts": artefacts, "answers": answers, "jobs": jobs,
        }));
    }
    output::data(&format!(
        "removed: {memories} records, {messages} messages, {cards} cards, {artefacts} artefacts, \
         {answers} answers, {jobs} jobs\n"
    ))
}

fn edit(arguments: &EditArguments) -> Result<(), CommandError> {
    let given = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    let edit = Edit {
        text: arguments.text.clone(),
        name: arguments.name.clone(),
        points: given(&arguments.points),
        tags: given(&arguments.tags),
    };
    if edit == Edit::default() {
        return Err(CommandError::usage(anyhow::anyhow!("nothing is to be changed"))
            .hint("say what with --text, --name, --point or --tag"));
    }
    let desk = Desk::open_existing(&arguments.plain)?;
    let id = MemoryId(arguments.id.clone());
    let record = desk.remember(async |remember, now| remember.edit(&id, &edit, now).await)?;
    list::print(&record, arguments.plain.json)
}

/// Returns the details of a record.
fn details(record: &MemoryRecord) -> Details {
    Details::of(record)
}
