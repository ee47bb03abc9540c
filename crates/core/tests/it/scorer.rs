//! The scorer's figures against those of the script whose rules it shares.
//!
//! The constants were made by running the script's `score()` on these sessions, written as lists of chat messages, under
//! the same policies, with a cache by prefix and no prompt before the messages.

use std::sync::Arc;

use plimsoll_core::cost::Prices;
use plimsoll_core::need::{NeedCount, Score, Scorer};
use plimsoll_core::plan::{Context, Sent};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Block, Message, Role, Tokenizer, ToolCall, Transcript};

use crate::transcripts::transcript;

fn said(text: &str, calls: &[(&str, &str, &str)]) -> Message {
    let mut blocks = vec![Block::Text(text.into())];
    for (id, name, arguments) in calls {
        blocks.push(Block::ToolCall(ToolCall {
            id: (*id).into(),
            name: (*name).into(),
            arguments: (*arguments).into(),
        }));
    }
    Message::new(Role::Assistant, blocks)
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// Copies names of every shape, and runs of words, from messages near and far.
fn copies() -> Transcript {
    let messages = [
        Message::text(Role::System, "be exact"),
        user("please look at src/main.rs for the failing test"),
        said("I will look", &[("a", "read", r#"{"path":"src/main.rs"}"#)]),
        Message::result(
            "a",
            "in src/main.rs the function parse_header is on line 1234\nand it reads one two three four five six seven eight nine",
        ),
        said(
            "parse_header it is, one two three four five six seven eight nine",
            &[
                ("b", "bash", r#"{"command":"grep -n parse_header src/main.rs"}"#),
                ("c", "bash", r#"{"command":"git show 3fa9c1d2e4"}"#),
            ],
        ),
        Message::result("b", "1234: fn parse_header"),
        Message::result(
            "c",
            "commit 3fa9c1d2e4 größe.wert of HttpClient.send, see https://a.example/x?y=1) MAX_SIZE",
        ),
        user("go on"),
        said("HttpClient.send has größe.wert and https://a.example/x?y=1 at MAX_SIZE", &[]),
        user("and now change it"),
        said(
            "changed parse_header at 1234 of src/main.rs in 3fa9c1d2e4, which reads one two three four five six seven eight nine",
            &[],
        ),
    ];
    transcript(messages, Tokenizer::Characters { per_token: 3.3 })
}

/// A file that is read, another look, and an edit in its middle.
fn edits() -> Transcript {
    let lines: Vec<String> =
        (1..=40).map(|n| format!("    {n:3}→let value_{n} = read_{n}(path);")).collect();
    let old = r"let value_20 = read_20(path);\nlet value_21 = read_21(path);";
    let edit =
        format!(r#"{{"path":"a.rs","old_string":"{old}","new_string":"let value_20 = 0;"}}"#);
    let messages = [
        user("change the middle"),
        said("", &[("a", "read", r#"{"path":"a.rs"}"#)]),
        Message::result("a", lines.join("\n")),
        said("a look elsewhere", &[("b", "bash", r#"{"command":"ls"}"#)]),
        Message::result("b", "a.rs\nb.rs"),
        said("now", &[("c", "edit", &edit)]),
        Message::result("c", "done"),
        said("that is all", &[]),
    ];
    transcript(messages, Tokenizer::Characters { per_token: 3.3 })
}

/// Scores `transcript` where `form` gives a message its form at a request that ends at a place, and `None` leaves it out.
fn score(transcript: &Transcript, form: impl Fn(usize, usize) -> Option<Message>) -> Score {
    let mut scorer = Scorer::default();
    for end in transcript.requests() {
        let context: Context = (0..end)
            .filter_map(|position| {
                let message = form(position, end)?;
                Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
            })
            .collect();
        scorer.turn(transcript, end, &context, &Terms::new(Prices::PLAIN), 0.0);
    }
    scorer.score()
}

/// Turns; names, passages and places needed and shown; turns with a need that was hidden; fetches.
type Counts = (u32, [(u64, u64); 3], u32, u32);

fn check(score: Score, counts: Counts) {
    let pair = |shown: NeedCount| (shown.needed, shown.shown);
    let kinds = [pair(score.names), pair(score.passages), pair(score.places)];
    assert_eq!((score.turns, kinds, score.blind, score.fetches), counts);
    assert_eq!(score.work > 0.0, score.fetches > 0);
}

fn whole(session: &Transcript, at: usize) -> Message {
    (*session.entries()[at].message).clone()
}

#[test]
fn the_full_history_shows_everything() {
    for (session, counts) in [
        (copies(), (4, [(11, 11), (5, 5), (0, 0)], 0, 0)),
        (edits(), (4, [(5, 5), (0, 0), (12, 12)], 0, 0)),
    ] {
        check(score(&session, |at, _| Some(whole(&session, at))), counts);
    }
}

#[test]
fn messages_that_are_left_out_are_fetched() {
    let without = |session: &Transcript, gone: &[usize]| {
        score(session, |at, end| {
            if gone.contains(&at) && at + 2 < end { None } else { Some(whole(session, at)) }
        })
    };
    let copies = copies();
    let once = (4, [(11, 10), (5, 4), (0, 0)], 1, 1);
    check(without(&copies, &[3]), once);
    check(without(&copies, &[3, 6]), once);
    check(without(&copies, &[2]), (4, [(11, 11), (5, 5), (0, 0)], 0, 0));
    check(without(&edits(), &[2]), (4, [(5, 1), (0, 0), (12, 0)], 1, 1));
}

#[test]
fn new_results_that_are_cut_are_fetched() {
    let cut = |session: &Transcript| {
        score(session, |at, _| {
            let message = &session.entries()[at].message;
            let Some(result) = message.results().next() else { return Some(whole(session, at)) };
            let kept: String = result.text.chars().take(30).collect();
            Some(Message::result(result.call_id.clone(), kept))
        })
    };
    check(cut(&copies()), (4, [(11, 6), (5, 4), (0, 0)], 3, 3));
    check(cut(&edits()), (4, [(5, 1), (0, 0), (12, 0)], 2, 2));
}

#[test]
fn a_list_of_names_shows_paths_and_no_symbols() {
    let listed = |session: &Transcript| {
        score(session, |at, end| {
            let message = &session.entries()[at].message;
            let Some(result) = message.results().next().filter(|_| at + 2 < end) else {
                return Some(whole(session, at));
            };
            let names = "names: parse_header 1234 HttpClient.send MAX_SIZE src/main.rs https://a.example/x?y=1 3fa9c1d2e4";
            Some(Message::result(result.call_id.clone(), names))
        })
    };
    check(listed(&copies()), (4, [(11, 10), (5, 4), (0, 0)], 1, 1));
    check(listed(&edits()), (4, [(5, 1), (0, 0), (12, 0)], 1, 1));
}
