//! The calls of models that sessions report: each once, also those beside the main conversation.

use plimsoll_core::bill::{Cause, Request};
use plimsoll_formats::Session;

use crate::reading::session;

/// Renders requests: thread, what it continues, model, usage, and characters said since.
fn render(session: &Session) -> Vec<String> {
    let one = |request: &Request| {
        let usage = &request.usage;
        format!(
            "{}<{} {} {}/{}/{} {} said {}{}",
            request.thread,
            request.continues.map_or_else(|| "-".to_owned(), |index| index.to_string()),
            request.model.as_deref().unwrap_or("?"),
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.written_tokens,
            usage.output_tokens,
            request.added.visible(),
            if request.compacted { " compacted" } else { "" }
        )
    };
    session.requests.iter().map(one).collect()
}

#[test]
fn claude_code_counts_a_message_once_and_sub_agents_too() {
    let found = session(concat!(
        r#"{"type":"user","uuid":"1","isSidechain":false,"message":{"role":"user","content":"12345"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"2","isSidechain":false,"requestId":"r1","message":{"id":"m1","model":"claude-opus-4-6","content":[{"type":"text","text":"abc"}],"usage":{"input_tokens":1,"cache_creation_input_tokens":100,"output_tokens":1}}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"3","isSidechain":false,"requestId":"r1","message":{"id":"m1","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"t","name":"Task","input":{}}],"usage":{"input_tokens":1,"cache_creation_input_tokens":100,"output_tokens":20,"output_tokens_details":{"thinking_tokens":7}}}}"#,
        "\n",
        r#"{"type":"user","uuid":"4","parentUuid":null,"isSidechain":true,"message":{"role":"user","content":"1234567"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"5","parentUuid":"4","isSidechain":true,"message":{"id":"s1","model":"claude-haiku-4-5","content":"x","usage":{"input_tokens":50,"output_tokens":2}}}"#,
        "\n",
        r#"{"type":"progress","uuid":"6","isSidechain":false,"data":{"type":"agent_progress","agentId":"a9","message":{"type":"assistant","uuid":"7","message":{"id":"p1","model":"claude-haiku-4-5","content":"y","usage":{"input_tokens":60,"output_tokens":3}}}}}"#,
        "\n",
        r#"{"type":"user","uuid":"9","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"done"}]}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"10","isSidechain":false,"requestId":"r2","message":{"id":"m2","model":"claude-opus-4-6","content":"ok","diagnostics":{"cache_miss_reason":{"type":"tools_changed"}},"usage":{"input_tokens":5,"cache_read_input_tokens":0,"cache_creation_input_tokens":130,"output_tokens":4}}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"8","isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","content":[{"type":"text","text":"Limit reached"}],"usage":{"input_tokens":9,"output_tokens":9}}}"#,
        "\n",
    ));
    assert_eq!(
        render(&found),
        [
            "0<- claude-opus-4-6 101/0/100 20 said 5",
            "0<0 claude-opus-4-6 135/0/130 4 said 13",
            "1<- claude-haiku-4-5 50/0/0 2 said 7",
            "2<- claude-haiku-4-5 60/0/0 3 said 0",
        ]
    );
    assert_eq!(found.requests[0].thinking_tokens, Some(7));
    assert_eq!(found.requests[1].told, Some(Cause::Tools));
    assert_eq!(found.requests[1].id.as_deref(), Some("m2 r2"));
    let models: Vec<_> =
        found.messages.iter().filter_map(|message| message.model.clone()).collect();
    assert_eq!(models.len(), 2, "{models:?}");
}

#[test]
fn codex_counts_a_response_once_however_often_it_is_told() {
    let count = |total: u32, last: u32| {
        format!(
            r#"{{"timestamp":"2026-05-12T10:00:02Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total}}},"last_token_usage":{{"input_tokens":{last},"cached_input_tokens":400,"output_tokens":20,"reasoning_output_tokens":8}}}}}}}}"#
        ) + "\n"
    };
    let said = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
        ) + "\n"
    };
    let model =
        |name: &str| format!(r#"{{"type":"turn_context","payload":{{"model":"{name}"}}}}"#) + "\n";
    let begin = model("gpt-5.5") + &said("user", "hello") + &said("assistant", "hi");
    let rest = model("gpt-6-sol") + &said("user", "more") + &said("assistant", "well");
    let text = begin.clone() + &count(1000, 1000) + &count(1000, 1000) + &rest + &count(2100, 1100);
    let found = session(&text);
    assert_eq!(
        render(&found),
        ["0<- gpt-5.5 1000/400/0 20 said 5", "0<0 gpt-6-sol 1100/400/0 20 said 6"]
    );
    assert_eq!(found.requests[0].thinking_tokens, Some(8));
    // Where each response has a record of its own, the counts beside them are not added.
    let record = |id: &str, input: u32| {
        format!(
            r#"{{"type":"token_usage_record","payload":{{"response_id":"{id}","usage":{{"input_tokens":{input},"cache_write_input_tokens":60,"output_tokens":9}}}}}}"#
        ) + "\n"
    };
    let text = begin
        + &record("a", 1000)
        + &count(1000, 1000)
        + &record("a", 1000)
        + &rest
        + &record("b", 1100)
        + &count(2100, 1100);
    assert_eq!(
        render(&session(&text)),
        ["0<- gpt-5.5 1000/0/60 9 said 5", "0<0 gpt-6-sol 1100/0/60 9 said 6"]
    );
}

#[test]
fn pi_counts_the_branches_that_were_left() {
    let entry = |id: &str, parent: &str, role: &str, text: &str, input: u32| {
        let usage = if input > 0 {
            format!(
                r#","model":"m","usage":{{"input":{input},"output":1,"cacheRead":0,"cacheWrite":0}}"#
            )
        } else {
            String::new()
        };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2026-03-01T10:00:00.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]{usage}}}}}"#
        ) + "\n"
    };
    let text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-03-01T10:00:00.000Z"}"#
        .to_owned()
        + "\n"
        + &entry("u", "", "user", "12345", 0)
        + &entry("a", "u", "assistant", "abc", 100)
        + &entry("x", "a", "user", "left", 0)
        + &entry("y", "x", "assistant", "gone", 120)
        + &entry("z", "y", "assistant", "too", 140)
        + &entry("v", "a", "user", "kept on", 0)
        + &entry("b", "v", "assistant", "end", 110);
    let found = session(&text);
    assert_eq!(found.messages.len(), 4);
    assert_eq!(
        render(&found),
        [
            "0<- m 100/0/0 1 said 5",
            "0<0 m 110/0/0 1 said 10",
            "1<0 m 120/0/0 1 said 7",
            "1<2 m 140/0/0 1 said 4",
        ]
    );
}

#[test]
fn other_formats_report_what_their_answers_report() {
    let found = session(
        r#"{"messages":[{"role":"user","content":"1234"},{"role":"assistant","content":"abc","extra":{"response":{"id":"g1","model":"gemini-3-pro","created":1763510274,"usage":{"prompt_tokens":90,"completion_tokens":12,"completion_tokens_details":{"reasoning_tokens":5}}}}},{"role":"user","content":"out"}],"info":{},"trajectory_format":"mini-swe-agent-1"}"#,
    );
    assert_eq!(render(&found), ["0<- gemini-3-pro 90/0/0 12 said 4"]);
    let request = &found.requests[0];
    assert_eq!((request.thinking_tokens, request.id.as_deref()), (Some(5), Some("g1")));
    assert_eq!(request.sent.map(|sent| sent.0), Some(1_763_510_274_000));
}
