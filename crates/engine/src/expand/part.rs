//! The part of a text that is asked for, exactly as it stands there.
//!
//! Values of JSON are cut out of the text and never written anew, so numbers keep their digits.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ExpandError, path};

/// Which part of a content to return: first the fields, and of them the part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpandOptions {
    /// JSON paths such as `items[0].title`, `items[*].id` or `["a key"].x`; none means the whole content.
    pub fields: Vec<String>,
    pub part: ContentPart,
}

/// A part of a text or of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentPart {
    #[default]
    Whole,
    /// Elements of a JSON list, else characters of the text; counted from 0.
    Slice { offset: usize, limit: usize },
    /// Lines, counted from 1, both ends included.
    Lines { first: usize, last: usize },
    /// Lines that hold `text`, upper and lower case alike, with `around` lines before and after each.
    Search { text: String, around: usize, limit: usize },
}

/// The unit of [`Expansion::total`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Characters,
    Elements,
    Lines,
    Matches,
}

/// The part that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    pub text: String,
    /// The numbers of the lines in `text`, for lines and searches.
    pub lines: Vec<usize>,
    pub unit: Unit,
    /// How much there is in all, and where to go on if this is not the end.
    pub total: usize,
    pub next: Option<usize>,
    /// Fields that were asked for and are not there.
    pub missing: Vec<String>,
    /// The content is older than its time to live.
    pub is_stale: bool,
}

/// Returns the part of a text that `options` ask for.
pub fn expand_text(content: &str, options: &ExpandOptions) -> Result<Expansion, ExpandError> {
    if options.fields.is_empty() {
        return Ok(part_of(content, &options.part));
    }
    let mut missing = Vec::new();
    let picked = fields(content, &options.fields, &mut missing)?;
    let mut expansion = part_of(&picked, &options.part);
    expansion.missing = missing;
    Ok(expansion)
}

/// Returns a part of a text.
fn part_of(text: &str, part: &ContentPart) -> Expansion {
    match part {
        ContentPart::Whole => whole(text.to_owned()),
        ContentPart::Slice { offset, limit } => slice(text, *offset, *limit),
        ContentPart::Lines { first, last } => lines(text, *first, *last),
        ContentPart::Search { text: wanted, around, limit } => {
            search(text, wanted, *around, *limit)
        }
    }
}

fn of(text: String, unit: Unit, total: usize) -> Expansion {
    let (lines, missing) = (Vec::new(), Vec::new());
    Expansion { text, lines, unit, total, next: None, missing, is_stale: false }
}

fn whole(text: String) -> Expansion {
    let total = text.chars().count();
    of(text, Unit::Characters, total)
}

fn fields(
    content: &str,
    paths: &[String],
    missing: &mut Vec<String>,
) -> Result<String, ExpandError> {
    let root: &RawValue = serde_json::from_str(content).map_err(|_| ExpandError::NotJson)?;
    let mut found: Vec<(&String, String)> = Vec::new();
    for text in paths {
        let steps =
            path::parse(text).ok_or_else(|| ExpandError::InvalidPath { path: text.clone() })?;
        match path::pick(root, &steps) {
            Some(value) => found.push((text, value)),
            None => missing.push(text.clone()),
        }
    }
    match found.as_slice() {
        [] => Err(ExpandError::NoField { paths: paths.to_vec() }),
        [(_, only)] if paths.len() == 1 => Ok(only.clone()),
        several => {
            let pairs: Vec<String> = several
                .iter()
                .map(|(path, value)| format!("{}: {value}", serde_json::Value::from(path.as_str())))
                .collect();
            Ok(format!("{{{}}}", pairs.join(", ")))
        }
    }
}

fn slice(text: &str, offset: usize, limit: usize) -> Expansion {
    let end = offset.saturating_add(limit);
    if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
        let chosen: Vec<&str> =
            elements.iter().skip(offset).take(limit).map(|element| element.get()).collect();
        let total = elements.len();
        let next = (end < total).then_some(end);
        let text = format!("[{}]", chosen.join(", "));
        return Expansion { next, ..of(text, Unit::Elements, total) };
    }
    let total = text.chars().count();
    let next = (end < total).then_some(end);
    let chosen = text.chars().skip(offset).take(limit).collect();
    Expansion { next, ..of(chosen, Unit::Characters, total) }
}

fn lines(text: &str, first: usize, last: usize) -> Expansion {
    let all: Vec<&str> = text.lines().collect();
    let (first, last) = (first.max(1), last.min(all.len()));
    let chosen = if first <= last { &all[first - 1..last] } else { &[] };
    let mut expansion = of(chosen.join("\n"), Unit::Lines, all.len());
    expansion.lines = (first..=last).collect();
    expansion.next = (last >= first && last < all.len()).then_some(last + 1);
    expansion
}

