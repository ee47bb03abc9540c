//! The scorer's figures against those of the script whose definitions it shares.
//!
//! The constants were made by running the script's `score()` on these sessions, written as lists of chat messages, under
//! the same policies.

use std::sync::Arc;

use plimsoll_core::plan::{Context, Sent};
use plimsoll_core::reuse::{Score, Scorer};
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

/// A result of more than 2,000 tokens, and a step that needs its end.
fn long() -> Transcript {
    let lines: Vec<String> =
        (0..200).map(|n| format!("value_{n} is read from src/deep/file_{n}.rs and kept")).collect();
    let messages = [
        user("read the long file"),
        said("", &[("a", "read", r#"{"path":"long"}"#)]),
        Message::result("a", lines.join(" ")),
        said(
            "value_17 is read from src/deep/file_17.rs and kept, value_18 too",
            &[("b", "read", r#"{"path":"none"}"#)],
        ),
        Message::result("b", "nothing here"),
        said("src/deep/file_150.rs then", &[]),
    ];
    transcript(messages, Tokenizer::Characters { per_token: 3.3 })
}

fn score(transcript: &Transcript, policy: impl Fn(usize, usize) -> Option<Message>) -> Score {
    let mut scorer = Scorer::default();
    for end in transcript.requests() {
        let context: Context = (0..end)
            .filter_map(|position| {
                let message = policy(position, end)?;
                Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
            })
            .collect();
        scorer.turn(transcript, end, &context);
    }
    scorer.score()
}

/// Turns, names and runs needed and kept, breaks and expansions.
type Counts = (u32, [u64; 4], u32, u32);

fn check(score: Score, cost: f64, work: f64, tokens: f64, peak: f64, counts: Counts) {
    let figures =
        [(score.cost, cost), (score.work, work), (score.tokens, tokens), (score.peak, peak)];
    for (ours, theirs) in figures {
        assert!((ours - theirs).abs() < 1e-6, "{ours} for {theirs}: {score:?}");
    }
    let names_and_runs = [score.needed, score.kept, score.runs_needed, score.runs_kept];
    assert_eq!((score.turns, names_and_runs, score.breaks, score.expansions), counts);
}

#[test]
fn full_history_costs_what_the_script_says() {
    for (session, cost, tokens, peak, counts) in [
        (copies(), 290.842_424, 489.939_394, 210.303_030, (4, [11, 11, 5, 5], 0, 0)),
        (long(), 4_325.796_970, 6_384.787_879, 3_206.363_636, (3, [4, 4, 4, 4], 0, 0)),
    ] {
        let whole = |at: usize, _| Some((*session.entries()[at].message).clone());
        check(score(&session, whole), cost, cost, tokens, peak, counts);
    }
}

#[test]
fn what_is_left_out_costs_what_the_script_says() {
    let without = |session: &Transcript, gone: &[usize]| {
        score(session, |at, end| {
            let left_out = gone.contains(&at) && at + 2 < end;
            (!left_out).then(|| (*session.entries()[at].message).clone())
        })
    };
    let copies = copies();
    check(
        without(&copies, &[3]),
        283.133_333,
        848.490_909,
        412.848_485,
        171.757_576,
        (4, [11, 11, 5, 4], 1, 1),
    );
    check(
        without(&copies, &[3, 6]),
        286.469_697,
        848.821_212,
        382.787_879,
        141.696_970,
        (4, [11, 11, 5, 4], 2, 1),
    );
    check(
        without(&copies, &[2]),
        332.006_061,
        332.006_061,
        458.303_030,
        194.484_848,
        (4, [11, 11, 5, 5], 1, 0),
    );
    check(
        without(&long(), &[2]),
        4_010.881_818,
        8_453.042_424,
        3_235.636_364,
        3_168.969_697,
        (3, [4, 3, 4, 4], 1, 1),
    );
}

#[test]
fn results_that_are_cut_cost_what_the_script_says() {
    let cut = |session: &Transcript| {
        score(session, |at, _| {
            let message = &session.entries()[at].message;
            Some(match message.results().next() {
                Some(result) => {
                    let kept: String = result.text.chars().take(30).collect();
                    Message::result(result.call_id.clone(), kept)
                }
                None => (**message).clone(),
            })
        })
    };
    check(
        cut(&copies()),
        231.024_242,
        1_900.460_606,
        379.636_364,
        167.878_788,
        (4, [11, 7, 5, 2], 0, 3),
    );
    check(
        cut(&long()),
        92.115_152,
        8_975.315_152,
        112.666_667,
        70.303_030,
        (3, [4, 0, 4, 0], 0, 2),
    );
}
