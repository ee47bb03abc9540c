//! The events of a run, for those who watch it.

use serde::Serialize;

/// One event; a resumed run tells the recorded ones again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum RunEvent {
    RunBegan {
        session: String,
        cascade: String,
        is_resumed: bool,
    },
    PhaseBegan {
        phase: String,
        visit: usize,
        context_messages: usize,
        context_tokens: u64,
    },
    /// A remark that stops nothing.
    Noted {
        phase: String,
        note: String,
    },
    /// The messages that a phase in mode `auto` sees of others were selected, by hash.
    #[serde(rename = "chosen")]
    ContextSelected {
        phase: String,
        strategy: String,
        anchored: Vec<String>,
        selected: Vec<String>,
    },
    /// A model answered.
    Turn {
        phase: String,
        turn: u32,
        model: String,
        /// Tokens of all messages so far, and of those that were sent.
        full_tokens: u64,
        sent_tokens: u64,
        output_tokens: u64,
        /// US dollars, by the price table.
        cost: f64,
        /// The cost if all messages had been sent.
        full_cost: f64,
        /// Whether both costs are estimates, since the table does not list the model.
        estimate: bool,
        calls: Vec<String>,
        is_recorded: bool,
    },
    ToolEnded {
        phase: String,
        tool: String,
        is_error: bool,
        characters: usize,
        is_recorded: bool,
    },
    Validated {
        phase: String,
        validator: String,
        attempt: u32,
        valid: bool,
        reason: String,
    },
    SoundingsEvaluated {
        phase: String,
        winner: usize,
        of: usize,
        reason: String,
    },
    PhaseEnded {
        phase: String,
        output: String,
    },
    RunEnded {
        output: String,
    },
}

/// Watches a run.
pub trait Observer: Send + Sync + std::fmt::Debug {
    fn tell(&self, event: &RunEvent);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn tell(&self, _: &RunEvent) {}
}
