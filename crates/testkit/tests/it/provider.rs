//! The scripted provider plays its plan on every wire, refuses what it is told to refuse, and keeps what it was sent.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plimsoll_testkit::provider::{
    AnswerMode, Keep, LABEL, Pace, PlanAction, ScriptedPlan, ScriptedProvider,
    ScriptedProviderConfig, call_id, strict,
};
use plimsoll_wire::{Events, Wire};
use serde_json::{Value, json};
use tokio::net::TcpStream;

async fn ask(
    provider: &ScriptedProvider,
    path: &str,
    body: &[u8],
    label: Option<u64>,
) -> (u16, Bytes) {
    let address = provider.address();
    let stream =
        TcpStream::connect(address.trim_start_matches("http://")).await.expect("it listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let mut request = Request::post(path).header("host", "loopback").header("x-api-key", "secret");
    if let Some(label) = label {
        request = request.header(LABEL, label);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.into_body().collect().await.expect("its body").to_bytes())
}

async fn ask_json(provider: &ScriptedProvider, wire: Wire, body: &Value) -> Value {
    let (status, bytes) = ask(provider, path(wire), body.to_string().as_bytes(), None).await;
    assert_eq!(status, 200, "{bytes:?}");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => "/v1/messages?beta=true",
        Wire::ChatCompletions => "/v1/chat/completions",
        Wire::Responses => "/responses",
        Wire::Gemini => "/v1beta/models/gemini-2.5-pro:generateContent",
    }
}

/// A first request with one tool that runs commands.
fn first(wire: Wire) -> Value {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}},
        "required": ["command"]});
    match wire {
        Wire::AnthropicMessages => json!({
            "model": "m", "messages": [{"role": "user", "content": "go"}],
            "tools": [{"name": "Bash", "input_schema": schema}],
        }),
        Wire::ChatCompletions => json!({
            "model": "m", "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "function", "function": {"name": "Bash", "parameters": schema}}],
        }),
        Wire::Responses => json!({
            "model": "m", "input": [{"role": "user", "content": "go"}],
            "tools": [{"type": "function", "name": "Bash", "parameters": schema}],
        }),
        Wire::Gemini => json!({
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
            "tools": [{"functionDeclarations": [{"name": "Bash", "parameters": schema}]}],
        }),
    }
}

/// Puts an answer and the results of its calls behind a request; returns the calls as `NAME ARGUMENTS`.
fn go_on(wire: Wire, body: &mut Value, answer: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    let mut add = |key: &str, item: Value| body[key].as_array_mut().expect("a list").push(item);
    match wire {
        Wire::AnthropicMessages => {
            add("messages", json!({"role": "assistant", "content": answer["content"]}));
            let mut results = Vec::new();
            for block in list(&answer["content"]).iter().filter(|block| block["type"] == "tool_use")
            {
                calls.push(format!("{} {}", block["name"], block["input"]));
                results.push(
                    json!({"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}),
                );
            }
            add("messages", json!({"role": "user", "content": results}));
        }
        Wire::ChatCompletions => {
            let message = &answer["choices"][0]["message"];
            add("messages", message.clone());
            for call in list(&message["tool_calls"]) {
                let function = &call["function"];
                let arguments = function["arguments"].as_str().expect("a text");
                calls.push(format!("{} {arguments}", function["name"]));
                add(
                    "messages",
                    json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}),
                );
            }
        }
        Wire::Responses => {
            for item in list(&answer["output"]) {
                add("input", item.clone());
                if item["type"] == "function_call" {
                    let arguments = item["arguments"].as_str().expect("a text");
                    calls.push(format!("{} {arguments}", item["name"]));
                    add(
                        "input",
                        json!({"type": "function_call_output", "call_id": item["call_id"],
                        "output": "ok"}),
                    );
                }
            }
        }
        Wire::Gemini => {
            let content = &answer["candidates"][0]["content"];
            add("contents", content.clone());
            let mut results = Vec::new();
            for call in list(&content["parts"]).iter().map(|part| &part["functionCall"]) {
                if !call.is_null() {
                    calls.push(format!("{} {}", call["name"], call["args"]));
                    // Without its id, as some clients answer.
                    results
                        .push(json!({"functionResponse": {"name": call["name"], "response": {}}}));
                }
            }
            add("contents", json!({"role": "user", "parts": results}));
        }
    }
    calls
}

