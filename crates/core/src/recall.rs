//! Recall: finds the stored messages that answer a question.
//!
//! A message scores by its words, by words of similar meaning, by its vector, and by its place: its neighbours' scores, the
//! best score of its passage, its speaker and its day. `docs/recall.md` measures each.

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
