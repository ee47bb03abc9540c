//! The events of a run, for those who watch it.

use serde::Serialize;

/// The purpose of a call of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a phase.
    Turn,
    /// The answer of a phase whose last turn called tools.
    FinalAnswer,
    /// A turn that only looked up content which its context had left out.
    Lookup,
    /// The verdict on an output.
    Judge,
    /// The choice among soundings.
    Evaluator,
    /// The combination of soundings.
    Aggregator,
    /// Other instructions for a sounding.
    Mutation,
    /// The choice of messages of earlier phases.
    Selector,
    /// The choice of tools.
    Manifest,
    /// The correction of a tool's inputs.
    Repair,
    /// The summary of a message for its card, or of messages beyond the budget.
    Summary,
}

impl Purpose {
    /// Returns the purpose's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::FinalAnswer => "final_answer",
            Self::Lookup => "lookup",
            Self::Judge => "judge",
            Self::Evaluator => "evaluator",
            Self::Aggregator => "aggregator",
            Self::Mutation => "mutation",
            Self::Selector => "selector",
            Self::Manifest => "manifest",
            Self::Repair => "repair",
            Self::Summary => "summary",
        }
    }

    /// Returns whether the call is made only because contexts are managed, so that sending everything would not need it.
    pub fn is_overhead(self) -> bool {
        matches!(self, Self::Lookup | Self::Selector | Self::Summary)
    }

    /// Returns whether the call is a turn of its phase.
    pub fn is_turn(self) -> bool {
        matches!(self, Self::Turn | Self::FinalAnswer | Self::Lookup)
    }
}

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
        /// Tokens of everything that went before, and of the selection.
        full_tokens: u64,
        selected_tokens: u64,
    },
    /// A model answered.
    Turn {
        phase: String,
        turn: u32,
        purpose: Purpose,
        model: String,
        /// Tokens of the request if everything had been sent, and of the one that was sent: messages, tools and schema.
        full_tokens: u64,
        sent_tokens: u64,
        output_tokens: u64,
        /// Tokens of the prompt as the provider reports them.
        reported_tokens: Option<u64>,
        /// US dollars, by the price table.
        cost: f64,
        /// The cost if everything had been sent; nothing for a call that only a managed context needs.
        full_cost: f64,
        /// The entry of the price table.
        priced_as: String,
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
