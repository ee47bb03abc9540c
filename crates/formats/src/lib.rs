//! Reads recorded agent sessions and writes them back.
//!
//! [`read`] recognises a file by its content, never by its name, and returns its messages in the order in which the model
//! received them, with the results of every tool call directly behind it. [`Session::notes`] lists records that were
//! skipped or repaired. [`write()`] writes a changed context in the file's own format.

mod anthropic;
mod claude_code;
mod cline;
mod codex;
mod content;
mod copilot_cli;
mod cursor;
mod dialogue;
mod draft;
mod error;
mod format;
mod gemini_cli;
mod gemini_log;
mod json;
mod markdown;
mod mini_swe_agent;
mod note;
mod object;
mod openai;
mod opencode;
mod openhands;
mod pi;
mod places;
mod prices;
mod read;
mod recognise;
mod repair;
mod requests;
mod session;
mod swe_agent;
mod tau_bench;
mod time;
mod write;

pub use dialogue::{Dialogue, DialogueLine, read_dialogue};
pub use error::{ReadError, WriteError};
pub use format::SessionFormat;
pub use note::{NoteKind, RecordPlace, SessionNote};
pub use places::{
    FoundSession, UsualPlace, candidates_in, newest_first, sessions_under, sub_agents_first,
    sub_agents_under, usual_places,
};
pub use prices::{
    ListedBand, ListedModel, Maker, OmitReason, PriceChanges, PriceList, PriceListError,
    PriceSource, merge as merge_prices, read_prices,
};
pub use read::read;
pub use requests::requests_of;
pub use session::{
    BlockPlace, Compaction, EarlierContext, Header, Origin, PartKind, ReadOptions,
    RecordedCompaction, Session, SessionPart,
};
pub use write::{ContextMessage, write};
