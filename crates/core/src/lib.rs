//! What a model sees, decided purely: transcripts, tokens, plans, excerpts, cost.
//!
//! Everything here takes values and returns values; time, ids and files belong to others.

mod allocation;
mod hash;
mod message;
mod pressure;
mod spelling;
pub mod tokens;
mod transcript;

pub use allocation::{
    Allocations, Budgets, ContextBudget, ContextBudgetError, PerSource, calculate_budgets,
};
pub use hash::{ContentHash, Ref, RefKind};
pub use message::{
    Block, Image, Message, MillisSinceEpoch, Opaque, Role, Thinking, ToolCall, ToolResult, Usage,
};
pub use pressure::{Pressure, PressureLevel, pressure};
pub use spelling::nearest;
pub use tokens::{Calibration, Tokenizer};
pub use transcript::{Entry, Exchange, Position, Transcript};
