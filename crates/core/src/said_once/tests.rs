use std::collections::BTreeMap;
use std::fmt::Write as _;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::{Arc, Block, HashMap, Message, Role, SaidOnce, line_texts};
use crate::message::ToolCall;
use crate::tokens::Tokenizer;
use crate::transcript::Transcript;

/// The lines of a text: by the numbers that its tool wrote, and the others by their places.
#[derive(Default)]
struct Source {
    numbered: BTreeMap<u32, (String, String)>,
    placed: BTreeMap<u32, (String, String)>,
}

/// The context of a model: for each label the lines of its text, by their numbers.
#[derive(Default)]
struct Reader {
    seen: HashMap<String, Source>,
    counts: HashMap<String, u32>,
}

impl Reader {
    /// Takes in a text under its label; returns its lines, pointers followed by their own words.
    fn read(&mut self, label: &str, shown: &str) -> Vec<(Option<u32>, String)> {
        let mut lines: Vec<(Option<u32>, String, String)> = Vec::new();
        for line in line_texts(shown) {
            let whole = &shown[line.whole.clone()];
            match whole.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(pointer) if pointer.contains("as above in ") => {
                    self.follow(pointer, &mut lines);
                }
                _ => {
                    let (indent, words) = (line.indent(shown), line.words(shown));
                    lines.push((line.numbered, indent.to_owned(), words.to_owned()));
                }
            }
        }
        let count = self.counts.entry(label.to_owned()).or_default();
        *count += 1;
        let label = if *count == 1 { label.to_owned() } else { format!("{label} #{count}") };
        let mut source = Source::default();
        for ((number, indent, words), order) in lines.iter().zip(1..) {
            let line = (indent.clone(), words.clone());
            match number {
                Some(number) => source.numbered.insert(*number, line),
                None => source.placed.insert(order, line),
            };
        }
        self.seen.insert(label, source);
        lines.into_iter().map(|(number, indent, words)| (number, indent + &words)).collect()
    }

    fn follow(&self, pointer: &str, lines: &mut Vec<(Option<u32>, String, String)>) {
        let (head, places) = pointer.split_once("as above in ").expect("a pointer");
        let mut number: Option<u32> =
            head.split_once('-').and_then(|(first, _)| first.parse().ok());
        for place in places.split("; ") {
            let ranges = place;
            // A label may hold blanks: the longest that is known.
            let label = self.seen.keys().filter(|label| {
                ranges.strip_prefix(label.as_str()).is_some_and(|rest| rest.starts_with(' '))
            });
            let label = label.max_by_key(|label| label.len()).expect("a label that was seen");
            for range in ranges[label.len() + 1..].split(", ") {
                let (range, indented) = range.split_once(" indented ").unwrap_or((range, ""));
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (u32, u32) =
                    (first.parse().expect("a number"), last.parse().expect("a number"));
                let source = &self.seen[label];
                let is_numbered =
                    source.numbered.contains_key(&first) && source.numbered.contains_key(&last);
                let from = if is_numbered { &source.numbered } else { &source.placed };
                for (indent, words) in from.range(first..=last).map(|(_, line)| line.clone()) {
                    lines.push((number, moved(&indent, indented, &words), words));
                    number = number.map(|number| number + 1);
                }
            }
        }
    }
}

fn moved(indent: &str, by: &str, words: &str) -> String {
    if by.is_empty() || words.is_empty() {
        return indent.to_owned();
    }
    let (count, blank) = by[1..].split_once(' ').expect("count and blank");
    let count: usize = count.parse().expect("a count");
    let blank = if blank.starts_with("tab") { "\t" } else { " " };
    if by.starts_with('+') { blank.repeat(count) + indent } else { indent[count..].to_owned() }
}

fn lines_of(text: &str) -> Vec<(Option<u32>, String)> {
    line_texts(text)
        .map(|line| (line.numbered, line.indent(text).to_owned() + line.words(text)))
        .collect()
}