fn plan() -> ScriptedPlan {
    let shell = |line: &str| PlanAction::Shell(line.to_owned());
    let turns = vec![vec![shell("one")], vec![shell("two"), PlanAction::Read("three".to_owned())]];
    ScriptedPlan { turns, workspace: "/work".to_owned(), last: "the end".to_owned() }
}

#[tokio::test]
async fn the_plan_is_played_on_every_wire() {
    for wire in Wire::ALL {
        // What its own answers make of a conversation, a strict provider accepts.
        let provider = ScriptedProvider::start(plan(), Some(strict())).await.expect("it starts");
        let mut body = first(wire);
        let mut called = Vec::new();
        for _ in 0..3 {
            let answer = ask_json(&provider, wire, &body).await;
            called.push(go_on(wire, &mut body, &answer));
        }
        let call = |line: &str| format!("\"Bash\" {}", json!({"command": line}));
        let expected = vec![vec![call("one")], vec![call("two"), call("cat three")], Vec::new()];
        assert_eq!(called, expected, "{wire}");
        assert!(body.to_string().contains("the end"), "{wire}: {body}");
        let kept = provider.kept();
        let turns: Vec<_> = kept.iter().filter_map(|kept| kept.turn).collect();
        assert_eq!(turns, [(0, true), (1, true), (2, false)], "{wire}");
        assert!(kept.iter().all(|kept| !kept.continuity.is_broken()), "{wire}");
    }
}

