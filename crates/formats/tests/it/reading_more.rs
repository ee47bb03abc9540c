//! The newer formats, and files with several conversations.

use insta::assert_snapshot;
use plimsoll_formats::{PartKind, ReadOptions, WriteError, read, write};

use crate::fixtures;
use crate::reading::{honoured, render, session};
use crate::writing::whole;

fn part(text: &str, part: usize) -> plimsoll_formats::Session {
    read(text.as_bytes(), &ReadOptions { part, ..ReadOptions::default() }).unwrap()
}

#[test]
fn gemini_cli_logs() {
    let found = session(fixtures::GEMINI_LOG);
    assert_snapshot!(render(&found), @r#"
    2 user: "mend the net"
    4 assistant: q1=read_file{"file_path":"net"} [20 5 7]
    4 tool: q1->"a hole"
    9 user: "go on"
    10 user: "so far: a hole"
    11 assistant: "Mended." [12 0 2]
    "#);
    assert_snapshot!(render(&honoured(fixtures::GEMINI_LOG)), @r#"
    10 user: "so far: a hole"
    10 user: "go on"
    11 assistant: "Mended." [12 0 2]
    "#);
    assert_eq!(found.header.working_directory.as_deref(), Some("/work"));
    // A line that is written again is no second request, and a request that was taken back is none.
    assert_eq!(found.requests.len(), 2);
    assert_eq!(honoured(fixtures::GEMINI_LOG).requests.len(), 2);
}

#[test]
fn copilot_cli() {
    let found = session(fixtures::COPILOT);
    assert_snapshot!(render(&found), @r#"
    2 user: "<now/>fix it"
    4 assistant: thinking(hm) t1=view{"path":"a"} t2=task{}
    6 tool: t1->"text"
    10 tool: t2!->"out of time"
    12 assistant: "Fixed."
    "#);
    assert_eq!(found.header.model.as_deref(), Some("model-b"));
    assert_eq!(found.compactions[0].tokens_before, Some(9000));
    assert_snapshot!(render(&honoured(fixtures::COPILOT)), @r#"
    11 user: "viewed a"
    12 assistant: "Fixed."
    "#);
    assert_snapshot!(render(&session(fixtures::COPILOT_FIRST_VERSION)), @r#"
    1 user: "fix it"
    2 assistant: t1=view{}
    3 tool: t1->"text"
    "#);
}

#[test]
fn cursor() {
    assert_snapshot!(render(&session(fixtures::CURSOR)), @r#"
    1 user: "look"
    2 assistant: "Looking." c2-1=Read{"path":"a"} c2-2=Grep{}
    3 tool: c2-1->"text of a"
    2 tool: c2-2->"[no result was recorded]"
    5 assistant: "Done."
    note line 2: call c2-2 has no result, put one that says so
    "#);
    assert_snapshot!(render(&session(fixtures::CURSOR_EXPORT)), @r#"
    6 user: "look"
    12 assistant: "Looking.\n\n```\n---\n```"
    "#);
}

#[test]
fn cline() {
    let found = session(fixtures::CLINE);
    assert_snapshot!(render(&found), @r#"
    1 user: "<task>\ndo\n</task>"
    2 assistant: "on it" n1=read_file{"path":"a"} [90 60 7]
    3 tool: n1->"text"
    "#);
    assert_eq!(found.header.model.as_deref(), Some("claude-z"));
    assert_eq!(found.requests.len(), 1);
    assert_snapshot!(render(&session(fixtures::CLINE_EXPORT)), @r#"
    1 user: "<task>\ndo\n</task>"
    9 assistant: "on it\n\n[read_file]"
    "#);
}

#[test]
fn every_conversation_of_a_file_is_read() {
    let listed = |text: &str| -> Vec<String> {
        let parts = session(text).parts;
        let line = |part: &plimsoll_formats::SessionPart| {
            let (name, task) = (part.name.as_deref(), part.task.as_deref());
            let (name, task) = (name.unwrap_or("-"), task.unwrap_or("-"));
            format!("{:?} {name}: {} messages, {task}", part.kind, part.messages)
        };
        parts.iter().map(line).collect()
    };
    assert_eq!(
        listed(fixtures::TAU_BENCH),
        [
            "Main task 0, trial 0, reward 0.0: 4 messages, book",
            "Run task 1, trial 0, reward 1.0: 3 messages, cancel",
        ]
    );
    assert_snapshot!(render(&session(fixtures::TAU_BENCH)), @r#"
    1 system: "policy"
    2 user: "book"
    3 assistant: b1=find{}
    4 tool: b1->"none"
    note message 0: one session is read, 1 more are in the file: `FILE#1`, `FILE#2`, …
    note message 3: skipped, a run without messages
    "#);
    assert_snapshot!(render(&part(fixtures::TAU_BENCH, 1)), @r#"
    1 system: "policy"
    2 user: "cancel"
    3 assistant: "Cancelled."
    "#);
    assert_eq!(
        listed(fixtures::COPILOT),
        ["Main -: 5 messages, <now/>fix it", "SubAgent explore: 2 messages, -"]
    );
    let agent = part(fixtures::COPILOT, 1);
    assert_snapshot!(render(&agent), @r#"
    8 assistant: "I look around." t3=grep{}
    9 tool: t3->"found"
    "#);
    assert_eq!(agent.header.id.as_deref(), Some("cp:explore"));
    let events = fixtures::OPENHANDS.replace('\n', " ");
    let runs = ["a", "b"]
        .map(|id| format!("{{\"instance_id\":\"{id}\",\"metadata\":{{}},\"history\":{events}}}\n"));
    assert_eq!(part(&runs.concat(), 1).header.id.as_deref(), Some("b"));
    // Where there is one, nothing is listed, and a number that is not there is an error.
    for (name, text) in fixtures::ALL {
        let parts = session(text).parts;
        assert_ne!(parts.len(), 1, "{name}");
        assert!(parts.is_empty() || parts[0].kind == PartKind::Main, "{name}");
        let beyond = ReadOptions { part: parts.len().max(1), ..ReadOptions::default() };
        let error = read(text.as_bytes(), &beyond).unwrap_err().to_string();
        assert!(error.contains("and no number"), "{name}: {error}");
    }
}

#[test]
fn a_part_of_a_file_is_not_written_back() {
    let lines = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"main"}}"#,
        r#"{"type":"user","uuid":"u2","parentUuid":null,"isSidechain":true,"agentId":"ag","sessionId":"s","message":{"role":"user","content":"aside"}}"#,
    ];
    let text = lines.join("\n");
    let aside = part(&text, 1);
    assert_eq!(aside.header.id.as_deref(), Some("s:ag"));
    assert_eq!(render(&aside), "2 user: \"aside\"\n");
    let refused = write(&aside, text.as_bytes(), &whole(&aside)).unwrap_err();
    assert!(matches!(refused, WriteError::Part { part: 1 }), "{refused}");
}

#[test]
fn claude_code_sessions_in_one_file_are_told_apart() {
    let line = |session: &str, uuid: &str, parent: Option<&str>, text: &str| {
        let parent = parent.map_or("null".to_owned(), |parent| format!("{parent:?}"));
        format!(
            r#"{{"type":"user","sessionId":"{session}","uuid":"{uuid}","parentUuid":{parent},"isSidechain":false,"cwd":"/w","version":"2.1","timestamp":"2026-01-21T06:24:41.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let text = [
        line("one", "a", None, "first"),
        line("two", "b", None, "second"),
        // Resumed under another id: the parent tells whose it is.
        line("one-again", "c", Some("a"), "first goes on"),
        line("three", "d", None, "third"),
        line("two", "e", Some("b"), "second goes on"),
    ]
    .join("\n");
    let read = |part| {
        let options = ReadOptions { part, ..ReadOptions::default() };
        let found = plimsoll_formats::read(text.as_bytes(), &options).expect("a session");
        let shown: Vec<String> = found.messages.iter().map(|message| message.shown()).collect();
        (found.header.id.unwrap_or_default(), shown.join(", "), found.parts.len())
    };
    assert_eq!(read(0), ("one".to_owned(), "first, first goes on".to_owned(), 3));
    assert_eq!(read(1), ("two".to_owned(), "second, second goes on".to_owned(), 3));
    assert_eq!(read(2), ("three".to_owned(), "third".to_owned(), 3));
}
