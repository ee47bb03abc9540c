//! The provider's own search of tools: what waits for it, and what it found comes back.

use plimsoll_core::lazy_tools::NativeSearch;
use plimsoll_core::{Block, Message, Role};
use plimsoll_engine::{ChatEvent, ChatRequest, Deferral, Tool};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::{Value, json};

use crate::start::{all, ask, events, model};

fn request(search: NativeSearch, deferred: &[&str]) -> ChatRequest {
    let tool = |name: &str| Tool {
        name: name.into(),
        description: "Looks.".into(),
        schema: r#"{"type":"object"}"#.into(),
    };
    let tools = deferred.iter().map(|name| (*name).into()).collect();
    ChatRequest {
        tools: vec![tool("look"), tool("find")],
        deferral: Some(Deferral { search, tools }),
        ..ask("x")
    }
}

async fn tools_sent(api: &str, request: &ChatRequest) -> Value {
    let upstream = ScriptedServer::start([Scripted::body(400, "{}")]).await;
    let (model, _) = model(&upstream, api);
    assert!(model.complete(request).await.is_err(), "the upstream refuses everything");
    let body: Value = serde_json::from_slice(&upstream.requests()[0].body).expect("JSON");
    body["tools"].clone()
}

#[tokio::test]
async fn tools_wait_for_the_search_that_the_provider_has() {
    let tool = |name: &str| json!({"name": name, "description": "Looks.", "input_schema": {"type": "object"}});
    let waiting = |name: &str| {
        let mut tool = tool(name);
        tool["defer_loading"] = json!(true);
        tool
    };
    let regex =
        json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"});
    let words = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    for (search, deferred, expected) in [
        (NativeSearch::Regex, &["find"][..], json!([regex, tool("look"), waiting("find")])),
        (NativeSearch::Bm25, &["look", "find"], json!([words, waiting("look"), waiting("find")])),
        (NativeSearch::Bm25, &["unknown"], json!([tool("look"), tool("find")])),
        (NativeSearch::Off, &["find"], json!([tool("look"), tool("find")])),
    ] {
        assert_eq!(tools_sent("anthropic", &request(search, deferred)).await, expected);
    }
    let others = tools_sent("chat", &request(NativeSearch::Bm25, &["find"])).await;
    assert_eq!(others.as_array().map(Vec::len), Some(2), "without a search all are sent");
    assert!(!others.to_string().contains("defer_loading"));
}

#[tokio::test]
async fn what_the_search_found_is_sent_back() {
    let found = [
        r#"{"type":"message_start","message":{"model":"m"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"tool_search_tool_bm25","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"look\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_search_tool_result","tool_use_id":"s","content":{"tool_references":[]}}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"w","name":"web_search","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let script = [Scripted::chunks(events(&found)), Scripted::body(400, "{}")];
    let upstream = ScriptedServer::start(script).await;
    let (model, _) = model(&upstream, "anthropic");
    let first = request(NativeSearch::Bm25, &["look"]);
    let stream = model.stream(&first).await.expect("a stream");
    let Some(Ok(ChatEvent::Done(reply))) = all(stream).await.pop() else {
        panic!("an answer");
    };
    let said = reply.message;
    assert!(said.blocks.iter().all(|block| matches!(block, Block::Opaque(_))));
    let mut next = first;
    next.messages.extend([said, Message::text(Role::User, "go on")]);
    assert!(model.complete(&next).await.is_err());
    let body: Value = serde_json::from_slice(&upstream.requests()[1].body).expect("JSON");
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_bm25", "input": {"query": "look"}},
            {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"tool_references": []}},
        ]),
        "and nothing of another search"
    );
}