#[tokio::test]
async fn streams_carry_what_whole_answers_carry() {
    for wire in Wire::ALL {
        let provider = ScriptedProvider::start(plan(), None).await.expect("it starts");
        let mut body = first(wire);
        let path = match wire {
            Wire::Gemini => "/v1beta/models/m:streamGenerateContent?alt=sse",
            _ => path(wire),
        };
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let (status, bytes) = ask(&provider, path, body.to_string().as_bytes(), None).await;
        assert_eq!(status, 200);
        let mut stream = Events::default();
        stream.push(&bytes);
        let events: Vec<String> = std::iter::from_fn(|| stream.next_event())
            .map(|event| event.data.expect("no event without data"))
            .collect();
        assert!(stream.rest().is_empty());
        let parsed: Vec<Value> =
            events.iter().filter_map(|event| serde_json::from_str(event).ok()).collect();
        match wire {
            Wire::AnthropicMessages => {
                let count =
                    |kind: &str| parsed.iter().filter(|event| event["type"] == kind).count();
                assert_eq!(count("content_block_start"), 2);
                assert_eq!(count("content_block_stop"), 2);
                assert_eq!(parsed[parsed.len() - 2]["delta"]["stop_reason"], "tool_use");
                assert_eq!(parsed[parsed.len() - 1]["type"], "message_stop");
            }
            Wire::ChatCompletions => {
                assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
                assert_eq!(parsed[parsed.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
                assert!(parsed[parsed.len() - 1]["usage"]["prompt_tokens"].is_u64());
            }
            Wire::Responses => {
                let numbers = parsed.iter().map(|event| event["sequence_number"].as_u64());
                assert!(numbers.eq((0..parsed.len() as u64).map(Some)));
                let last = &parsed[parsed.len() - 1];
                assert_eq!(last["type"], "response.completed");
                assert_eq!(last["response"]["output"][0]["name"], "Bash");
            }
            Wire::Gemini => {
                assert_eq!(parsed[parsed.len() - 1]["candidates"][0]["finishReason"], "STOP");
            }
        }
        // The arguments come in pieces and say the same together.
        let arguments: String = parsed.iter().filter_map(piece).collect();
        assert!(wire == Wire::Gemini || arguments == r#"{"command":"one"}"#, "{wire}: {arguments}");
        assert_eq!(provider.kept()[0].answer, bytes, "{wire}");
    }
}

/// Returns the piece of a call's arguments that an event holds.
fn piece(event: &Value) -> Option<&str> {
    let of_chat = &event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"];
    let of_responses = &event["delta"];
    event["delta"]["partial_json"].as_str().or(of_chat.as_str()).or_else(|| {
        let is_one = event["type"] == "response.function_call_arguments.delta";
        of_responses.as_str().filter(|_| is_one)
    })
}

#[tokio::test]
async fn what_the_check_finds_is_refused_in_the_providers_shape() {
    for wire in Wire::ALL {
        let check = Arc::new(|_, body: &[u8]| {
            let is_wrong = body.windows(5).any(|window| window == b"wrong");
            is_wrong.then(|| "this is wrong".to_owned()).into_iter().collect()
        });
        let provider = ScriptedProvider::start(plan(), Some(check)).await.expect("it starts");
        ask_json(&provider, wire, &first(wire)).await;
        let body = first(wire).to_string().replace("go", "wrong");
        for body in [body.as_str(), "{"] {
            let (status, bytes) = ask(&provider, path(wire), body.as_bytes(), None).await;
            assert_eq!(status, 400);
            let error: Value = serde_json::from_slice(&bytes).expect("JSON");
            assert!(error["error"]["message"].is_string(), "{error}");
        }
        let violations: Vec<_> =
            provider.kept().into_iter().map(|kept| kept.violations.len()).collect();
        assert_eq!(violations, [0, 1, 1]);
    }
}

#[tokio::test]
async fn a_call_without_its_result_is_refused() {
    let provider = ScriptedProvider::start(plan(), Some(strict())).await.expect("it starts");
    let wire = Wire::AnthropicMessages;
    let mut body = first(wire);
    let answer = ask_json(&provider, wire, &body).await;
    go_on(wire, &mut body, &answer);
    body["messages"].as_array_mut().expect("a list").pop();
    let (status, _) = ask(&provider, path(wire), body.to_string().as_bytes(), None).await;
    assert_eq!(status, 400);
    assert!(!provider.kept()[1].violations.is_empty());
}

#[tokio::test]
async fn a_ref_is_expanded_where_it_can_be() {
    let plan = ScriptedPlan { turns: vec![vec![PlanAction::Expand]], ..plan() };
    let provider = ScriptedProvider::start(plan, None).await.expect("it starts");
    let wire = Wire::AnthropicMessages;
    let mut body = first(wire);
    let without = ask_json(&provider, wire, &body).await;
    assert_eq!(go_on(wire, &mut body.clone(), &without), [r#""Bash" {"command":"true"}"#]);
    body["messages"][0]["content"] = json!("see ref:result:0123456789abcdef, it is there");
    body["tools"].as_array_mut().expect("a list").push(json!({"name": "expand_ref",
        "input_schema": {"type": "object", "properties": {"ref": {"type": "string"}}}}));
    let with = ask_json(&provider, wire, &body).await;
    let expected = r#""expand_ref" {"ref":"ref:result:0123456789abcdef"}"#;
    assert_eq!(go_on(wire, &mut body, &with), [expected]);
}

#[tokio::test]
async fn a_plain_answer_names_its_request() {
    let config = ScriptedProviderConfig {
        answers: AnswerMode::Plain { words: 3 },
        keep: Keep::Nothing,
        pace: Pace::Together,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let provider = ScriptedProvider::listen(address, config).await.expect("it starts");
    let (_, bytes) = ask(&provider, "/v1/messages", b"{}", Some(7)).await;
    let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(answer["content"][0]["text"], "answer-7 word word word");
    assert_eq!(answer["content"][1]["id"], call_id("toolu", 0, 0, 7));
    let (_, bytes) = ask(&provider, "/v1/messages", b"{\"stream\":true}", None).await;
    assert!(bytes.starts_with(b"event: message_start"));
}

#[tokio::test]
async fn both_sides_are_kept_in_a_folder_without_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let behind = ScriptedProvider::start(plan(), None).await.expect("it starts");
    let config = ScriptedProviderConfig {
        answers: AnswerMode::Forwarded { to: behind.address() },
        keep: Keep::Folder(folder.path().to_owned()),
        pace: Pace::Together,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let before = ScriptedProvider::listen(address, config).await.expect("it starts");
    let body = first(Wire::ChatCompletions).to_string();
    let (_, heard) = ask(&before, "/v1/chat/completions?key=secret", body.as_bytes(), None).await;
    assert_eq!(behind.kept()[0].request, body);
    assert_eq!(behind.kept()[0].answer, heard);
    let read =
        |what: &str| std::fs::read(folder.path().join(format!("000001.{what}"))).expect("kept");
    assert_eq!(read("request"), body.as_bytes());
    assert_eq!(read("answer"), heard);
    let description = String::from_utf8(read("json")).expect("UTF-8");
    assert!(!description.contains("secret"), "{description}");
    assert!(description.contains("\"status\": 200"), "{description}");
}
