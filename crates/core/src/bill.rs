//! The bill: the parts of the cost of recorded requests, by the usage that their provider reported.
//!
//! `split` divides each request's reported tokens into parts that add up to the billed sum; `rate` measures a session's tokens
//! for each character; `predict` compares the reported cache with the model of it; `savings` estimates the savings of settings on
//! the same requests.

mod predict;
mod rate;
mod recorded;
mod savings;
mod split;

use std::sync::Arc;

use serde::Serialize;

use crate::cost::Charge;
use crate::message::{MillisSinceEpoch, Usage};

pub use predict::{Prediction, predict};
pub use rate::{Rate, rate};
pub use recorded::{BilledSession, Division, FileCounts, RecordedBill, ShortAnswers};
pub use savings::{Estimate, Saving, SavingVerdict, Savings, savings};
pub use split::{Split, SplitTokens, split};

/// Characters that were added to a conversation, by kind, as far as the file shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AddedContent {
    /// Messages with the role of the system.
    pub system: u64,
    pub text: u64,
    pub calls: u64,
    pub results: u64,
    /// The part of `results` in runs of at least three lines that the conversation already held, without the size of pointers.
    pub repeated: u64,
    /// As `repeated`, in runs of at least eight lines.
    pub repeated_long: u64,
    pub blocks: u32,
}

impl AddedContent {
    /// Returns the characters of all messages but the system's.
    pub fn visible(&self) -> u64 {
        self.text + self.calls + self.results
    }

    /// Adds other content.
    pub fn add(&mut self, other: &Self) {
        self.system += other.system;
        self.text += other.text;
        self.calls += other.calls;
        self.results += other.results;
        self.repeated += other.repeated;
        self.repeated_long += other.repeated_long;
        self.blocks += other.blocks;
    }
}

/// Why content was written to the cache, or read in full, a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The pause since the last request was longer than the cache's life.
    Pause,
    /// Another model was asked.
    Model,
    /// Tools or system prompt changed.
    Tools,
    /// The client replaced the history by a summary.
    Compaction,
    /// The client removed something: a rewind, a branch, reasoning that is left out.
    Rewind,
    /// Plimsoll changed what was sent.
    Ours,
    /// The end of the last request lies behind the last mark or step of the cache.
    Step,
    /// The provider had no entry, and the record shows no reason.
    Unknown,
}

/// One call of a model, as its provider billed it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Request {
    /// Identifies copies of the same request in several files.
    pub id: Option<Arc<str>>,
    /// Line or element of the file that reports it, from 1.
    pub source: u32,
    /// When it was sent: the time of the last message before it, else of its answer.
    pub sent: Option<MillisSinceEpoch>,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    /// The part of the output that is thinking, where the provider reports it.
    pub thinking_tokens: Option<u64>,
    /// Conversations of one file: 0 is the main one, others are sub-agents and abandoned branches.
    pub thread: u32,
    /// The request whose prompt and answer this one's begins with, as an index into the same list; always an earlier one.
    pub continues: Option<usize>,
    /// Whether a user's message stands directly before it.
    pub after_user: bool,
    /// Whether the client compacted since that request.
    pub compacted: bool,
    /// The cause of a cache miss, where the provider reported it.
    pub told: Option<Cause>,
    /// Content that was added since that request, its answer included.
    pub added: AddedContent,
    /// Characters of the answer that the file shows, thinking apart.
    pub answered: u64,
    /// The index of the answer among the session's messages; `None` outside of the main conversation.
    pub message: Option<usize>,
}

/// A part of the bill; all parts add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// System prompt and tools, sent for the first time in a conversation.
    SystemFirst,
    /// System prompt and tools, read from the cache.
    SystemRead,
    /// Messages that the file shows, read from the cache.
    HistoryRead,
    /// The rest of the history, read from the cache: thinking, attachments, reminders.
    UnseenRead,
    /// Content that was sent for the first time.
    New,
    AgainPause,
    AgainModel,
    AgainTools,
    AgainCompaction,
    AgainRewind,
    AgainOurs,
    AgainStep,
    AgainUnknown,
    /// Output that the provider counts as thinking.
    Thinking,
    /// Other output, and all output if thinking is not counted apart.
    Output,
    /// The surcharge on all other parts for prompts above a size.
    Cliff,
}

