//! Reads recorded agent sessions and writes them back.
//!
//! A file is recognised by what is in it, never by its name; [`read`] turns it into messages in the order in which the
//! model met them, with every tool call answered directly behind it. What could not be read, and what had to be
//! repaired, is told in [`Session::notes`]. [`write()`] puts a changed context back into the file's own format.

mod anthropic;
mod claude_code;
mod codex;
mod content;
mod dialogue;
mod draft;
mod error;
mod format;
mod gemini_cli;
mod json;
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
mod time;
mod write;

pub use dialogue::{Dialogue, DialogueLine, read_dialogue};
pub use error::{ReadError, WriteError};
pub use format::Format;
pub use note::{Note, NoteKind, Place};
pub use places::{FoundSession, UsualPlace, sessions_under, usual_places};
pub use prices::{
    Left, ListedBand, ListedModel, Maker, Merged, PriceList, PriceListError, PriceSource,
    merge as merge_prices, read_prices,
};
pub use read::read;
pub use session::{
    Compaction, CompactionSeen, Header, Origin, Piece, ReadOptions, Session, Stretch,
};
pub use write::{Written, write};
