//! Requests: read into core's messages, and rewritten without touching what stays.

use std::sync::Arc;

use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::plan::members;
use plimsoll_core::render::{replace_results, replace_texts, shorten_arguments};
use plimsoll_core::{ContentHash, Message, Ref, Role, Tokenizer, Transcript};
use plimsoll_wire::{
    DEFAULT_DEPTH, Edits, ProviderRequest, RequestError, RequestKind, RewriteError, Wire, check,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::bodies::{Step, body, parse, steps, wires};

fn step(calls: usize) -> Step {
    Step { thinks: true, speaks: true, calls, lists: true, image: true, fails: false, adds: true }
}

fn spoken(request: &ProviderRequest) -> Vec<(Role, String)> {
    request.messages().iter().map(|message| (message.role, message.shown())).collect()
}

/// What a pass would make of a message, by number; 0 keeps it.
fn form(message: &Message, choice: u8) -> Option<Message> {
    let original = Ref::message(ContentHash::of(message));
    match choice {
        1 => shorten_arguments(message, 60, original),
        2 => replace_results(message, |result| format!("[short \"{}\"]", result.call_id)),
        3 if message.role != Role::System => {
            replace_texts(message, |text| (text.len() > 30).then(|| format!("{}…", &text[..9])))
        }
        _ => None,
    }
}

/// Makes edits by choices: 4 leaves out the exchange that a message belongs to.
fn edits(request: &ProviderRequest, choices: &[u8]) -> Edits {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    for message in request.messages() {
        transcript.push(message.clone());
    }
    let end = request.messages().len();
    let mut omitted = vec![false; end];
    for position in 0..end {
        let exchange = transcript.entries()[position].exchange.is_some();
        if exchange && choices[position % choices.len()] == 4 {
            for one in members(&transcript, position, end) {
                omitted[one] = true;
            }
        }
    }
    let messages = request.messages().iter().enumerate().filter_map(|(index, message)| {
        if omitted[index] {
            return Some((index, None));
        }
        form(message, choices[index % choices.len()]).map(|form| (index, Some(Arc::new(form))))
    });
    Edits { messages: messages.collect(), ..Edits::default() }
}

fn expand_ref() -> ToolDefinition {
    ToolDefinition {
        name: "expand_ref".into(),
        description: "Gives back an original.".into(),
        schema: r#"{"type":"object","properties":{"ref":{"type":"string"}}}"#.into(),
    }
}

fn assert_sound(wire: Wire, body: &[u8]) {
    let violations = check(wire, body);
    assert!(violations.is_empty(), "{violations:?}\n{}", String::from_utf8_lossy(body));
}

proptest! {
    #[test]
    fn without_edits_the_bytes_stay(wire in wires(), steps in steps()) {
        let body = body(wire, &steps);
        let request = parse(wire, body.as_bytes());
        prop_assert_eq!(request.rewrite(&Edits::default()).unwrap(), body.as_bytes());
        prop_assert!(check(wire, body.as_bytes()).is_empty(), "{:?}", check(wire, body.as_bytes()));
    }

    #[test]
    fn edits_are_what_is_read_back(
        wire in wires(),
        steps in steps(),
        choices in prop::collection::vec(0..5_u8, 1..12),
    ) {
        let body = body(wire, &steps);
        let request = parse(wire, body.as_bytes());
        let edits = edits(&request, &choices);
        let rewritten = request.rewrite(&edits).unwrap();
        assert_sound(wire, &rewritten);
        let again = parse(wire, &rewritten);
        let mut expected: Vec<Option<Arc<Message>>> = request.messages().iter().cloned().map(Some).collect();
        for (index, form) in &edits.messages {
            expected[*index].clone_from(form);
        }
        // Calls and responses without ids are numbered, so leaving some out gives others another number.
        let shown = |message: &Arc<Message>| (message.role, message.shown());
        let expected: Vec<_> = expected.iter().flatten().map(shown).collect();
        prop_assert_eq!(spoken(&again), expected);
        let long = "123456789012345678901234567890";
        prop_assert!(String::from_utf8_lossy(&rewritten).contains(long));
    }

    #[test]
    fn all_edits_together_are_sound(
        wire in wires(),
        steps in steps(),
        choices in prop::collection::vec(0..5_u8, 1..12),
    ) {
        let body = body(wire, &steps);
        let request = parse(wire, body.as_bytes());
        let edits = Edits {
            add_tools: vec![expand_ref()],
            append: last_of_user(&request).map(|at| (at, "what is \"known\"".into())).into_iter().collect(),
            ..edits(&request, &choices)
        };
        let rewritten = request.rewrite(&edits).unwrap();
        assert_sound(wire, &rewritten);
        let again = parse(wire, &rewritten);
        let kept = |at: &usize| edits.messages.iter().all(|(edited, form)| edited != at || form.is_some());
        if last_of_user(&request).as_ref().is_some_and(kept) {
            let known = |message: &Arc<Message>| message.role == Role::User && message.shown().ends_with("what is \"known\"");
            prop_assert!(again.messages().iter().any(known));
        }
        let names: Vec<String> = again.tools().iter().map(|tool| tool.name.to_string()).collect();
        prop_assert_eq!(names, ["write", "expand_ref"]);
        let twice = again.rewrite(&Edits { add_tools: vec![expand_ref()], ..Edits::default() });
        prop_assert_eq!(twice, Err(RewriteError::ToolExists { name: "expand_ref".into() }));
    }

    #[test]
    fn what_stands_before_an_edit_keeps_its_bytes(wire in wires(), steps in steps(), at in any::<prop::sample::Index>()) {
        let body = body(wire, &steps);
        let request = parse(wire, body.as_bytes());
        let index = at.index(request.messages().len());
        let choices: Vec<u8> = (0..4).collect();
        let edited = choices.iter().find_map(|choice| form(&request.messages()[index], *choice));
        let Some(edited) = edited else { return Ok(()) };
        let edits = Edits { messages: vec![(index, Some(Arc::new(edited)))], ..Edits::default() };
        let rewritten = String::from_utf8(request.rewrite(&edits).unwrap()).unwrap();
        let before: Vec<&str> = body.lines().collect();
        let after: Vec<&str> = rewritten.lines().collect();
        let same = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
        let behind = before[same..].iter().rev().zip(after[same..].iter().rev());
        let same_behind = behind.take_while(|(one, other)| one == other).count();
        // The lines of one message in the pretty print.
        let changed = before.len() - same - same_behind;
        prop_assert!((1..=40).contains(&changed), "{} lines changed", changed);
    }

    #[test]
    fn arbitrary_bytes_never_panic(wire in wires(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ProviderRequest::parse(wire, &bytes, "", DEFAULT_DEPTH);
        let _ = check(wire, &bytes);
    }

    #[test]
    fn damaged_requests_never_panic(
        wire in wires(),
        steps in steps(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
        choices in prop::collection::vec(0..5_u8, 1..8),
    ) {
        // Values exchange places, so that every field holds something else some time.
        let mut value: Value = serde_json::from_str(&body(wire, &steps)).unwrap();
        for (from, to) in damage {
            let mut paths = Vec::new();
            collect(&value, String::new(), &mut paths);
            let taken = value.pointer(&paths[from.index(paths.len())]).cloned().unwrap_or_default();
            if let Some(place) = value.pointer_mut(&paths[to.index(paths.len())]) {
                *place = taken;
            }
        }
        let bytes = value.to_string().into_bytes();
        let _ = check(wire, &bytes);
        let Ok(request) = ProviderRequest::parse(wire, &bytes, "", DEFAULT_DEPTH) else { return Ok(()) };
        prop_assert_eq!(request.rewrite(&Edits::default()).unwrap(), bytes);
        request.kind();
        request.own_session();
        let edits = Edits {
            add_tools: vec![expand_ref()],
            append: last_of_user(&request).map(|at| (at, "known".into())).into_iter().collect(),
            ..edits(&request, &choices)
        };
        if let Ok(rewritten) = request.rewrite(&edits) {
            let text = String::from_utf8_lossy(&rewritten);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }
}

fn last_of_user(request: &ProviderRequest) -> Option<usize> {
    request.messages().iter().rposition(|message| message.role == Role::User)
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{path}/{index}"), paths);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, format!("{path}/{key}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

#[test]
fn a_string_and_a_list_with_one_marked_text_are_one() {
    let bodies = [
        r#"{"messages":[{"role":"user","content":"hi"}],"system":"be exact"}"#,
        r#"{"system":[{"type":"text","text":"be exact"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#,
    ];
    let [one, other] = bodies.map(|body| parse(Wire::AnthropicMessages, body.as_bytes()));
    assert_eq!(one.messages(), other.messages());
    assert_eq!(one.own_session(), other.own_session());
}

#[test]
fn a_request_begins_with_the_messages_of_the_one_before() {
    for wire in Wire::ALL {
        let all = [step(0), step(2), step(1), step(0)];
        let long = parse(wire, body(wire, &all).as_bytes());
        for end in 0..all.len() {
            let short = parse(wire, body(wire, &all[..end]).as_bytes());
            assert!(long.messages().starts_with(short.messages()), "{wire} {end}");
        }
    }
}

#[test]
fn one_answer_in_several_items_is_one_message() {
    let request = parse(Wire::Responses, body(Wire::Responses, &[step(2)]).as_bytes());
    let roles: Vec<Role> = request.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    assert_eq!(request.messages()[2].blocks.len(), 4);
    assert_eq!(request.messages()[3].results().next().unwrap().images.len(), 1);
}

#[test]
fn depth_is_refused_before_anything_else() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let body = format!(r#"{{"messages":[],"x-forwarded-only":{deep}}}"#);
        let refused =
            ProviderRequest::parse(Wire::ChatCompletions, body.as_bytes(), "", DEFAULT_DEPTH);
        assert_eq!(refused.unwrap_err(), RequestError::TooDeep { depth: 128 });
        assert_eq!(check(Wire::ChatCompletions, body.as_bytes()).len(), 1);
    }
    let flat = br#"{"messages":[]}"#;
    let refused = ProviderRequest::parse(Wire::ChatCompletions, flat, "", 1);
    assert_eq!(refused.unwrap_err(), RequestError::TooDeep { depth: 1 });
}

#[test]
fn what_is_no_request_is_refused() {
    let refused = |wire, body: &str| {
        ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH).unwrap_err()
    };
    let repeated = r#"{"model":"a","messages":[],"mode\u006c":"b"}"#;
    let expected = RequestError::RepeatedKey { key: "model".into() };
    assert_eq!(refused(Wire::ChatCompletions, repeated), expected);
    assert_eq!(
        refused(Wire::ChatCompletions, r#"{"messages":[}"#),
        RequestError::NotJson { at: 13 }
    );
    let utf8 = ProviderRequest::parse(Wire::Gemini, b"{\"a\":\"\xff\"}", "", DEFAULT_DEPTH);
    assert_eq!(utf8.unwrap_err(), RequestError::NotJson { at: 6 });
    for wire in [Wire::AnthropicMessages, Wire::ChatCompletions, Wire::Gemini] {
        assert!(matches!(refused(wire, "{}"), RequestError::Shape { .. }));
        assert!(matches!(refused(wire, "[]"), RequestError::Shape { .. }));
    }
}

#[test]
fn kinds_are_told_apart() {
    let kind = |wire, body: Value| parse(wire, body.to_string().as_bytes()).kind();
    let user = |text: &str| json!({"role": "user", "content": text});
    let said = json!({"role": "assistant", "content": "yes"});
    let tools = json!([{"name": "t", "input_schema": {"type": "object"}}]);
    let wire = Wire::AnthropicMessages;
    assert_eq!(kind(wire, json!({"messages": [user("hi")]})), RequestKind::Aside);
    assert_eq!(kind(wire, json!({"messages": [user("hi")], "tools": tools})), RequestKind::Turn);
    assert_eq!(kind(wire, json!({"messages": [user("hi"), said, user("and")]})), RequestKind::Turn);
    let asks = user("Write an <analysis> of it and then a <summary>.");
    assert_eq!(
        kind(wire, json!({"messages": [user("hi"), said, asks], "tools": tools})),
        RequestKind::Compaction
    );
    let told =
        json!([{"type": "tool_result", "tool_use_id": "a", "content": "<analysis><summary>"}]);
    let results = json!({"role": "user", "content": told});
    assert_eq!(kind(wire, json!({"messages": [user("hi"), said, results]})), RequestKind::Turn);

    let wire = Wire::Responses;
    let offered = json!([{"type": "function", "name": "t"}]);
    assert_eq!(kind(wire, json!({"input": "hi", "tools": offered})), RequestKind::Turn);
    let held = json!({"input": "hi", "tools": offered, "previous_response_id": "resp_1"});
    assert_eq!(kind(wire, held), RequestKind::ServerHistory);
    let asks = user("You are performing a CONTEXT CHECKPOINT COMPACTION.");
    assert_eq!(
        kind(wire, json!({"input": [user("hi"), said, asks], "tools": []})),
        RequestKind::Compaction
    );
    let background = json!({"input": "hi", "tools": offered, "background": true});
    assert!(matches!(kind(wire, background), RequestKind::Unsupported(_)));

    let two = json!({"messages": [user("hi")], "n": 2});
    assert!(matches!(kind(Wire::ChatCompletions, two), RequestKind::Unsupported(_)));
    let held = json!({"contents": [{"parts": [{"text": "hi"}]}], "cachedContent": "c/1"});
    assert_eq!(kind(Wire::Gemini, held), RequestKind::ServerHistory);
}

#[test]
fn sessions_are_named_by_clients_or_by_their_beginning() {
    let request = parse(Wire::Responses, body(Wire::Responses, &[]).as_bytes());
    let named = |given: &'static [(&str, &str)]| {
        request.named_session(|name| {
            given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(named(&[]).as_deref(), Some("session-7"));
    assert_eq!(
        named(&[("x-claude-code-session-id", "a"), ("session-id", "b")]).as_deref(),
        Some("a")
    );
    for header in ["session-id", "thread-id", "x-session-id", "session_id"] {
        let name = request.named_session(|name| (name == header).then(|| "here".to_owned()));
        assert_eq!(name.as_deref(), Some("here"));
    }
    for wire in Wire::ALL {
        let of = |steps: &[Step]| parse(wire, body(wire, steps).as_bytes()).own_session();
        assert_eq!(of(&[]), of(&[step(2), step(0)]));
        let other = body(wire, &[]).replace("the task", "another task");
        assert_ne!(of(&[]), parse(wire, other.as_bytes()).own_session());
        let other = body(wire, &[]).replace("be exact", "be quick");
        assert_ne!(of(&[]), parse(wire, other.as_bytes()).own_session());
    }
}

#[test]
fn models_streams_and_limits_are_read() {
    for wire in Wire::ALL {
        let request = parse(wire, body(wire, &[]).as_bytes());
        assert_eq!(request.model(), Some("m-1"), "{wire}");
        assert_eq!(request.streams(), wire != Wire::Gemini);
        assert_eq!(request.system_text(), "be exact");
    }
    let body = body(Wire::Gemini, &[]);
    let path = "/v1beta/models/g:streamGenerateContent?alt=sse";
    let request =
        ProviderRequest::parse(Wire::Gemini, body.as_bytes(), path, DEFAULT_DEPTH).unwrap();
    assert!(request.streams());
}

#[test]
fn a_mark_stays_on_its_block_and_moves_when_the_block_goes() {
    let wire = Wire::AnthropicMessages;
    let body = body(wire, &[step(0), Step { adds: false, ..step(2) }]);
    let request = parse(wire, body.as_bytes());
    let marks = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("cache_control").count();
    let shortened = request.rewrite(&edits(&request, &[2])).unwrap();
    assert_eq!((marks(body.as_bytes()), marks(&shortened)), (2, 2));
    let again = parse(wire, &request.rewrite(&edits(&request, &[4])).unwrap());
    assert_eq!(marks(again.body()), 2, "over the string of the user, which bears none");

    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let body = json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "task"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x", "cache_control": mark}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": "and"},
    ]});
    let request = parse(wire, body.to_string().as_bytes());
    let out = request.rewrite(&edits(&request, &[4])).unwrap();
    assert_sound(wire, &out);
    let value: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["messages"].as_array().unwrap().len(), 3);
    assert_eq!(value["messages"][0]["content"][0]["cache_control"], mark);
}

#[test]
fn a_string_gets_a_block_behind_it_and_its_own_bytes_stay() {
    let raw = r#"{"messages":[{"role":"user","content":"na\u00efve"}],"tools":[]}"#;
    let request = parse(Wire::AnthropicMessages, raw.as_bytes());
    let edits = Edits { append: vec![(0, "known".into())], ..Edits::default() };
    let expected = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"na\u00efve"},{"type":"text","text":"known"}]}],"tools":[]}"#;
    assert_eq!(String::from_utf8(request.rewrite(&edits).unwrap()).unwrap(), expected);

    let raw = r#"{"messages":[{"role":"user","content":"na\u00efve"}]}"#;
    let request = parse(Wire::ChatCompletions, raw.as_bytes());
    let edits = Edits { add_tools: vec![expand_ref()], ..edits };
    let out = String::from_utf8(request.rewrite(&edits).unwrap()).unwrap();
    assert!(
        out.starts_with(
            r#"{"messages":[{"role":"user","content":"na\u00efve\n\nknown"}],"tools":[{"#
        ),
        "{out}"
    );

    let raw = r#"{"input":"hi","store":false}"#;
    let request = parse(Wire::Responses, raw.as_bytes());
    let edits = Edits { append: vec![(0, "known".into())], ..Edits::default() };
    let out = String::from_utf8(request.rewrite(&edits).unwrap()).unwrap();
    assert_eq!(out, r#"{"input":"hi\n\nknown","store":false}"#);
}