names!(Row {
    SystemFirst "system_first",
    SystemRead "system_read",
    HistoryRead "history_read",
    UnseenRead "unseen_read",
    New "new",
    AgainPause "again_pause",
    AgainModel "again_model",
    AgainTools "again_tools",
    AgainCompaction "again_compaction",
    AgainRewind "again_rewind",
    AgainOurs "again_ours",
    AgainStep "again_step",
    AgainUnknown "again_unknown",
    Thinking "thinking",
    Output "output",
    Cliff "cliff",
});

impl Row {
    /// Returns the row of content that was sent again.
    pub fn again(cause: Cause) -> Self {
        match cause {
            Cause::Pause => Self::AgainPause,
            Cause::Model => Self::AgainModel,
            Cause::Tools => Self::AgainTools,
            Cause::Compaction => Self::AgainCompaction,
            Cause::Rewind => Self::AgainRewind,
            Cause::Ours => Self::AgainOurs,
            Cause::Step => Self::AgainStep,
            Cause::Unknown => Self::AgainUnknown,
        }
    }
}

/// Tokens of a row, and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Amount {
    pub tokens: f64,
    /// US dollars.
    pub dollars: f64,
}

/// The sums of the bills of some requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BillTotals {
    pub requests: u64,
    /// How many of them are priced as another model.
    pub estimated: u64,
    /// US dollars for the reported usage, as [`crate::cost::Prices::billed`] says.
    pub billed: f64,
    /// The sum of the reported usage.
    pub usage: Usage,
    amounts: [Amount; Row::ALL.len()],
    /// The parts of [`Row::HistoryRead`]: text, calls, results.
    history: [Amount; 3],
}

impl BillTotals {
    /// Adds a request.
    pub fn add(&mut self, split: &Split) {
        self.requests += 1;
        self.estimated += u64::from(split.is_estimate);
        self.billed += split.prices.billed(&split.usage);
        self.add_usage(&split.usage);
        for (row, amount) in split.amounts() {
            let own = &mut self.amounts[row as usize];
            own.tokens += amount.tokens;
            own.dollars += amount.dollars;
            if row == Row::HistoryRead {
                for (own, share) in self.history.iter_mut().zip(split.kinds) {
                    own.tokens += amount.tokens * share;
                    own.dollars += amount.dollars * share;
                }
            }
        }
    }

    /// Adds other totals.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.estimated += other.estimated;
        self.billed += other.billed;
        self.add_usage(&other.usage);
        let own = self.amounts.iter_mut().chain(&mut self.history);
        for (own, amount) in own.zip(other.amounts.iter().chain(&other.history)) {
            own.tokens += amount.tokens;
            own.dollars += amount.dollars;
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.usage.prompt_tokens += usage.prompt_tokens;
        self.usage.cached_tokens += usage.cached_tokens;
        self.usage.written_tokens += usage.written_tokens;
        self.usage.written_long_tokens += usage.written_long_tokens;
        self.usage.output_tokens += usage.output_tokens;
    }

    /// Returns the amount of a row.
    pub fn amount(&self, row: Row) -> Amount {
        self.amounts[row as usize]
    }

    /// Returns the shares of text, tool calls and tool results in [`Row::HistoryRead`].
    pub fn history(&self) -> [(&'static str, Amount); 3] {
        let [text, calls, results] = self.history;
        [("text", text), ("tool_calls", calls), ("tool_results", results)]
    }

    /// Returns the sum of all parts, which is the billed sum.
    pub fn dollars(&self) -> f64 {
        self.amounts.iter().map(|amount| amount.dollars).sum()
    }

    /// Returns the share of the prompts that was read from the cache.
    pub fn cached_share(&self) -> f64 {
        let charge = Charge::of(&self.usage);
        if charge.prompt() > 0.0 { charge.cached / charge.prompt() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
