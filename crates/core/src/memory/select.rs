//! Selecting: the records of one layer, each at the level of detail that its room allows.

use serde::{Deserialize, Serialize};

use crate::memory::MemoryKind;
use crate::memory::quote;
use crate::memory::score::{Candidate, LeftOut, Ranked};
use crate::tokens::Tokenizer;

/// How much of a record stands in a context; all there is of it is for `expand_detail` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Micro,
    Summary,
}

/// A record in the fullest form in which it may stand in a context.
#[derive(Debug, Clone)]
pub(super) struct Written<'a> {
    pub(super) candidate: &'a Candidate,
    score: f64,
    tokenizer: Tokenizer,
    level: Level,
    text: String,
    tokens: u64,
}

impl<'a> Written<'a> {
    pub(super) fn new(ranked: &Ranked<'a>, tokenizer: Tokenizer) -> Self {
        let &Ranked { candidate, score } = ranked;
        let summary = candidate.summary.as_deref().filter(|text| !text.trim().is_empty());
        let (level, text) = match summary {
            Some(summary) => (Level::Summary, render(candidate, summary)),
            None => (Level::Micro, render(candidate, &candidate.micro)),
        };
        let tokens = tokens(&text, tokenizer);
        Self { candidate, score, tokenizer, level, text, tokens }
    }

    /// Returns its tokens.
    pub(super) fn wanted(&self) -> u64 {
        self.tokens
    }

    /// Returns its fullest form of at most `room` tokens; not above `most`.
    fn within(&self, room: u64, most: Level) -> Option<(Level, String, u64)> {
        if self.level <= most && self.tokens <= room {
            return Some((self.level, self.text.clone(), self.tokens));
        }
        if self.level == Level::Micro {
            return None;
        }
        // Counted only now: most records never need it, and counting is what takes time.
        let text = render(self.candidate, &self.candidate.micro);
        let tokens = tokens(&text, self.tokenizer);
        (tokens <= room).then_some((Level::Micro, text, tokens))
    }
}

/// A line of a context, or a few that stand or go together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The record's id; empty for lines that come from no record.
    pub id: String,
    pub level: Level,
    pub text: String,
    /// Tokens of `text` and of what separates it from the next.
    pub tokens: u64,
    pub score: f64,
    /// Whether it is a quotation.
    pub quoted: bool,
}

/// Fills `room` with the best of `written`, each as a summary, else as one line, until one fits in neither form.
///
/// Shape: in the order of `written`. Records for which `shown` has a level keep it, so that their text stays as it was.
pub(super) fn fill<'a>(
    written: &[Written<'a>],
    room: u64,
    shown: impl Fn(&str) -> Option<Level>,
    left_out: &mut Vec<(&'a str, LeftOut)>,
) -> Vec<Item> {
    let mut items = Vec::new();
    let mut room = room;
    let mut written = written.iter();
    for record in written.by_ref() {
        let id = &*record.candidate.id;
        let Some((level, text, tokens)) = record.within(room, shown(id).unwrap_or(Level::Summary))
        else {
            left_out.push((id, LeftOut::NoRoom));
            break;
        };
        room -= tokens;
        items.push(Item {
            id: id.to_owned(),
            level,
            text,
            tokens,
            score: record.score,
            quoted: !quote::is_operator(&record.candidate.origin),
        });
    }
    left_out.extend(written.map(|record| (&*record.candidate.id, LeftOut::NoRoom)));
    items
}

/// Counts `text` with the line break that follows it.
pub(super) fn tokens(text: &str, tokenizer: Tokenizer) -> u64 {
    u64::from(tokenizer.count(text)) + u64::from(tokenizer.count("\n").max(1))
}

/// Returns a record as it stands in its section; a procedure with its own heading.
fn render(candidate: &Candidate, text: &str) -> String {
    let origin = &candidate.origin;
    if candidate.kind == MemoryKind::Procedure {
        let name = if candidate.name.trim().is_empty() { &candidate.id } else { &candidate.name };
        return format!(
            "## Procedure: {}\n{}",
            quote::said(name, origin),
            quote::block(text, origin)
        );
    }
    format!("- {}", quote::said(text, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Tokenizer = Tokenizer::Characters { per_token: 1.0 };

    fn check(room: u64, shown: Option<Level>, expected: &[&str]) {
        let with = |id: &str, summary: &str| Candidate {
            summary: Some(summary.into()),
            ..Candidate::new(id, MemoryKind::Fact, id)
        };
        // As lines with their break: "- one hundred" 14 and "- a" 4, "- bbb" 6 and "- b" 4, "- ccc" 6 and "- c" 4.
        let candidates = [with("a", "one hundred"), with("b", "bbb"), with("c", "ccc")];
        let written: Vec<Written<'_>> = candidates
            .iter()
            .map(|candidate| Written::new(&Ranked { candidate, score: 1.0 }, PLAIN))
            .collect();
        let mut left_out = Vec::new();
        let items = fill(&written, room, |_| shown, &mut left_out);
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
        let steps = Candidate {
            name: "Deploy".into(),
            ..Candidate::new("p", MemoryKind::Procedure, "one\ntwo")
        };
        assert_eq!(render(&steps, &steps.micro), "## Procedure: Deploy\none\ntwo");
        let foreign = Candidate { origin: "tool".into(), ..steps };
        let expected = "## Procedure: \"Deploy\" (from tool)\n> one\n> two";
        assert_eq!(render(&foreign, &foreign.micro), expected);
    }
}
