//! Running a cascade: its phases one after another, each with its own context.

mod ask;
mod auto_context;
mod bank;
mod budget;
mod calls;
mod context;
mod conversation;
mod dry;
mod error;
mod evaluation;
mod event;
mod expiry;
mod failure;
mod human;
mod images;
mod journal;
mod mutation;
mod next;
mod offer;
mod opening;
mod output;
mod pareto;
mod phase;
mod policy;
mod settings;
mod soundings;
mod starter_validators;
mod state;
mod sub_cascade;
mod tool_cache;
mod tool_phase;
mod toolbox;
mod turns;
mod validate;
mod values;
mod visit;
mod wards;

use std::sync::Arc;

use plimsoll_core::cost::Pricing;
use plimsoll_engine::{
    ChatModel, Clock, Embedder, HistoryStore, KnowledgeStore, ModelError, SessionId, TenantId,
    ToolSource,
};
use serde_json::{Map, Value};

pub use context::PhaseContext;
pub use dry::{DryPhase, dry_run};
pub use error::RunError;
pub use event::{Observer, Purpose, RunEvent, Unobserved};
pub use settings::{ModelOverrides, RunSettings};
pub use starter_validators::starter_validator;
pub use state::{PhaseRun, RunState};
pub use toolbox::{Human, Nobody, own_tools};

use crate::NeedKind;
use crate::definition::Cascade;
use journal::Journal;
use tool_cache::ToolCache;
use toolbox::Toolbox;
use visit::Visit;

/// Finds models by name.
pub trait ModelSource: Send + Sync + std::fmt::Debug {
    /// Returns the model of this name, or the usual one.
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError>;

    /// Notes that an answer of the model was taken from the record.
    fn passed_over(&self, _name: Option<&str>) {}
}

/// Finds cascades that other cascades refer to.
pub trait Library: Send + Sync + std::fmt::Debug {
    /// Returns a cascade, or why there is none.
    fn cascade(&self, reference: &str) -> Result<Arc<Cascade>, String>;
}

/// The stores, models and tools of runs.
#[derive(Debug, Clone)]
pub struct Runner {
    pub tenant: TenantId,
    pub history: Arc<dyn HistoryStore>,
    pub knowledge: Arc<dyn KnowledgeStore>,
    pub models: Arc<dyn ModelSource>,
    pub tools: Vec<Arc<dyn ToolSource>>,
    pub human: Arc<dyn Human>,
    pub library: Arc<dyn Library>,
    /// Compares meanings, for the semantic strategy.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub clock: Arc<dyn Clock>,
    pub pricing: Arc<Pricing>,
    pub observer: Arc<dyn Observer>,
    pub settings: RunSettings,
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// The output of the last phase.
    pub output: String,
    pub past: RunState,
}

/// A run of one cascade.
#[derive(Debug, Clone)]
pub(crate) struct CascadeRun {
    pub(crate) runner: Runner,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) tool_cache: Arc<ToolCache>,
    pub(crate) cascade: Arc<Cascade>,
    /// The number of cascades around this one.
    pub(crate) depth: u32,
    /// The number of the attempt, from 0, in a run of soundings.
    pub(crate) sounding: Option<usize>,
}

impl Runner {
    /// Runs a cascade to its end; a session with a record goes on where the record ends.
    pub async fn run(
        &self,
        cascade: Arc<Cascade>,
        input: Map<String, Value>,
        session: &SessionId,
    ) -> Result<RunOutcome, RunError> {
        let toolbox = Toolbox::gather(self).await;
        let toolbox = toolbox.map_err(|error| RunError::Missing { what: error.to_string() })?;
        let toolbox = Arc::new(toolbox);
        let tool_cache = Arc::new(ToolCache::new(cascade.tool_caching.as_ref()));
        let runner = self.clone();
        let run = CascadeRun { runner, toolbox, tool_cache, cascade, depth: 0, sounding: None };
        run.check()?;
        images::check(session)?;
        run.start(input, Map::new(), session).await
    }
}

