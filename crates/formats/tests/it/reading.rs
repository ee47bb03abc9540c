//! The result of each reader for a small session.

use std::fmt::Write as _;

use insta::assert_snapshot;
use plimsoll_core::Block;
use plimsoll_formats::{Compaction, ReadError, ReadOptions, Session, read};

use crate::fixtures;

pub(crate) fn session(text: &str) -> Session {
    read(text.as_bytes(), &ReadOptions::default()).unwrap()
}

pub(crate) fn honoured(text: &str) -> Session {
    read(text.as_bytes(), &ReadOptions { compaction: Compaction::Honour, ..ReadOptions::default() })
        .unwrap()
}

/// Renders a session: place, role, blocks and prompt size of each message, then the notes.
pub(crate) fn render(session: &Session) -> String {
    let mut out = String::new();
    for message in &session.messages {
        let _ = write!(out, "{} {}:", message.source.unwrap_or(0), message.role.as_str());
        for block in &message.blocks {
            let _ = match block {
                Block::Text(text) => write!(out, " {text:?}"),
                Block::Image(image) => write!(out, " image({})", image.media_type),
                Block::ToolCall(call) => {
                    write!(out, " {}={}{}", call.id, call.name, call.arguments)
                }
                Block::ToolResult(result) => {
                    let error = if result.is_error { "!" } else { "" };
                    let images = "+image".repeat(result.images.len());
                    write!(out, " {}{error}->{:?}{images}", result.call_id, result.text)
                }
                Block::Thinking(thinking) => write!(out, " thinking({})", thinking.text),
                Block::Opaque(opaque) => write!(out, " opaque({})", opaque.kind),
            };
        }
        if let Some(usage) = message.usage {
            let (all, cached, output) =
                (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens);
            let _ = write!(out, " [{all} {cached} {output}]");
        }
        out.push('\n');
    }
    for note in &session.notes {
        let _ = writeln!(out, "note {note}");
    }
    out
}

#[test]
fn every_format_is_recognised_by_content() {
    for (name, text) in fixtures::ALL {
        assert_eq!(session(text).format.as_str(), name);
        // Nor does one bad line in front hide a JSON Lines session, nor a byte order mark any.
        assert_eq!(session(&format!("\u{feff}{text}")).format.as_str(), name);
        if text.lines().count() > 4 && text.starts_with("{\"") {
            assert_eq!(session(&format!("garbage\n{text}")).format.as_str(), name);
        }
    }
}