fn search(text: &str, wanted: &str, around: usize, limit: usize) -> Expansion {
    let all: Vec<&str> = text.lines().collect();
    let wanted = wanted.to_lowercase();
    let hits: Vec<usize> = all
        .iter()
        .enumerate()
        .filter(|(_, line)| !wanted.is_empty() && line.to_lowercase().contains(&wanted))
        .map(|(number, _)| number)
        .collect();
    let mut chosen: Vec<usize> = Vec::new();
    for hit in hits.iter().take(limit) {
        let from = hit.saturating_sub(around).max(chosen.last().map_or(0, |last| last + 1));
        chosen.extend(from..hit.saturating_add(around).saturating_add(1).min(all.len()));
    }
    let shown: Vec<&str> = chosen.iter().map(|number| all[*number]).collect();
    let mut expansion = of(shown.join("\n"), Unit::Matches, hits.len());
    expansion.lines = chosen.iter().map(|number| number + 1).collect();
    // Where to go on is a line: the one of the first match that is not shown.
    expansion.next = hits.get(limit).map(|number| number + 1);
    expansion
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"{"id": 12345678901234567890, "items": [{"t": "one", "n": 1.10},
        {"t": "two"}], "a key": {"x": null}}"#;

    fn expanded(
        content: &str,
        fields: &[&str],
        part: ContentPart,
    ) -> Result<Expansion, ExpandError> {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        expand_text(content, &ExpandOptions { fields, part })
    }

    #[track_caller]
    fn check(content: &str, fields: &[&str], part: ContentPart, text: &str, next: Option<usize>) {
        let expansion = expanded(content, fields, part).expect("an expansion");
        assert_eq!((expansion.text.as_str(), expansion.next), (text, next));
    }

    #[test]
    fn fields_are_cut_out_as_they_stand() {
        check(PAGE, &["id"], ContentPart::Whole, "12345678901234567890", None);
        check(PAGE, &["items[0].n"], ContentPart::Whole, "1.10", None);
        check(PAGE, &["items[*].t"], ContentPart::Whole, r#"["one", "two"]"#, None);
        check(PAGE, &[r#"["a key"].x"#], ContentPart::Whole, "null", None);
        check(
            PAGE,
            &["id", "items[1]"],
            ContentPart::Whole,
            r#"{"id": 12345678901234567890, "items[1]": {"t": "two"}}"#,
            None,
        );
        check(
            PAGE,
            &["items"],
            ContentPart::Slice { offset: 1, limit: 1 },
            r#"[{"t": "two"}]"#,
            None,
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let some = expanded(PAGE, &["id", "none.x"], ContentPart::Whole).expect("one is there");
        assert_eq!(some.missing, ["none.x"]);
        let none = expanded(PAGE, &["none", "items[9]"], ContentPart::Whole);
        assert!(matches!(none, Err(ExpandError::NoField { .. })));
        for bad in ["", "a..b", "a[", "a[x]", "[\"a]", "a]"] {
            let result = expanded(PAGE, &[bad], ContentPart::Whole);
            assert!(matches!(result, Err(ExpandError::InvalidPath { .. })), "{bad}");
        }
        let plain = expanded("plain", &["id"], ContentPart::Whole);
        assert!(matches!(plain, Err(ExpandError::NotJson)));
    }

    #[test]
    fn slices_say_where_to_go_on() {
        check("[1, 2, 3]", &[], ContentPart::Slice { offset: 0, limit: 2 }, "[1, 2]", Some(2));
        check("[1, 2, 3]", &[], ContentPart::Slice { offset: 2, limit: 9 }, "[3]", None);
        check("äbc", &[], ContentPart::Slice { offset: 0, limit: 2 }, "äb", Some(2));
        check("äbc", &[], ContentPart::Slice { offset: usize::MAX, limit: 2 }, "", None);
    }

    #[test]
    fn lines_are_counted_from_one() {
        check("a\nb\nc", &[], ContentPart::Lines { first: 2, last: 2 }, "b", Some(3));
        check("a\nb\nc", &[], ContentPart::Lines { first: 0, last: 99 }, "a\nb\nc", None);
        check("a\nb\nc", &[], ContentPart::Lines { first: 3, last: 2 }, "", None);
        check("", &[], ContentPart::Lines { first: 1, last: 2 }, "", None);
    }

    #[test]
    fn a_search_shows_the_lines_around() {
        let text = "one\ntwo\nError: x\nfour\nfive\nerror again";
        let around =
            |around, limit| ContentPart::Search { text: "ERROR".to_owned(), around, limit };
        check(text, &[], around(0, 9), "Error: x\nerror again", None);
        check(text, &[], around(1, 1), "two\nError: x\nfour", Some(6));
        let found = expanded(text, &[], around(9, 9)).expect("an expansion");
        assert_eq!((found.lines.len(), found.total), (6, 2));
        let nothing = ContentPart::Search { text: String::new(), around: 1, limit: 9 };
        check(text, &[], nothing, "", None);
    }
}