impl CascadeRun {
    /// Runs the cascade in a session of its own, several times where it has soundings.
    pub(crate) async fn start(
        &self,
        input: Map<String, Value>,
        state: Map<String, Value>,
        session: &SessionId,
    ) -> Result<RunOutcome, RunError> {
        let mut journal = self.journal(session).await?;
        let is_resumed = journal.is_recorded();
        self.tell(&RunEvent::RunBegan {
            session: session.to_string(),
            cascade: self.cascade.cascade_id.to_string(),
            is_resumed,
        });
        let input = self.cascade.with_defaults(input);
        let mut past = RunState { input, state, runs: Vec::new() };
        let outcome = self.outcome(&mut past, &mut journal).await?;
        self.tell(&RunEvent::RunEnded { output: outcome.output.clone() });
        Ok(outcome)
    }

    async fn outcome(
        &self,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<RunOutcome, RunError> {
        // An attempt of soundings is not tried several times itself.
        if let (Some(soundings), None) = (&self.cascade.soundings, self.sounding)
            && let Some(first) = self.cascade.phases.first()
        {
            let mut visit = Visit::new(self, first, past, journal);
            let factor = visit.count(Some(&soundings.factor))?.unwrap_or(1);
            if factor > 1 {
                return visit.sound_cascade(soundings, factor).await;
            }
        }
        self.phases(past, journal).await?;
        let output = past.runs.last().map(|run| run.output.clone()).unwrap_or_default();
        Ok(RunOutcome { output, past: std::mem::take(past) })
    }

    pub(crate) async fn journal(&self, session: &SessionId) -> Result<Journal, RunError> {
        self.toolbox.know(session);
        Journal::open(&self.runner, session.clone()).await
    }

    pub(crate) fn tell(&self, event: &RunEvent) {
        self.runner.observer.tell(event);
    }

    /// Checks that all tools, models and validators of the cascade are there, before it runs.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        for phase in &self.cascade.phases {
            let called = phase.tool.iter().map(String::as_str);
            let named = match &phase.tackle {
                crate::definition::Tackle::Names(names) => names.as_slice(),
                crate::definition::Tackle::Manifest => &[],
            };
            for tool in called.chain(named.iter().map(String::as_str)) {
                if self.toolbox.find(tool).is_none() {
                    let near = self.toolbox.nearest(tool);
                    let near = near.map(|near| format!(", the nearest is `{near}`"));
                    let what = format!(
                        "phase `{}` needs the tool `{tool}`, and no source has it{}",
                        phase.name,
                        near.unwrap_or_default()
                    );
                    return Err(RunError::Missing { what });
                }
            }
            self.check_validators(phase)?;
        }
        self.check_models()
    }

    /// Checks that the models are there; a model whose name a template makes is known only in the run.
    fn check_models(&self) -> Result<(), RunError> {
        let overrides = &self.runner.settings.models;
        for need in self.cascade.needs() {
            if need.kind != NeedKind::Model {
                continue;
            }
            for phase in &need.phases {
                let name = overrides.name_of(phase, need.name.clone());
                if let Err(error) = self.runner.models.model(name.as_deref()) {
                    let what = match &name {
                        Some(name) => format!("phase `{phase}` needs the model `{name}`: {error}"),
                        None => format!("phase `{phase}` needs a model: {error}"),
                    };
                    return Err(RunError::Missing { what });
                }
            }
        }
        Ok(())
    }
}

/// Returns the session id of a part of a run: readable while it fits, else with a hash.
pub(crate) fn part_of(session: &SessionId, part: &str) -> Result<SessionId, RunError> {
    let plain: String = part
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '_' })
        .collect();
    let whole = format!("{session}:{plain}");
    // The hash keeps apart ids in which characters were replaced or cut.
    let id = if plain == part && whole.len() <= 120 {
        whole
    } else {
        let message =
            plimsoll_core::Message::text(plimsoll_core::Role::System, format!("{session}:{part}"));
        let begin = plimsoll_core::text::head(&whole, plimsoll_core::text::Limit::Characters(100));
        format!("{begin}.{}", plimsoll_core::ContentHash::of(&message).short())
    };
    SessionId::new(&id).map_err(|error| RunError::Missing { what: error.to_string() })
}
