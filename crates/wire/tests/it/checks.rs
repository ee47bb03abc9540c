//! The checker finds each thing that a server refuses.

use plimsoll_wire::{Wire, check, check_rewritten};
use serde_json::{Value, json};

use super::bodies::{Step, body};

/// Puts `value` at `place` of a sound request and wants a violation that says `rule`.
fn breaks(wire: Wire, place: &str, value: Value, rule: &str) {
    let step = |calls| Step {
        thinks: true,
        speaks: true,
        calls,
        lists: true,
        image: true,
        fails: false,
        adds: true,
    };
    let mut request: Value = serde_json::from_str(&body(wire, &[step(0), step(2)])).unwrap();
    assert_eq!(check(wire, request.to_string().as_bytes()), []);
    match (request.pointer_mut(place), place.rsplit_once('/')) {
        (Some(there), _) => *there = value,
        (None, Some((parent, key))) => request.pointer_mut(parent).unwrap()[key] = value,
        _ => panic!("{place}"),
    }
    let found = check(wire, request.to_string().as_bytes());
    let rules: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&rule), "{wire} {place}: {found:?}");
}

#[test]
fn anthropic_messages() {
    // 0 task, 1 said, 2 asked, 3 thinking text call call, 4 result result text.
    let mark = json!({"type": "ephemeral"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let marked = json!({"type": "text", "text": "a", "cache_control": mark});
    let cases = [
        ("/messages/0/role", json!("assistant"), "the first message is the user's"),
        ("/messages/0/role", json!("tool"), "its role is user, assistant or system"),
        ("/messages/0/content", json!(" "), "a text is not empty"),
        ("/messages/0/content", json!([]), "its content is not empty"),
        ("/messages/3/content/1/text", json!(""), "a text is not empty"),
        ("/messages/3/content/2/input", json!("{}"), "input is an object"),
        ("/messages/3/content/2/name", json!(""), "a call names its tool"),
        ("/messages/3/content/2/id", json!("a.b"), "an id is [a-zA-Z0-9_-]+"),
        ("/messages/3/content/3/id", json!("call_1_0"), "ids of calls differ"),
        (
            "/messages/4/content/0/tool_use_id",
            json!("other"),
            "a result answers a call of the message before, once",
        ),
        ("/messages/4/content/1", text("x"), "every call is answered in the next message"),
        ("/messages/4/content/0", text("x"), "results stand first"),
        ("/messages/4/content/0/content", json!({}), "a result's content is a string or a list"),
        ("/messages/4/content/0/content/0/text", json!(""), "a text is not empty"),
        ("/messages/4/content/0/is_error", json!("no"), "is_error is a boolean"),
        (
            "/messages/4",
            json!({"role": "assistant", "content": "on "}),
            "a begun answer does not end in white space",
        ),
        (
            "/messages/4",
            json!({"role": "assistant", "content": "on"}),
            "the last calls are answered",
        ),
        ("/messages/3/content/0/signature", json!(""), "thinking is signed"),
        ("/messages/3/content/0/cache_control", mark.clone(), "thinking bears no mark"),
        (
            "/messages/3/content/1/cache_control",
            json!({"type": "ephemeral", "ttl": "2h"}),
            "a mark lives 5m or 1h",
        ),
        (
            "/messages/3/content/0",
            json!({"type": "mcp_tool_result", "tool_use_id": "s"}),
            "a server's result follows its call",
        ),
        (
            "/messages/3/content/0",
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            "a server's call is answered",
        ),
        ("/messages/0/content", json!([marked, marked, marked]), "it has at most 4 marks"),
        (
            "/system",
            json!([marked, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
            "marks of an hour stand before those of 5 minutes",
        ),
        ("/system", json!([text("")]), "a text is not empty"),
        (
            "/tools",
            json!([{"name": "a", "input_schema": {"type": "object"}}, {"name": "a", "input_schema": {"type": "object"}}]),
            "names of tools differ",
        ),
        ("/tools/0/input_schema", json!([]), "a tool's schema is of an object"),
        ("/tool_choice", json!({"type": "tool", "name": "x"}), "the chosen tool is offered"),
    ];
    for (place, value, rule) in cases {
        breaks(Wire::AnthropicMessages, place, value, rule);
    }
}

#[test]
fn a_mark_beside_the_messages_stands_behind_all_others() {
    let body = |system: &str, beside: &str| {
        let mark = |ttl: &str| json!({"type": "ephemeral", "ttl": ttl});
        let block = json!({"type": "text", "text": "a", "cache_control": mark(system)});
        json!({"cache_control": mark(beside), "system": [block], "messages": [{"role": "user", "content": "go"}]})
    };
    for (system, beside, found) in [("1h", "5m", 0), ("5m", "5m", 0), ("5m", "1h", 1)] {
        let body = body(system, beside).to_string();
        let violations = check(Wire::AnthropicMessages, body.as_bytes());
        assert_eq!(violations.len(), found, "{system} {beside}: {violations:?}");
    }
}

#[test]
fn an_open_tool_loop_begins_with_thinking() {
    let request = |first: Value| {
        let call = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "a"});
        let body = json!({
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [{"role": "user", "content": "hi"},
                {"role": "assistant", "content": [first, call]}, {"role": "user", "content": [result]}],
        });
        check(Wire::AnthropicMessages, body.to_string().as_bytes()).len()
    };
    assert_eq!(request(json!({"type": "thinking", "thinking": "", "signature": "s"})), 0);
    assert_eq!(request(json!({"type": "redacted_thinking", "data": "s"})), 0);
    assert_eq!(request(json!({"type": "text", "text": "so"})), 1);
}

#[test]
fn chat_completions() {
    // 0 developer, 1 task, 2 said, 3 asked, 4 calls, 5 6 results.
    let cases = [
        ("/messages/0/role", json!("narrator"), "its role is known"),
        ("/messages/2/content", Value::Null, "content is null beside calls only"),
        ("/messages/1/content", json!([]), "a list of parts is not empty"),
        ("/messages/1/content", json!(7), "content is a string or a list"),
        ("/messages/1/content/0/text", json!(7), "a part fits its role and has its text"),
        ("/messages/4/tool_calls", json!([]), "a list of calls is not empty"),
        ("/messages/4/tool_calls/0/function/arguments", json!({}), "arguments are a string"),
        ("/messages/4/tool_calls/0/function/name", json!(""), "a call names its tool"),
        ("/messages/4/tool_calls/0/id", json!("call_1_1"), "ids of calls differ"),
        (
            "/messages/5",
            json!({"role": "user", "content": "x"}),
            "every call is answered before anything else",
        ),
        (
            "/messages/6/tool_call_id",
            json!("other"),
            "a result answers a call directly before it, once",
        ),
        (
            "/messages/6",
            json!({"role": "assistant", "content": "x"}),
            "every call is answered before anything else",
        ),
        ("/messages/5/content", Value::Null, "content is null beside calls only"),
    ];
    for (place, value, rule) in cases {
        breaks(Wire::ChatCompletions, place, value, rule);
    }
    let open = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"t","arguments":""}}]}]}"#;
    assert_eq!(
        check(Wire::ChatCompletions, open.as_bytes())[0].rule,
        "the last calls are answered"
    );
}