/// A session of reads: which file, and its text.
fn session(reads: &[(usize, String)]) -> Transcript {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    transcript.push(Message::text(Role::User, "read"));
    for (order, (file, text)) in reads.iter().enumerate() {
        let id: Arc<str> = order.to_string().into();
        let arguments = format!(r#"{{"path":"src/f{file}.rs"}}"#).into();
        let call = ToolCall { id: id.clone(), name: "read".into(), arguments };
        transcript.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        transcript.push(Message::result(id, text.as_str()));
    }
    transcript
}

fn forms(transcript: &Transcript) -> Vec<Option<String>> {
    let mut said = SaidOnce::default();
    let entries = transcript.entries().iter();
    let forms = entries.map(|entry| {
        let form = said.read(entry)?;
        let text = form.results().next()?.text.to_string();
        Some(text)
    });
    forms.collect()
}

fn code(lines: std::ops::Range<usize>) -> String {
    lines.map(|at| format!("    let value_{at} = compute({at});")).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_read_before_is_pointed_to() {
    let whole = code(0..12);
    let changed = whole.replace("compute(5)", "computed(5, true)");
    let inner = code(3..9).replace("    let", "let");
    let reads = [(0, whole.clone()), (0, whole), (1, changed), (2, inner)];
    let forms: Vec<String> = forms(&session(&reads)).into_iter().flatten().collect();
    assert_snapshot!(forms.join("\n---\n"), @r"
    [12 lines as above in read f0.rs 1-12]
    ---
    [5 lines as above in read f0.rs #2 1-5]
        let value_5 = computed(5, true);
    [6 lines as above in read f0.rs #2 7-12]
    ---
    [6 lines as above in read f0.rs #2 4-9 indented -4 spaces]
    ");
}

#[test]
fn numbered_lines_are_pointed_to_by_their_numbers() {
    let numbered = |first: usize, lines: std::ops::Range<usize>| {
        let text = code(lines);
        let lines = text.lines().zip(first..).map(|(line, at)| format!("{at:>6}→{line}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let reads = [(0, numbered(1, 0..20)), (0, numbered(6, 5..15))];
    let forms: Vec<String> = forms(&session(&reads)).into_iter().flatten().collect();
    assert_snapshot!(forms.join("\n"), @"[6-15: as above in read f0.rs 6-15]");
}

#[test]
fn what_a_message_no_longer_shows_is_not_pointed_to() {
    let transcript = session(&[(0, code(0..12)), (1, code(0..12))]);
    let mut said = SaidOnce::default();
    for entry in &transcript.entries()[..4] {
        said.read(entry);
    }
    said.changed(2, "[… 12 lines]");
    assert!(said.read(&transcript.entries()[4]).is_none());
}

#[test]
fn lines_of_the_models_own_calls_count_as_said() {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    let content = serde_json::Value::from(code(0..12));
    let arguments = format!(r#"{{"path":"a.rs","content":{content}}}"#).into();
    let call = |id: &str, name: &str, arguments| {
        let call = ToolCall { id: id.into(), name: name.into(), arguments };
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    };
    transcript.push(call("1", "write", arguments));
    transcript.push(Message::result("1", "written"));
    transcript.push(call("2", "read", r#"{"path":"a.rs"}"#.into()));
    transcript.push(Message::result("2", code(0..12)));
    let found = forms(&transcript).pop().flatten().expect("a form");
    assert_snapshot!(found, @r"
        let value_0 = compute(0);
    [10 lines as above in your write a.rs 2-11]
        let value_11 = compute(11);
    ");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A reader who follows the pointers gets every line back, with its number and indentation.
    #[test]
    fn nothing_is_lost(
        reads in prop::collection::vec(
            (0..3_usize, prop::collection::vec((0..24_usize, 0..6_usize, 0..4_usize), 1..9), 0..3_usize),
            1..9,
        )
    ) {
        let reads: Vec<(usize, String)> = reads
            .into_iter()
            .map(|(file, stretches, style)| {
                let mut text = String::new();
                let mut number = 1 + style * 7;
                for (start, count, indent) in stretches {
                    for at in start..start + count {
                        let blank = if indent == 3 { "\t" } else { "  " };
                        let words = if at % 7 == 6 { String::new() } else { format!("call_of_{at}(with, words) {at}") };
                        let line = blank.repeat(indent) + &words;
                        if style == 0 {
                            let _ = writeln!(text, "{line}");
                        } else {
                            let _ = writeln!(text, "{number}→{line}");
                        }
                        number += 1;
                    }
                }
                (file, text)
            })
            .collect();
        let transcript = session(&reads);
        let mut reader = Reader::default();
        for (order, form) in forms(&transcript).into_iter().enumerate().skip(2).step_by(2) {
            let (file, text) = &reads[order / 2 - 1];
            let shown = form.as_deref().unwrap_or(text);
            let read = reader.read(&format!("read f{file}.rs"), shown);
            let blank = |lines: Vec<(Option<u32>, String)>| -> Vec<(Option<u32>, String)> {
                // Blanks on a line without words say nothing.
                lines.into_iter().map(|(number, line)| {
                    let empty = line.trim().is_empty();
                    (number, if empty { String::new() } else { line })
                }).collect()
            };
            prop_assert_eq!(blank(read), blank(lines_of(text)), "{}", shown);
        }
    }
}
