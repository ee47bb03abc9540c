//! Recall: which stored messages hold what a question asks for.
//!
//! A message scores by its own words, by words of like meaning, by its vector, and by where it stands: beside messages that
//! score, in a part of the conversation that does, said by whom and when the question names. `docs/recall.md` measures each.

mod date;
mod index;
mod likeness;
mod pack;
mod postings;
mod question;
mod score;
mod settings;
mod stem;
mod stop_words;
mod vectors;

pub use index::{IndexedMessage, RecallIndex};
pub use pack::{Packed, header, pack};
pub use score::{Match, RecalledMessage, ScoreParts};
pub use settings::RecallSettings;
pub(crate) use stem::stem;
pub(crate) use stop_words::is_stop_word;
pub use vectors::WordVectors;

#[cfg(test)]
pub(crate) use date::days_of;
pub(crate) use date::written;
