//! `plimsoll assemble`: prints the context that a model would see for a turn.

mod page;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use plimsoll_core::Tokenizer;
use plimsoll_core::lazy_tools::{LazySettings, ToolSession, plan_tools};
use plimsoll_core::memory::assemble::MemoryContext;
use plimsoll_core::request::ToolIntent;
use plimsoll_core::{Message, MillisSinceEpoch};
use plimsoll_engine::assemble::{
    AssembleError, AssembledContext, AssembledMemory, Assembler, AssemblyReceipt, AssemblyTurn,
    FrameBook, record_assembly,
};
use plimsoll_engine::cards::queue_summaries;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::tool_registry::registered_tools;
use plimsoll_engine::{HistoryStore, KnowledgeStore, Recall, StoreError, TenantId};
use plimsoll_models::BuiltInEmbedder;
use serde::{Deserialize, Serialize};

use crate::arguments::AssembleArguments;
use crate::clock;
use crate::config::Config;
use crate::error::CommandError;
use crate::load::tokenizer;
use crate::memory::{Desk, scope};
use crate::output;

/// An assembled request, or its memory alone.
#[derive(Debug)]
enum Assembled {
    Memory(AssembledMemory),
    Request(Box<AssembledContext>),
}

/// An assembly as JSON shows it, and as `--previous` reads it.
#[derive(Debug, Serialize)]
struct AssemblyDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a [Message]>,
    memory: &'a MemoryContext,
    text: String,
    refreshed: plimsoll_engine::assemble::Refreshed,
    relevance: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_set: Option<&'a [Message]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<&'a plimsoll_core::request::BudgetInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lazy_tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_key: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct Previous {
    memory: MemoryContext,
}

pub(crate) fn run(arguments: &AssembleArguments) -> Result<(), CommandError> {
    let tokenizer = tokenizer(&arguments.tokens)?;
    let scope = scope(&arguments.scope)?;
    if arguments.turn.trim().is_empty() && scope.session.is_none() {
        return Err(CommandError::usage(anyhow::anyhow!("there is no turn to assemble for")).hint(
            "say `--turn TEXT`, or name a session whose next step is meant with `--session`",
        ));
    }
    let desk = Desk::open_existing(&arguments.plain)?;
    let began = clock::stopwatch();
    let previous = arguments.previous.as_deref().map(read_previous).transpose()?;
    let turn = AssemblyTurn {
        scope: &scope,
        text: &arguments.turn,
        frame: arguments.frame.as_deref(),
        tags: &arguments.tags,
        budget: arguments.budget,
        focus: arguments.focus.as_deref(),
        about_to_act: arguments.about_to_act,
        force_refresh: arguments.force_refresh,
        previous: previous.as_ref(),
        now: clock::now(),
    };
    let config = &desk.config;
    let settings = config.memory.assemble(&config.request);
    let frames = config.frames()?;
    // The process ends here: freeing a copy of thousands of records would take a tenth of its time.
    let recall = Recall::new(config.recall.clone(), Some(Arc::new(BuiltInEmbedder)));
    let recall = ManuallyDrop::new(recall);
    let memories = ManuallyDrop::new(Memories::new(config.memory.search.clone()));
    let assembled = desk.ask(async |history, knowledge, tenant| {
        let embedder = desk.embedder.as_deref();
        let frames = FrameBook::new(frames, embedder).await?;
        let assembler = Assembler {
            history,
            knowledge,
            embedder,
            tenant,
            frames: &frames,
            settings: &settings,
            tokenizer,
            identity: &config.memory.identity,
            rules: &config.memory.rules,
            profile: &config.memory.profile,
            recall: Some(&recall),
        };
        let assembled = if arguments.memory_only {
            if let Some(session) = &scope.session {
                let known = history.session(tenant, session).await?;
                known.ok_or_else(|| AssembleError::UnknownSession(session.clone()))?;
            }
            let memory = assembler.memory(&memories, &turn, None, turn.budget).await?;
            Assembled::Memory(memory)
        } else {
            let tools = tools(knowledge, tenant, &config.lazy_tools, tokenizer).await?;
            Assembled::Request(Box::new(assembler.request(&memories, &turn, &tools).await?))
        };
        let took = began.elapsed().as_secs_f64() * 1e3;
        keep(history, tenant, &turn, &assembled, took).await?;
        if let Assembled::Request(request) = &assembled {
            let (missing, session) = (&request.request.to_summarise, scope.session.as_ref());
            queue_summaries(knowledge, tenant, session, missing, &config.cards, turn.now).await?;
        }
        Ok::<_, AssembleError>(assembled)
    })?;
    let assembled = assembled.map_err(|error| failed(error, config))?;
    for warning in assembled.warnings() {
        output::warning(&warning);
    }
    if arguments.plain.json {
        return output::json(&assembled.document());
    }
    output::page(&page::page(&assembled, arguments.explain))
}

