//! Running a cascade: its phases one after another, each with the context that is chosen for it.

mod ask;
mod auto_context;
mod context;
mod dry;
mod error;
mod event;
mod failure;
mod images;
mod journal;
mod next;
mod offer;
mod output;
mod phase;
mod settings;
mod soundings;
mod state;
mod sub_cascade;
mod tool_phase;
mod toolbox;
mod turns;
mod validate;
mod values;
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
pub use event::{Event, Observer, Unobserved};
pub use settings::RunSettings;
pub use state::{Ran, RunState};
pub use toolbox::{Human, Nobody};

use crate::definition::Cascade;
use journal::Journal;
use toolbox::Toolbox;

/// Finds models by name.
pub trait ModelSource: Send + Sync + std::fmt::Debug {
    /// Returns the model of this name, or the usual one.
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError>;

    /// Is told that an answer of the model was taken from the record.
    fn passed_over(&self, _name: Option<&str>) {}
}

/// Finds cascades by the names that other cascades have for them.
pub trait Library: Send + Sync + std::fmt::Debug {
    /// Returns a cascade, or why there is none.
    fn cascade(&self, reference: &str) -> Result<Arc<Cascade>, String>;
}

/// What runs need from outside.
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

/// What a run gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The output of the last phase.
    pub output: String,
    pub past: RunState,
}

/// A run that is going on.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) runner: Runner,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) cascade: Arc<Cascade>,
    /// Cascades around this one.
    pub(crate) depth: u32,
    /// Which attempt of soundings this is, from 0.
    pub(crate) sounding: Option<usize>,
}

impl Runner {
    /// Runs a cascade to its end; a session that was begun before goes on where its record ends.
    pub async fn run(
        &self,
        cascade: Arc<Cascade>,
        input: Map<String, Value>,
        session: &SessionId,
    ) -> Result<Outcome, RunError> {
        let toolbox = Toolbox::gather(
            &self.tools,
            self.history.clone(),
            self.knowledge.clone(),
            self.human.clone(),
            self.settings.stubs,
        )
        .await
        .map_err(|error| RunError::Missing { what: error.to_string() })?;
        let toolbox = Arc::new(toolbox);
        let run = Run { runner: self.clone(), toolbox, cascade, depth: 0, sounding: None };
        run.check()?;
        images::check(session)?;
        run.start(input, Map::new(), session).await
    }
}

impl Run {
    /// Runs the cascade in a session of its own, or so often as its soundings say.
    pub(crate) async fn start(
        &self,
        input: Map<String, Value>,
        state: Map<String, Value>,
        session: &SessionId,
    ) -> Result<Outcome, RunError> {
        let mut journal = self.journal(session).await?;
        let is_resumed = journal.is_recorded();
        self.tell(&Event::RunBegan {
            session: session.to_string(),
            cascade: self.cascade.cascade_id.to_string(),
            is_resumed,
        });
        let mut past =
            RunState { input: self.cascade.with_defaults(input), state, ran: Vec::new() };
        let outcome = if let Some(soundings) = self.cascade_soundings(&past)? {
            self.sound_cascade(soundings, past, &mut journal).await?
        } else {
            self.phases(&mut past, &mut journal).await?;
            let output = past.ran.last().map(|ran| ran.output.clone()).unwrap_or_default();
            Outcome { output, past }
        };
        self.tell(&Event::RunEnded { output: outcome.output.clone() });
        Ok(outcome)
    }

    pub(crate) async fn journal(&self, session: &SessionId) -> Result<Journal, RunError> {
        let Runner { history, clock, tenant, .. } = &self.runner;
        Journal::open(history.clone(), clock.clone(), tenant.clone(), session.clone()).await
    }

    pub(crate) fn tell(&self, event: &Event) {
        self.runner.observer.tell(event);
    }

    pub(crate) fn note(&self, phase: &str, note: impl Into<String>) {
        self.tell(&Event::Noted { phase: phase.to_owned(), note: note.into() });
    }

    /// Checks that everything the cascade names is there, before anything is done.
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
                        "phase `{}` needs the tool `{tool}`, and there is none{}",
                        phase.name,
                        near.unwrap_or_default()
                    );
                    return Err(RunError::Missing { what });
                }
            }
            self.check_validators(phase)?;
        }
        Ok(())
    }
}

/// Makes the session id of a part of a run: readable while it fits, else by its hash.
pub(crate) fn part_of(session: &SessionId, part: &str) -> Result<SessionId, RunError> {
    let plain: String = part
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '_' })
        .collect();
    let whole = format!("{session}:{plain}");
    // What was replaced or is too long is told apart by the hash of all of it.
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