#[test]
fn edits_that_would_break_a_request_are_refused() {
    let wire = Wire::AnthropicMessages;
    let body = body(wire, &[step(1)]);
    let request = parse(wire, body.as_bytes());
    let refused = |messages: Vec<(usize, Option<Message>)>| {
        let messages = messages.into_iter().map(|(index, form)| (index, form.map(Arc::new)));
        request.rewrite(&Edits { messages: messages.collect(), ..Edits::default() }).unwrap_err()
    };
    let call =
        (**request.messages().iter().find(|one| one.role == Role::Assistant).unwrap()).clone();
    assert_eq!(refused(vec![(9, None)]), RewriteError::Position { index: 9 });
    assert_eq!(refused(vec![(1, None), (1, None)]), RewriteError::Position { index: 1 });
    assert!(matches!(refused(vec![(2, None)]), RewriteError::SplitExchange { .. }));
    assert!(matches!(refused(vec![(3, None)]), RewriteError::SplitExchange { .. }));
    assert!(matches!(refused(vec![(0, None)]), RewriteError::Form { .. }));
    let changed = |change: &dyn Fn(&mut plimsoll_core::Block)| {
        let mut form = call.clone();
        form.blocks.iter_mut().for_each(change);
        assert!(matches!(refused(vec![(2, Some(form))]), RewriteError::Form { index: 2, .. }));
    };
    changed(&|block| {
        if let plimsoll_core::Block::Thinking(thinking) = block {
            thinking.text = "other".into();
        }
    });
    changed(&|block| {
        if let plimsoll_core::Block::Text(text) = block {
            *text = " ".into();
        }
    });
    changed(&|block| {
        if let plimsoll_core::Block::ToolCall(call) = block {
            call.arguments = "[1]".into();
        }
    });
}

