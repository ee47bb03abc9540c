//! What a model sees, decided purely: transcripts, tokens, plans, excerpts, cost.
//!
//! Everything here takes values and returns values; time, ids and files belong to others.

pub mod bound;
pub mod cost;
pub mod error_lines;
mod hash;
mod message;
pub mod names;
mod passes;
pub mod plan;
pub mod policy;
pub mod render;
pub mod replay;
pub mod reuse;
pub mod tokens;
mod transcript;

pub use hash::{ContentHash, Ref, RefKind};
pub use message::{
    Block, Image, Message, MillisSinceEpoch, Opaque, Role, Thinking, ToolCall, ToolResult, Usage,
};
pub use tokens::{Calibration, Tokenizer};
pub use transcript::{Entry, Exchange, Position, Transcript};
