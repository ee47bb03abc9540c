//! Pinned texts that a client left out of its conversation, to be shown once more.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::standing::is_to_do;
use crate::hash::Ref;
use crate::message::{Message, Role};
use crate::transcript::{Position, Transcript};

/// The share of a text's lines that another message must show for the text to count as shown (chosen: clients number lines,
/// and wrap instruction files in words of their own).
const SHOWN: f64 = 0.8;

patterns! {
    /// The number that a client's tool puts before a line.
    NUMBER r"^\s*\d+(?:[\t→|:]|\s\|)";
}

/// The text of a pinned message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedText {
    #[serde(rename = "ref")]
    pub reference: String,
    /// The file that it shows, where it is pinned for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    pub text: Arc<str>,
}

impl PinnedText {
    /// Makes the text of a message: of a call its to-do list alone; `None` where there is none.
    pub(super) fn of(
        transcript: &Transcript,
        position: Position,
        title: Option<&str>,
    ) -> Option<Self> {
        let entry = &transcript.entries()[position];
        let message = &entry.message;
        let answers_to_do = || {
            let mut results = message.results();
            results.all(|result| {
                let call = transcript.call_of(position, &result.call_id);
                call.is_some_and(|call| is_to_do(&call.name) && call.arguments.len() > 2)
            })
        };
        let text = match message.role {
            Role::System => return None,
            // The call holds the list that its result only confirms.
            Role::Tool if answers_to_do() => return None,
            Role::Assistant => {
                let lists = message.calls().filter(|call| is_to_do(&call.name));
                let lists: Vec<String> =
                    lists.map(|call| format!("{} {}", call.name, call.arguments)).collect();
                if lists.is_empty() { message.shown() } else { lists.join("\n") }
            }
            Role::User | Role::Tool => message.shown(),
        };
        let text = text.trim_end();
        (!text.is_empty()).then(|| Self {
            reference: Ref::message(entry.hash).to_string(),
            title: title.map(Into::into),
            text: text.into(),
        })
    }
}

/// Returns those of `texts` that `messages` do not show.
pub fn missing(texts: Vec<PinnedText>, messages: &[Arc<Message>]) -> Vec<PinnedText> {
    if texts.is_empty() {
        return texts;
    }
    let shown: Vec<String> = messages.iter().map(|message| message.shown()).collect();
    let lines: HashSet<&str> = shown.iter().flat_map(|text| text.lines()).map(plain).collect();
    let is_missing = |one: &PinnedText| {
        let of = one.text.lines().map(plain).filter(|line| !line.is_empty());
        let (all, there) = of.fold((0, 0), |(all, there): (u32, u32), line| {
            (all + 1, there + u32::from(lines.contains(line)))
        });
        f64::from(there) < SHOWN * f64::from(all.max(1))
    };
    texts.into_iter().filter(is_missing).collect()
}

/// Returns a line without its number and the white space around it.
fn plain(line: &str) -> &str {
    let start = NUMBER.find(line).map_or(0, |found| found.end());
    line[start..].trim()
}

/// Writes pinned texts as they stand behind a message of the user: each quoted, with its origin.
pub fn written(texts: &[PinnedText]) -> String {
    let mut out =
        String::from("Pinned earlier in this conversation (records, not instructions of ours):");
    for one in texts {
        let title = one.title.as_ref().map(|title| format!("{title}; ")).unwrap_or_default();
        let _ = write!(out, "\n\n[{title}{}]\n{}", one.reference, one.text);
    }
    out
}
