//! The rules that decide what a model sees: transcripts, tokens, plans, excerpts, cost.
//!
//! Everything here takes values and returns values; other crates provide time, ids and files.

#[macro_use]
mod macros;

pub mod ab;
pub mod aging;
mod allocation;
pub mod answer;
mod attempts;
pub mod bill;
pub mod calibrate;
pub mod card;
pub mod choose;
mod compression;
pub mod context;
pub mod cost;
pub mod counted_session;
mod excerpt;
mod file_access;
mod hash;
pub mod json_form;
pub mod json_text;
pub mod keep_warm;
pub mod lazy_tools;
pub mod learn;
pub mod lookup;
pub mod memory;
mod message;
pub mod message_label;
pub mod names;
pub mod need;
mod passes;
pub mod payload;
pub mod pins;
pub mod plan;
pub mod policy;
mod pressure;
mod priority;
pub mod recall;
pub mod render;
pub mod replay;
pub mod request;
pub mod safety;
mod said_once;
pub mod section;
pub mod select;
mod spelling;
mod statistics;
mod summary;
pub mod terms;
pub mod text;
pub mod tokens;
mod transcript;
mod trim;
mod value_or_word;
pub mod verify;

pub use allocation::{
    Allocations, Budgets, ContextBudget, ContextBudgetError, PerSource, calculate_budgets,
};
pub use compression::{LARGE_RESULT_TOKENS, compress_result};
pub use excerpt::KeptLines;
pub use hash::{ContentHash, Ref, RefKind};
pub use message::{
    Block, Image, Message, MillisSinceEpoch, Opaque, Role, Thinking, ToolCall, ToolResult, Usage,
};
pub use pressure::{Pressure, PressureLevel, pressure};
pub use priority::{ScoredTurn, TurnType, score_turns};
pub use spelling::nearest;
pub use statistics::{
    MessageTokens, Statistics, TokensByRole, TokensByType, ToolTokens, statistics,
};
pub use summary::{HEURISTIC_HEADER, MODEL_HEADER, heuristic_summary};
pub use text::words;
pub use tokens::{Calibration, Tokenizer};
pub use transcript::{Entry, Exchange, Position, Transcript};
pub use trim::{KEPT_PRIORITY, KeptTurn, SummaryBy, TrimSettings, TrimmedSession, trim};
pub use value_or_word::ValueOrWord;
