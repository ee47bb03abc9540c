//! Selecting: the records of one layer, each at the level of detail that its room allows.

use serde::{Deserialize, Serialize};

use crate::choose::{Candidate, Form, Forms, Level, Pick, Reason, Room, pack};
use crate::memory::MemoryKind;
use crate::memory::quote;
use crate::memory::score::MemoryCandidate;
use crate::tokens::Tokenizer;

/// A record with its forms: its summary, if it has one, and its line.
#[derive(Debug, Clone)]
pub(super) struct RecordForms<'a> {
    candidate: &'a MemoryCandidate,
    tokenizer: Tokenizer,
    /// The fullest form.
    level: Level,
    text: String,
    tokens: u64,
    /// The fullest level that may stand: a record that stands in the context keeps its text.
    most: Level,
}

impl<'a> RecordForms<'a> {
    pub(super) fn new(candidate: &'a MemoryCandidate, tokenizer: Tokenizer, most: Level) -> Self {
        let summary = candidate.summary.as_deref().filter(|text| !text.trim().is_empty());
        let (level, text) = match summary {
            Some(summary) => (Level::Summary, render(candidate, summary)),
            None => (Level::Micro, render(candidate, &candidate.micro)),
        };
        let tokens = tokens(&text, tokenizer);
        Self { candidate, tokenizer, level, text, tokens, most }
    }

    /// Returns the tokens of its fullest form.
    pub(super) fn wanted(&self) -> u64 {
        self.tokens
    }

    pub(super) fn id(&self) -> &'a str {
        &self.candidate.id
    }
}

impl Forms for RecordForms<'_> {
    type Value = String;

    fn form(&self, room: u64) -> Option<Form<String>> {
        let Self { level, tokens, .. } = *self;
        if level <= self.most && tokens <= room {
            return Some(Form { level, tokens, value: self.text.clone() });
        }
        if level == Level::Micro {
            return None;
        }
        let text = render(self.candidate, &self.candidate.micro);
        let tokens = self::tokens(&text, self.tokenizer);
        (tokens <= room).then_some(Form { level: Level::Micro, tokens, value: text })
    }
}

/// A line of a context, or a few that stand or go together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The record's id; empty for lines that come from no record.
    pub id: String,
    pub level: Level,
    pub text: String,
    /// Tokens of `text` and of the line break behind it.
    pub tokens: u64,
    pub score: f64,
    /// Whether it is a quotation.
    pub quoted: bool,
    /// Whether it stands whatever is asked: identity, blocking constraints, frame and focus.
    #[serde(default)]
    pub required: bool,
}

impl Item {
    /// Makes the item of a record in the form that was chosen for it.
    pub(super) fn of(candidate: &MemoryCandidate, form: Form<String>, score: f64) -> Self {
        let Form { level, tokens, value: text } = form;
        let quoted = !quote::is_operator(&candidate.origin);
        Self { id: candidate.id.clone(), level, text, tokens, score, quoted, required: false }
    }

    /// Makes a line that must stand and comes from no record; its tokens are not counted yet.
    pub(super) fn line(text: String, quoted: bool) -> Self {
        let (id, level) = (String::new(), Level::Summary);
        Self { id, level, text, tokens: 0, score: 1.0, quoted, required: true }
    }
}

/// Fills `room` with the best records, each as a summary, else as one line, until one fits in neither form.
///
/// Shape: in the order of `records`.
pub(super) fn fill<'a>(
    records: Vec<Candidate<RecordForms<'a>>>,
    room: u64,
    left_out: &mut Vec<(&'a str, Reason)>,
) -> Vec<Item> {
    let choice = pack(records, &Room::until_full(room));
    left_out.extend(choice.left_out.iter().map(|(one, reason)| (one.source.id(), *reason)));
    let item = |pick: Pick<RecordForms<'a>, String>| {
        Item::of(pick.candidate.source.candidate, pick.form, pick.candidate.score.unwrap_or(1.0))
    };
    choice.picks.into_iter().map(item).collect()
}

/// Counts `text` with the line break that follows it.
pub(super) fn tokens(text: &str, tokenizer: Tokenizer) -> u64 {
    u64::from(tokenizer.count(text)) + u64::from(tokenizer.count("\n").max(1))
}

/// Returns a record as it stands in its section; a procedure with its own heading.
fn render(candidate: &MemoryCandidate, text: &str) -> String {
    let origin = &candidate.origin;
    if candidate.kind == MemoryKind::Procedure {
        let name = if candidate.name.trim().is_empty() { &candidate.id } else { &candidate.name };
        return format!(
            "## Procedure: {}\n{}",
            quote::quoted_line(name, origin),
            quote::block(text, origin)
        );
    }
    format!("- {}", quote::quoted_line(text, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Tokenizer = Tokenizer::Characters { per_token: 1.0 };

    fn check(room: u64, shown: Option<Level>, expected: &[&str]) {
        let with = |id: &str, summary: &str| MemoryCandidate {
            summary: Some(summary.into()),
            ..MemoryCandidate::new(id, MemoryKind::Fact, id)
        };
        // As lines with their break: "- one hundred" 14 and "- a" 4, "- bbb" 6 and "- b" 4, "- ccc" 6 and "- c" 4.
        let candidates = [with("a", "one hundred"), with("b", "bbb"), with("c", "ccc")];
        let most = shown.unwrap_or(Level::Summary);
        let records = candidates
            .iter()
            .map(|one| Candidate::in_order(RecordForms::new(one, PLAIN, most)))
            .collect();
        let mut left_out = Vec::new();
        let items = fill(records, room, &mut left_out);
        let texts: Vec<&str> = items.iter().map(|item| &*item.text).collect();
        assert_eq!(texts, expected, "{room}");
        assert_eq!(items.len() + left_out.len(), 3);
    }

    #[test]
    fn a_summary_if_it_fits_else_one_line_until_the_layer_is_full() {
        check(26, None, &["- one hundred", "- bbb", "- ccc"]);
        check(24, None, &["- one hundred", "- bbb", "- c"]);
        check(23, None, &["- one hundred", "- bbb"]);
        check(13, None, &["- a", "- bbb"]);
        check(3, None, &[]);
        check(26, Some(Level::Micro), &["- a", "- b", "- c"]);
    }

    #[test]
    fn a_procedure_has_its_own_heading() {
        let steps = MemoryCandidate {
            name: "Deploy".into(),
            ..MemoryCandidate::new("p", MemoryKind::Procedure, "one\ntwo")
        };
        assert_eq!(render(&steps, &steps.micro), "## Procedure: Deploy\none\ntwo");
        let foreign = MemoryCandidate { origin: "tool".into(), ..steps };
        let expected = "## Procedure: \"Deploy\" (from tool)\n> one\n> two";
        assert_eq!(render(&foreign, &foreign.micro), expected);
    }
}