/// Records the assembly in its session's log.
async fn keep(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    turn: &AssemblyTurn<'_>,
    assembled: &Assembled,
    took: f64,
) -> Result<(), StoreError> {
    let Some(session) = &turn.scope.session else { return Ok(()) };
    let messages = history.session(tenant, session).await?.map_or(0, |summary| summary.messages);
    let receipt = match assembled {
        Assembled::Memory(memory) => AssemblyReceipt::of_memory(memory, messages, took),
        Assembled::Request(request) => AssemblyReceipt::of_request(request, messages, took),
    };
    let now: MillisSinceEpoch = turn.now;
    record_assembly(history, tenant, session, &receipt, now).await
}

/// Returns the tools of the store with what each is for.
async fn tools(
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    settings: &LazySettings,
    tokenizer: Tokenizer,
) -> Result<Vec<ToolIntent>, StoreError> {
    let registered = registered_tools(knowledge, tenant).await?;
    let tools: Vec<_> = registered.into_iter().map(|tool| tool.definition).collect();
    Ok(plan_tools(&tools, &ToolSession::default(), settings, tokenizer).directory)
}

fn read_previous(path: &std::path::Path) -> Result<MemoryContext, CommandError> {
    let wrong = |error: anyhow::Error| {
        CommandError::usage(error.context(path.display().to_string()))
            .hint("give what `plimsoll assemble --json` printed")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.into()))?;
    let read: Previous = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
    Ok(read.memory)
}

fn failed(error: AssembleError, config: &Config) -> CommandError {
    match &error {
        AssembleError::TooLarge(_) => CommandError::usage(error).hint(
            "give a larger --budget, or a shorter turn; nothing of what the user says is ever cut",
        ),
        AssembleError::MemoryTooLarge(_) => CommandError::usage(error)
            .hint("give a larger --budget, or retire a constraint; these parts always stand"),
        AssembleError::UnknownSession(_) => {
            CommandError::usage(error).hint("`plimsoll sessions` lists the sessions of the store")
        }
        AssembleError::UnknownFrame(_) => {
            let names: Vec<String> = config
                .frames()
                .map(|frames| frames.iter().map(|frame| frame.name.clone()).collect())
                .unwrap_or_default();
            CommandError::usage(error).hint(format!("one of {}", names.join(", ")))
        }
        _ => CommandError::failure(error),
    }
}

impl Assembled {
    fn memory(&self) -> &AssembledMemory {
        match self {
            Self::Memory(memory) => memory,
            Self::Request(request) => &request.memory,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let memory = self.memory().context.warnings.iter();
        let mut told: Vec<String> = memory.map(|warning| page::told(*warning)).collect();
        if let Self::Request(request) = self {
            told.extend(request.request.budget.warnings.iter().cloned());
        }
        told
    }

    fn document(&self) -> AssemblyDocument<'_> {
        let memory = self.memory();
        let request = match self {
            Self::Memory(_) => None,
            Self::Request(request) => Some(&request.request),
        };
        AssemblyDocument {
            header: request.map(|request| &request.header[..]),
            memory: &memory.context,
            text: memory.context.text(),
            refreshed: memory.refreshed,
            relevance: memory.relevance,
            working_set: request.map(|request| &request.working_set[..]),
            budget: request.map(|request| &request.budget),
            lazy_tools: request.map(|request| &request.lazy_tools[..]),
            cache_key: request.map(|request| &*request.cache_key),
        }
    }
}
