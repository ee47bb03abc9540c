//! Whole answers of each API.

use plimsoll_core::Block;
use plimsoll_engine::{ChatReply, ChatUsage, StopReason};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::{Value, json};

use crate::start::{ask, model};

async fn reply(api: &str, body: Value) -> ChatReply {
    let upstream = ScriptedServer::start([Scripted::body(200, body.to_string())]).await;
    model(&upstream, api).0.complete(&ask("x")).await.expect("an answer")
}

fn kinds(reply: &ChatReply) -> Vec<String> {
    let kinds = reply.message.blocks.iter().map(|block| match block {
        Block::Text(text) => format!("text {text}"),
        Block::Thinking(thinking) => format!("thinking {} {}", thinking.text, thinking.signature),
        Block::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
        Block::Opaque(opaque) => format!("opaque {}", opaque.kind),
        other => format!("{other:?}"),
    });
    kinds.collect()
}

#[tokio::test]
async fn chat_completions() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"a\": 1}"}});
    let message = json!({"content": null, "reasoning_content": "hm", "tool_calls": [call]});
    let found = reply(
        "chat",
        json!({
            "model": "m-2026", "choices": [{"message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
        }),
    )
    .await;
    assert_eq!(kinds(&found), ["thinking hm ", "call c look {\"a\": 1}"]);
    assert_eq!(found.usage, ChatUsage { input: 10, cached: 4, cache_written: 0, output: 3 });
    assert_eq!((found.stop_reason, &*found.model), (StopReason::Calls, "m-2026"));
    assert_eq!(found.message.usage.map(|usage| usage.cached_tokens), Some(4));
}

#[tokio::test]
async fn why_it_stopped() {
    for (word, stop) in [
        ("stop", StopReason::End),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
        ("new_word", StopReason::Other("new_word".into())),
    ] {
        let choice = json!({"message": {"content": "x"}, "finish_reason": word});
        assert_eq!(reply("chat", json!({"choices": [choice]})).await.stop_reason, stop);
    }
    let refusal = json!({"message": {"content": null, "refusal": "no"}, "finish_reason": "stop"});
    let refused = reply("chat", json!({"choices": [refusal]})).await;
    assert_eq!((refused.text().as_str(), refused.stop_reason), ("no", StopReason::Refused));
    let ollama = json!({"message": {"content": "", "tool_calls": [
        {"function": {"name": "look", "arguments": {"a": 1}}}
    ]}, "finish_reason": "stop"});
    let ollama = reply("chat", json!({"choices": [ollama]})).await;
    assert_eq!(kinds(&ollama), ["call call_0 look {\"a\":1}"]);
    assert_eq!(ollama.stop_reason, StopReason::Calls);
    for (word, stop) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("refusal", StopReason::Refused),
        ("pause_turn", StopReason::Other("pause_turn".into())),
    ] {
        let body = json!({"content": [{"type": "text", "text": "x"}], "stop_reason": word});
        assert_eq!(reply("anthropic", body).await.stop_reason, stop);
    }
    let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []});
    assert_eq!(reply("responses", cut).await.stop_reason, StopReason::Length);
}

#[tokio::test]
async fn responses() {
    let found = reply(
        "responses",
        json!({
            "model": "m-1", "status": "completed", "error": null,
            "output": [
                {"type": "reasoning", "id": "rs", "encrypted_content": "x"},
                {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
            ],
            "usage": {"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4}}
        }),
    )
    .await;
    assert_eq!(kinds(&found), ["opaque reasoning", "text Hi", "call c look {}"]);
    assert_eq!(found.usage, ChatUsage { input: 10, cached: 4, cache_written: 0, output: 3 });
    assert_eq!(found.stop_reason, StopReason::Calls);
}

#[tokio::test]
async fn anthropic() {
    let found = reply(
        "anthropic",
        json!({
            "type": "message", "model": "m-1", "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "proof"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Hi"},
                {"type": "tool_use", "id": "t", "name": "look", "input": {"b": 1, "a": 2}}
            ],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 3}
        }),
    )
    .await;
    let call = "call t look {\"b\":1,\"a\":2}";
    assert_eq!(kinds(&found), ["thinking hm proof", "opaque redacted_thinking", "text Hi", call]);
    assert_eq!(found.usage, ChatUsage { input: 22, cached: 5, cache_written: 7, output: 3 });
    assert_eq!(found.stop_reason, StopReason::Calls);
}

#[tokio::test]
async fn arguments_keep_their_digits_and_their_order() {
    let body = r#"{"content":[{"type":"tool_use","id":"t","name":"look","input":{"b":123456789012345678901234567890,"a":1.10}}],"stop_reason":"tool_use"}"#;
    let upstream = ScriptedServer::start([Scripted::body(200, body)]).await;
    let found = model(&upstream, "anthropic").0.complete(&ask("x")).await.expect("an answer");
    let expected = r#"call t look {"b":123456789012345678901234567890,"a":1.10}"#;
    assert_eq!(kinds(&found), [expected]);
}

/// What was answered goes back as it came: the next request of a loop of tools is one that the API takes.
#[tokio::test]
async fn an_answer_goes_back_as_it_came() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "proof"});
    let redacted = json!({"type": "redacted_thinking", "data": "x"});
    let call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {"b": 1, "a": 2}});
    let said = json!([thinking, redacted, call]);
    let body = json!({"content": said, "stop_reason": "tool_use"}).to_string();
    let upstream =
        ScriptedServer::start([Scripted::body(200, body.clone()), Scripted::body(200, body)]).await;
    let (model, _) = model(&upstream, "anthropic");
    let mut request = ask("x");
    let answer = model.complete(&request).await.expect("an answer");
    request.messages.push(answer.message);
    request.messages.push(plimsoll_core::Message::result("t", "done"));
    model.complete(&request).await.expect("an answer");
    let sent: Value = serde_json::from_slice(&upstream.requests()[1].body).expect("JSON");
    assert_eq!(sent["messages"][1]["content"], said);
}
