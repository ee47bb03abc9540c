//! What happens in a run, as it happens.

use serde::Serialize;

/// One thing that happened; what was recorded before and is met again is told again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
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
    /// Something that a reader should know and that stops nothing.
    Noted {
        phase: String,
        note: String,
    },
    /// What a phase in mode `auto` sees of others was chosen, by hash.
    Chosen {
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
        /// Tokens of all that was said so far, and of what was sent of it.
        full_tokens: u64,
        sent_tokens: u64,
        output_tokens: u64,
        /// US dollars, by the table of prices.
        cost: f64,
        /// The same if everything had been sent.
        full_cost: f64,
        /// Whether the table does not list the model, so that both are estimates.
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

/// Is told what happens.
pub trait Observer: Send + Sync + std::fmt::Debug {
    fn tell(&self, event: &Event);
}

/// Is told, and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn tell(&self, _: &Event) {}
}