#[test]
fn responses() {
    // 0 tools, 1 task, 2 reasoning, 3 said, 4 asked, 5 reasoning, 6 said, 7 8 calls, 9 10 results.
    let user = json!({"role": "user", "content": "x"});
    let cases = [
        ("/input/1/role", json!("narrator"), "its role is known"),
        ("/input/1/content", Value::Null, "it has content"),
        ("/input/1/content/0/type", json!("output_text"), "parts fit their role"),
        ("/input/3/content/0/type", json!("input_text"), "parts fit their role"),
        ("/input/6", user.clone(), "reasoning is followed by what it led to"),
        ("/input/7/arguments", json!({}), "arguments are a string"),
        ("/input/7", user.clone(), "a result answers a call of its kind, once"),
        ("/input/9", user, "every call is answered"),
        (
            "/input/9/type",
            json!("custom_tool_call_output"),
            "a result answers a call of its kind, once",
        ),
        ("/input/8/call_id", json!("call_1_0"), "ids of calls differ"),
        ("/input/9/output", Value::Null, "a result has its output"),
        ("/input", json!(7), "it is a string or a list"),
        ("/tools", json!([{"type": "function", "name": "write"}]), "names of tools differ"),
    ];
    for (place, value, rule) in cases {
        breaks(Wire::Responses, place, value, rule);
    }
    let held = r#"{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a","output":"x"}]}"#;
    assert_eq!(check(Wire::Responses, held.as_bytes()), []);
}

#[test]
fn gemini() {
    // 0 task, 1 said, 2 asked, 3 calls, 4 responses.
    let said = json!({"role": "user", "parts": [{"text": "x"}]});
    let cases = [
        ("/contents/0/role", json!("model"), "the first content is the user's"),
        ("/contents/0/role", json!("narrator"), "its role is user or model"),
        ("/contents/0/parts", json!([]), "it has a part"),
        ("/contents/0/parts/0", json!({}), "a part says something"),
        ("/contents/3/parts/2/functionCall/args", json!("{}"), "args are an object"),
        ("/contents/3/parts/2/functionCall/name", json!(""), "a call names its tool"),
        ("/contents/4/parts/0/functionResponse/response", json!("x"), "a response is an object"),
        (
            "/contents/4/parts/0/functionResponse/name",
            json!("other"),
            "there is one response for each call, in its order",
        ),
        (
            "/contents/4/parts/0",
            json!({"text": "x"}),
            "there is one response for each call, in its order",
        ),
        (
            "/contents/2",
            json!({"role": "model", "parts": [{"text": "x"}]}),
            "calls follow the user or a response",
        ),
        (
            "/contents/4",
            json!({"role": "model", "parts": [{"text": "x"}]}),
            "a call is answered at once",
        ),
        ("/contents/3", said, "there is one response for each call, in its order"),
        ("/systemInstruction", json!({"parts": []}), "it has a part"),
    ];
    for (place, value, rule) in cases {
        breaks(Wire::Gemini, place, value, rule);
    }
    let open = r#"{"contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"t"}}]}]}"#;
    assert_eq!(check(Wire::Gemini, open.as_bytes())[0].rule, "the last calls are answered");
}

#[test]
fn every_wire_wants_json_whose_keys_stand_once() {
    for wire in Wire::ALL {
        for bytes in [&b""[..], b"{", b"[]", b"\xff"] {
            assert_eq!(check(wire, bytes).len(), 1);
        }
        let repeated = br#"{"model":"a","model":"b"}"#;
        assert!(check(wire, repeated).iter().any(|one| one.rule == "a key stands once"));
    }
}

#[test]
fn what_was_wrong_before_is_not_held_against_a_rewriting() {
    let request = |texts: [&str; 2]| {
        let messages = texts.map(|text| json!({"role": "user", "content": text}));
        json!({"messages": messages}).to_string().into_bytes()
    };
    let wire = Wire::AnthropicMessages;
    let (one, two) = (request(["", "hi"]), request(["", ""]));
    assert_eq!(check_rewritten(wire, &one, &one), []);
    assert_eq!(check_rewritten(wire, &two, &one), []);
    assert_eq!(check_rewritten(wire, &one, &two).len(), 1);
}
