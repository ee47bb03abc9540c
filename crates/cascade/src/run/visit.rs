//! A visit: one run of a phase, with the past that it sees and the journal that it writes.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use serde_json::{Map, Value};

use super::CascadeRun;
use super::error::RunError;
use super::event::RunEvent;
use super::journal::Journal;
use super::state::{PhaseRun, RunState};
use super::toolbox::Caller;
use crate::definition::Phase;

/// One run of a phase.
#[derive(Debug)]
pub(crate) struct Visit<'r> {
    pub(crate) run: &'r CascadeRun,
    pub(crate) phase: &'r Phase,
    pub(crate) past: &'r mut RunState,
    pub(crate) journal: &'r mut Journal,
    /// The keys of the state that the visit set, with their values.
    pub(crate) changes: Map<String, Value>,
    /// US dollars that its calls of models cost.
    pub(crate) spent: f64,
    /// Whether it warned of its budget.
    pub(crate) is_warned: bool,
}

impl<'r> Visit<'r> {
    pub(crate) fn new(
        run: &'r CascadeRun,
        phase: &'r Phase,
        past: &'r mut RunState,
        journal: &'r mut Journal,
    ) -> Self {
        Self { run, phase, past, journal, changes: Map::new(), spent: 0.0, is_warned: false }
    }

    /// Returns the name of the phase.
    pub(crate) fn name(&self) -> &'r str {
        self.phase.name.as_str()
    }

    /// Informs the observer of something that stops nothing.
    pub(crate) fn note(&self, note: impl Into<String>) {
        self.run.tell(&RunEvent::Noted { phase: self.name().to_owned(), note: note.into() });
    }

    /// Returns the error of a phase that ended without its result.
    pub(crate) fn failed(&self, why: impl Into<String>) -> RunError {
        RunError::Failed { phase: self.name().to_owned(), why: why.into() }
    }

    /// Records a message of the phase itself.
    pub(crate) async fn say(
        &mut self,
        role: Role,
        text: impl Into<Arc<str>>,
    ) -> Result<Arc<Message>, RunError> {
        self.journal.say(phase_message(self.phase, role, text)).await
    }

    /// Sets a key of the run's state.
    pub(crate) fn set(&mut self, key: String, value: Value) {
        self.past.state.insert(key.clone(), value.clone());
        self.changes.insert(key, value);
    }

    /// Returns the finished run of the phase, for the past.
    pub(crate) fn finished(&mut self, output: String, messages: Vec<Arc<Message>>) -> PhaseRun {
        let changes = std::mem::take(&mut self.changes);
        PhaseRun { changes, ..PhaseRun::new(self.phase, output, messages) }
    }

    /// Returns who calls a tool, and when.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            tenant: self.journal.tenant().clone(),
            session: self.journal.session().clone(),
            cascade: self.run.cascade.cascade_id.to_string(),
            phase: self.name().to_owned(),
            bank: self.run.cascade.memory.clone(),
            now: self.run.runner.clock.now(),
            number: self.journal.turn(),
        }
    }
}

/// Makes a message of the phase itself.
pub(crate) fn phase_message(phase: &Phase, role: Role, text: impl Into<Arc<str>>) -> Message {
    let mut message = Message::text(role, text);
    message.phase = Some(phase.name.as_str().into());
    message
}