#[test]
fn a_conversation_cut_at_its_beginning_still_begins_with_the_user() {
    for wire in [Wire::AnthropicMessages, Wire::Gemini] {
        let body = body(wire, &[step(0), step(0)]);
        let request = parse(wire, body.as_bytes());
        let edits = Edits { messages: vec![(1, None)], ..Edits::default() };
        let out = request.rewrite(&edits).unwrap();
        assert_sound(wire, &out);
        assert!(String::from_utf8(out).unwrap().contains("[earlier messages were left out]"));
    }
}

#[test]
fn calls_of_every_kind_are_paired_or_left_alone() {
    let items = json!([
        {"role": "user", "content": "go"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "function_call_output", "call_id": "a", "output": "files"},
        {"type": "computer_call", "call_id": "b", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot", "image_url": "data:"}},
        {"role": "user", "content": "and"},
    ]);
    let body = json!({"input": items}).to_string();
    assert_sound(Wire::Responses, body.as_bytes());
    let request = parse(Wire::Responses, body.as_bytes());
    let calls: Vec<(&str, &str)> = request
        .messages()
        .iter()
        .flat_map(|message| message.calls())
        .map(|call| (&*call.name, &*call.arguments))
        .collect();
    assert_eq!(calls, [("local_shell_call", r#"{"type":"exec","command":["ls"]}"#)]);
    assert_eq!(request.messages().iter().flat_map(|message| message.results()).count(), 1);
    // The picture stays with the call that it answers.
    assert_eq!(request.messages()[3].blocks.len(), 2);
    let rewritten = request.rewrite(&edits(&request, &[2, 2, 2, 2, 2])).unwrap();
    assert_sound(Wire::Responses, &rewritten);
}

#[test]
fn what_the_provider_keeps_is_told() {
    let kept = |body: &str| parse(Wire::Responses, body.as_bytes()).is_kept_by_the_server();
    assert!(kept(r#"{"input":"hi"}"#));
    assert!(kept(r#"{"input":"hi","store":true}"#));
    assert!(!kept(r#"{"input":"hi","store":false}"#));
}

#[test]
fn a_stream_that_is_a_list_is_left_alone() {
    let body = body(Wire::Gemini, &[step(1)]);
    let kind = |path| {
        let request = ProviderRequest::parse(Wire::Gemini, body.as_bytes(), path, DEFAULT_DEPTH);
        request.unwrap().kind()
    };
    let path = "/v1beta/models/g:streamGenerateContent";
    assert!(matches!(kind(path), RequestKind::Unsupported(_)));
    assert_eq!(kind("/v1beta/models/g:streamGenerateContent?alt=sse"), RequestKind::Turn);
}

#[test]
fn results_that_an_agent_writes_as_its_users_text_are_results() {
    let observed = json!("Observation:\nthe page says a lot");
    let part = json!([{"type": "text", "text": observed}]);
    for (wire, list, key, model, content) in [
        (Wire::ChatCompletions, "messages", "content", "assistant", &observed),
        (Wire::ChatCompletions, "messages", "content", "assistant", &part),
        (Wire::AnthropicMessages, "messages", "content", "assistant", &part),
        (Wire::Gemini, "contents", "parts", "model", &json!([{"text": observed}])),
    ] {
        let task = json!([{"type": "text", "text": "Observation: this is the task"}]);
        let body = json!({list: [
            {"role": "user", key: task},
            {"role": model, key: [{"type": "text", "text": "I look."}]},
            {"role": "user", key: content},
        ]});
        let body = body.to_string();
        let request = parse(wire, body.as_bytes());
        let roles: Vec<Role> = request.messages().iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool], "{wire}");
        let short = replace_results(&request.messages()[2], |_| "[short]".into());
        let messages = vec![(2, Some(Arc::new(short.expect("it has a result"))))];
        let rewritten = request.rewrite(&Edits { messages, ..Edits::default() }).expect("it fits");
        let expected = body.replace(&observed.to_string(), "\"[short]\"");
        assert_eq!(String::from_utf8(rewritten).expect("text"), expected);
    }
}