#[test]
fn pi() {
    assert_snapshot!(render(&session(fixtures::PI)), @r#"
    3 user: "Fix it’s bug"
    4 assistant: thinking(hm) "Looking." c1=read{"path":"a.rs","n":1.0} c2=bash{"command":"ls"} [103 90 5]
    5 tool: c1->"fn main() {}"
    6 tool: c2!->"a.rs"+image
    8 user: "Ran `make`\n(no output)\n\nCommand exited with code 2"
    11 user: "go on"
    12 assistant: "Done." [7 0 1]
    "#);
}

#[test]
fn pi_honours_its_compaction() {
    assert_snapshot!(render(&honoured(fixtures::PI)), @r#"
    10 user: "The conversation history before this point was compacted into the following summary:\n\n<summary>\nwhat was\n</summary>"
    8 user: "Ran `make`\n(no output)\n\nCommand exited with code 2"
    11 user: "go on"
    12 assistant: "Done." [7 0 1]
    "#);
    assert_snapshot!(render(&honoured(fixtures::PI_FIRST_VERSION)), @r#"
    5 user: "The conversation history before this point was compacted into the following summary:\n\n<summary>\none and two\n</summary>"
    4 user: "three"
    6 assistant: "four"
    "#);
}

#[test]
fn what_stood_before_a_compaction_is_there_apart() {
    let asked = |messages: &[std::sync::Arc<plimsoll_core::Message>], known: usize| -> Vec<_> {
        let answers =
            messages.iter().skip(known).filter(|one| one.role == plimsoll_core::Role::Assistant);
        answers.map(|one| one.source).collect()
    };
    let mut compacted = 0;
    for (name, text) in fixtures::ALL {
        let (whole, honoured) = (session(text), honoured(text));
        let mut found = Vec::new();
        for stretch in &honoured.earlier {
            found.extend(asked(&stretch.messages, stretch.known));
        }
        found.extend(asked(&honoured.messages, honoured.known));
        assert_eq!(found, asked(&whole.messages, 0), "{name}: every answer once, in its order");
        assert!(whole.earlier.is_empty() && whole.known == 0, "{name}");
        compacted += honoured.earlier.len();
    }
    assert!(compacted >= 4, "{compacted}");
    let pi = honoured(fixtures::PI);
    // The summary and what is kept are known; what was kept stood in the earlier context too.
    assert_eq!((pi.earlier.len(), pi.known), (1, 2));
    assert_eq!(pi.earlier[0].messages.last().map(|one| one.source), Some(pi.messages[1].source));
}

#[test]
fn pi_survives_cycles_and_missing_parents() {
    let text = fixtures::PI.replace(
        r#""parentId":"a1","timestamp":"2026-02-20T12:00:02"#,
        r#""parentId":"a9","timestamp":"2026-02-20T12:00:02"#,
    );
    let counts = session(&text).notes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(counts, ["line 12: entry a9 is its own ancestor, the context begins here"]);
    let text = fixtures::PI.replace(r#""parentId":"a7""#, r#""parentId":"gone""#);
    let cut = session(&text);
    assert_eq!(cut.messages.len(), 2);
    assert_eq!(
        cut.notes[0].to_string(),
        "line 11: its parent gone is missing, the context begins here"
    );
}

#[test]
fn claude_code() {
    let read = session(fixtures::CLAUDE_CODE);
    assert_snapshot!(render(&read), @r#"
    2 user: "Caveat"
    3 user: "Change it"
    4 assistant: thinking(t) "Reading." t1=Read{"file_path":"a"} t2=Bash{"command":"ls"} [132 100 77]
    9 tool: t1->"secret original"
    9 tool: t2!->"listing"
    9 user: "and now?"
    13 user: "This session is being continued"
    14 assistant: "Done." [9 0 3]
    note line 11: skipped, repeats the record u6
    "#);
    assert_eq!(read.compactions[0].tokens_before, Some(155_979));
    assert_eq!(read.header.model.as_deref(), Some("claude-x"));
    assert_snapshot!(render(&honoured(fixtures::CLAUDE_CODE)), @r#"
    13 user: "This session is being continued"
    14 assistant: "Done." [9 0 3]
    note line 11: skipped, repeats the record u6
    "#);
}

#[test]
fn claude_code_sub_agents_own_file() {
    let text = r#"{"isSidechain":true,"type":"user","message":{"role":"user","content":"task"},"uuid":"1","sessionId":"s"}
{"isSidechain":true,"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"ok"}]},"uuid":"2","sessionId":"s"}"#;
    assert_snapshot!(render(&session(text)), @r#"
    1 user: "task"
    2 assistant: "ok"
    "#);
}

#[test]
fn codex() {
    let read = session(fixtures::CODEX);
    assert_snapshot!(render(&read), @r#"
    3 system: "rules"
    4 user: "hi" "there"
    7 assistant: opaque(reasoning) k1=exec_command{"cmd": "ls"} k2=apply_patch*** Begin Patch [1000 400 20]
    10 tool: k1->"a.rs"
    11 tool: k2->"ok"
    12 assistant: "done"
    14 user: "more"
    "#);
    assert_eq!(read.header.instructions.as_deref(), Some("You are an agent."));
    assert_eq!(read.header.context_window, Some(258_400));
    assert_eq!(read.header.model.as_deref(), Some("o9"));
    assert_snapshot!(render(&honoured(fixtures::CODEX)), @r#"
    13 user: "in short"
    14 user: "more"
    "#);
    assert_snapshot!(render(&session(fixtures::CODEX_OLD)), @r#"
    3 user: "hi"
    5 assistant: opaque(reasoning) "scan" k=next{}
    7 tool: k->"[]"
    "#);
}

#[test]
fn openai() {
    let read = session(fixtures::OPENAI);
    assert_snapshot!(render(&read), @r#"
    1 system: "Be good."
    2 user: "do"
    3 assistant: o1=f{"a": 1} o2=g{}
    4 tool: o1->"one"
    5 tool: o2->"two"
    6 assistant: "ready"
    "#);
    assert_eq!(read.header.context_window, Some(200_000));
}

#[test]
fn anthropic() {
    let read = session(fixtures::ANTHROPIC);
    assert_snapshot!(render(&read), @r#"
    1 user: "do"
    2 assistant: thinking(x) "on it" n1=f{"a":1} n2=g{}
    3 tool: n1->"one"
    3 tool: n2->"two"
    3 user: "next"
    4 assistant: "ready"
    "#);
    assert_eq!(read.header.instructions.as_deref(), Some("Be kind."));
}

#[test]
fn swe_agents() {
    assert_snapshot!(render(&session(fixtures::SWE_AGENT)), @r#"
    1 system: "s"
    2 user: "issue"
    3 assistant: "look" w1=bash{"command":"ls"}
    4 tool: w1->"OBSERVATION:\na"
    5 assistant: "look\n<command>\nls\n</command>" c4=bash
    6 tool: c4->"b"
    "#);
    assert_snapshot!(render(&session(fixtures::MINI_SWE_AGENT)), @r#"
    1 system: "s"
    2 user: "task"
    3 assistant: "THOUGHT: ls" c2=bash [50 8 7]
    4 tool: c2->"<returncode>0</returncode>"
    5 assistant: "end" c4=bash
    "#);
}

#[test]
fn openhands() {
    assert_snapshot!(render(&session(fixtures::OPENHANDS)), @r#"
    1 system: "You are."
    2 user: "go"
    5 assistant: "I look" h1=execute_bash{"command": "ls"} [11 0 2]
    6 tool: h1->"total 3"
    8 assistant: "done"
    "#);
    assert_snapshot!(render(&honoured(fixtures::OPENHANDS)), @r#"
    1 system: "You are."
    2 user: "go"
    7 user: "looked around"
    8 assistant: "done"
    "#);
    let events = fixtures::OPENHANDS.replace('\n', " ");
    let run = format!("{{\"instance_id\":\"a\",\"metadata\":{{}},\"history\":{events}}}\n");
    let twice = session(&run.repeat(2));
    assert_eq!(twice.messages.len(), 5);
    assert_eq!(
        twice.notes[0].to_string(),
        "message 0: one session is read, 1 more are in the file: `FILE#1`, `FILE#2`, …"
    );
}

#[test]
fn gemini_cli() {
    assert_snapshot!(render(&session(fixtures::GEMINI_CLI)), @r#"
    1 user: "hi"
    2 assistant: thinking(S: d) q1=read_file{"file_path":"a b"} q2=shell{} [20 5 7]
    2 tool: q1->"text"
    2 tool: q2->"[no result was recorded]"
    4 user: "go on"
    note message 2: call q2 has no result, put one that says so
    "#);
}

#[test]
fn bad_lines_are_skipped_and_named() {
    let lines: Vec<&str> = fixtures::PI_FIRST_VERSION.lines().collect();
    let mut bytes = format!("{}\n{{\"type\":\n[1]\n", lines[..3].join("\n")).into_bytes();
    bytes.extend_from_slice(b"\xff\xfe\n");
    bytes.extend_from_slice(lines[5].as_bytes());
    let read = read(&bytes, &ReadOptions::default()).unwrap();
    assert_snapshot!(render(&read), @r#"
    2 user: "one"
    3 assistant: "two"
    7 assistant: "four"
    note line 4: skipped, the JSON ends too early: EOF while parsing a value at column 8
    note line 5: skipped, not a JSON object
    note line 6: skipped, not UTF-8
    "#);
}

#[test]
fn lone_surrogates_and_repeated_keys_are_read() {
    let text = r#"{"type":"session","id":"s"}
{"type":"message","message":{"role":"user","content":"a\ud800b"}}
{"type":"message","type":"message","message":{"role":"user","content":"twice"}}"#;
    assert_snapshot!(render(&session(text)), @r#"
    2 user: "a�b"
    3 user: "twice"
    "#);
    let text =
        r#"[{"role":"user","content":"a\udc00"},{"role":"assistant","content":"b","cost":NaN}]"#;
    assert_snapshot!(render(&session(text)), @r#"
    1 user: "a�"
    2 assistant: "b"
    "#);
}

#[test]
fn a_field_of_another_type_costs_no_record_and_a_lost_record_is_noted() {
    let text = r#"{"type":"session","id":7}
{"type":"message","message":{"role":"user","content":[{"type":"text","text":"a\ud800b"}],"usage":"none"}}
{"type":"message","message":"gone"}
{"type":"message","message":{"role":"user","content":"last","content":"twice"}}"#;
    let found = session(text);
    assert_snapshot!(render(&found), @r#"
    2 user: "a�b"
    4 user: "twice"
    note line 3: skipped, its message is not an object
    "#);
    assert_eq!(found.header.id.as_deref(), Some("7"));
    let text = format!(
        "{}\n{{\"type\":\"compacted\",\"payload\":\"gone\"}}\n",
        fixtures::CODEX.trim_end()
    );
    let notes: Vec<String> = session(&text).notes.iter().map(ToString::to_string).collect();
    let line = text.lines().count();
    assert_eq!(notes, [format!("line {line}: skipped, its payload is not an object")]);
}

fn error(text: &str) -> String {
    let error: ReadError = read(text.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert!(error.hint().is_some());
    error.to_string()
}

#[test]
fn errors_say_what_was_expected_and_found() {
    assert_snapshot!(error(" \n"), @r#"the file is empty"#);
    assert_snapshot!(error("# notes\nof the day"), @r#"not a recorded session: expected JSON lines or a JSON document of pi, claude-code, codex, openai-messages, anthropic-messages, swe-agent, mini-swe-agent, openhands, gemini-cli, opencode, copilot-cli, cursor, cline, tau-bench; the file begins with `# notes of the day`"#);
    assert_snapshot!(error(r#"{"a":1}"#), @r#"not a recorded session: expected JSON lines or a JSON document of pi, claude-code, codex, openai-messages, anthropic-messages, swe-agent, mini-swe-agent, openhands, gemini-cli, opencode, copilot-cli, cursor, cline, tau-bench; the file begins with `{"a":1}`"#);
    assert_snapshot!(error("[1,2]"), @r#"not a recorded session: expected JSON lines or a JSON document of pi, claude-code, codex, openai-messages, anthropic-messages, swe-agent, mini-swe-agent, openhands, gemini-cli, opencode, copilot-cli, cursor, cline, tau-bench; the file begins with `[1,2]`"#);
    assert_snapshot!(error(&fixtures::OPENAI[..300]), @r#"the JSON document ends too early, at line 5, column 168"#);
    assert_snapshot!(error(&fixtures::OPENAI.replace("\"role\": \"user\",", "\"role\": user,")), @r#"cannot read the JSON document at line 4, column 14"#);
    assert_snapshot!(error(r#"{"type":"session","version":3,"id":"s"}"#), @r#"no message could be read from this pi session (0 records skipped)"#);
}

#[test]
fn opencode_calls_and_results_are_taken_apart() {
    let found = session(fixtures::OPENCODE);
    assert_snapshot!(render(&found), @r#"
    1 user: "look"
    2 assistant: thinking(hm) "Looking." c1=bash{"command":"ls"} c2=read{} [40 20 7]
    2 tool: c1->"a.rs"
    2 tool: c2!->"no such file"
    3 assistant: "Done." [48 40 2]
    "#);
    assert_eq!(found.header.working_directory.as_deref(), Some("/work"));
    assert_eq!(found.requests[0].thinking_tokens, Some(4));
}
