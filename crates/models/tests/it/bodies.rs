//! What goes out: the whole body on each API.

use plimsoll_core::{Block, Image, Message, Opaque, Role, Thinking, ToolCall, ToolResult};
use plimsoll_engine::{Caching, ChatRequest, Response, Tool};
use plimsoll_testkit::upstream::{ReceivedRequest, Scripted, ScriptedServer};
use serde_json::{Value, json};

use crate::start::{KEY, ask, model, start, up};

/// A conversation with everything in it that an API may ask for.
fn conversation() -> ChatRequest {
    let call = |id: &str, arguments: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "look".into(),
            arguments: arguments.into(),
        })
    };
    let image = |data: &str| Image { media_type: "image/png".into(), data: data.into() };
    let result = |id: &str, text: &str, images: Vec<Image>, is_error| {
        let call_id = id.into();
        Block::ToolResult(ToolResult { call_id, text: text.into(), images, is_error })
    };
    let messages = vec![
        Message::text(Role::System, "Be kind."),
        Message::new(
            Role::User,
            vec![
                Block::Text("What is this?".into()),
                Block::Text("".into()),
                Block::Image(image("aGk=")),
            ],
        ),
        Message::new(
            Role::Assistant,
            vec![
                Block::Thinking(Thinking { text: "hm".into(), signature: "proof".into() }),
                Block::Thinking(Thinking { text: "without proof".into(), signature: "".into() }),
                Block::Opaque(Opaque {
                    kind: "reasoning".into(),
                    raw: r#"{"type":"reasoning","id":"rs_1","encrypted_content":"x"}"#.into(),
                }),
                Block::Text("I look.".into()),
                call("a|1", r#"{"at":1}"#),
                call("b", "free text"),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![result("a|1", "a cat", vec![image("https://h/c.png")], false)],
        ),
        Message::new(Role::Tool, vec![result("b", "no such place", Vec::new(), true)]),
        Message::text(Role::User, "So?"),
        Message::text(Role::Assistant, "It is a \n"),
    ];
    ChatRequest {
        tools: vec![Tool {
            name: "look".into(),
            description: "Looks.".into(),
            schema: r#"{"type": "object", "z": 1, "a": 123456789012345678901234567890}"#.into(),
        }],
        temperature: Some(0.5),
        ..ask("")
    }
    .with(messages)
}

trait With {
    fn with(self, messages: Vec<Message>) -> Self;
}

impl With for ChatRequest {
    fn with(mut self, messages: Vec<Message>) -> Self {
        self.messages = messages;
        self
    }
}

/// Sends a request and returns what arrived; the answer does not matter.
async fn sent(config: &str, request: &ChatRequest, is_streamed: bool) -> ReceivedRequest {
    let upstream = ScriptedServer::start([Scripted::body(400, "{}")]).await;
    let started = start(&upstream, config);
    let model = started.models.chat("up/vendor/m").expect("a model");
    if is_streamed {
        let _ = model.stream(request).await;
    } else {
        let _ = model.complete(request).await;
    }
    let mut requests = upstream.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn body(received: &ReceivedRequest) -> Value {
    serde_json::from_slice(&received.body).expect("JSON")
}

#[tokio::test]
async fn chat_completions() {
    let mut request = conversation();
    request.stop = vec!["END".into()];
    let received = sent(&up("chat", ""), &request, true).await;
    assert_eq!(
        (received.method.as_str(), received.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(received.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert!(
        received.text().contains(r#""z": 1, "a": 123456789012345678901234567890"#),
        "as it stands"
    );
    let mut body = body(&received);
    body["tools"][0]["function"]["parameters"] = json!("checked above");
    assert_eq!(
        body,
        json!({
            "model": "vendor/m",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
                ]},
                {"role": "assistant", "content": "I look.", "tool_calls": [
                    {"id": "a|1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                    {"id": "b", "type": "function", "function": {"name": "look", "arguments": "free text"}}
                ]},
                {"role": "tool", "tool_call_id": "a|1", "content": "a cat"},
                {"role": "tool", "tool_call_id": "b", "content": "no such place"},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://h/c.png"}}]},
                {"role": "user", "content": "So?"},
                {"role": "assistant", "content": "It is a \n"}
            ],
            "tools": [{"type": "function", "function": {
                "name": "look", "description": "Looks.", "parameters": "checked above"
            }}],
            "max_tokens": 100,
            "temperature": 0.5,
            "stop": ["END"],
            "stream": true,
            "stream_options": {"include_usage": true}
        })
    );
}

#[tokio::test]
async fn responses() {
    let received = sent(&up("responses", ""), &conversation(), false).await;
    assert_eq!(received.path, "/v1/responses");
    let mut body = body(&received);
    body["tools"][0]["parameters"] = json!("checked above");
    assert_eq!(
        body,
        json!({
            "model": "vendor/m",
            "instructions": "Be kind.",
            "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
                ]},
                {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "a|1", "name": "look", "arguments": "{\"at\":1}"},
                {"type": "function_call", "call_id": "b", "name": "look", "arguments": "free text"},
                {"type": "function_call_output", "call_id": "a|1", "output": [
                    {"type": "input_text", "text": "a cat"},
                    {"type": "input_image", "image_url": "https://h/c.png"}
                ]},
                {"type": "function_call_output", "call_id": "b", "output": "no such place"},
                {"role": "user", "content": [{"type": "input_text", "text": "So?"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "It is a \n"}]}
            ],
            "tools": [{
                "type": "function", "name": "look", "description": "Looks.",
                "parameters": "checked above", "strict": false
            }],
            "max_output_tokens": 100,
            "temperature": 0.5,
            "store": false,
            "include": ["reasoning.encrypted_content"]
        })
    );
}

#[tokio::test]
async fn anthropic() {
    let mut request = conversation();
    request.stop = vec!["END".into()];
    request.caching = Caching::Prefix;
    let received = sent(&up("anthropic", ""), &request, true).await;
    assert_eq!(received.path, "/v1/messages");
    assert_eq!(received.header("x-api-key"), Some(KEY));
    assert_eq!(received.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(received.header("authorization"), None);
    let mut body = body(&received);
    body["tools"][0]["input_schema"] = json!("checked above");
    assert_eq!(
        body,
        json!({
            "model": "vendor/m",
            "max_tokens": 100,
            "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "proof"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "a_1", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {"input": "free text"}}
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a_1", "content": [
                        {"type": "text", "text": "a cat"},
                        {"type": "image", "source": {"type": "url", "url": "https://h/c.png"}}
                    ]},
                    {"type": "tool_result", "tool_use_id": "b", "content": [
                        {"type": "text", "text": "no such place"}
                    ], "is_error": true},
                    {"type": "text", "text": "So?"}
                ]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "It is a", "cache_control": {"type": "ephemeral"}}
                ]}
            ],
            "tools": [{"name": "look", "description": "Looks.", "input_schema": "checked above"}],
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "stream": true
        })
    );
}

#[tokio::test]
async fn what_an_api_would_refuse_is_not_sent() {
    let upstream = ScriptedServer::start([]).await;
    let (anthropic, _) = model(&upstream, "anthropic");
    let only_answer = ask("").with(vec![Message::text(Role::Assistant, "x")]);
    assert!(anthropic.complete(&only_answer).await.is_err());
    let (responses, _) = model(&upstream, "responses");
    let with_stop = ChatRequest { stop: vec!["x".into()], ..ask("x") };
    assert!(responses.complete(&with_stop).await.is_err());
    let (chat, _) = model(&upstream, "chat");
    let tool = Tool { name: "t".into(), description: "".into(), schema: "{".into() };
    let bad_schema = ChatRequest { tools: vec![tool], ..ask("x") };
    assert!(chat.complete(&bad_schema).await.is_err());
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn settings_of_a_provider_reach_its_requests() {
    let json = ChatRequest {
        response: Response::Json { schema: r#"{"type":"object"}"#.into() },
        ..ask("x")
    };
    let received = sent(
        &up(
            "chat",
            "key_header = 'api-key'\nheaders = { x-title = 'ship' }\nmax_tokens_field = 'limit'",
        ),
        &json,
        false,
    )
    .await;
    assert_eq!(received.header("api-key"), Some(KEY));
    assert_eq!(received.header("authorization"), None);
    assert_eq!(received.header("x-title"), Some("ship"));
    assert_eq!(
        body(&received),
        json!({
            "model": "vendor/m",
            "messages": [{"role": "user", "content": "x"}],
            "limit": 100,
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "answer", "schema": {"type": "object"}, "strict": false
            }}
        })
    );
    let object = body(&sent(&up("chat", "json = 'object'"), &json, false).await);
    assert_eq!(object["response_format"], json!({"type": "json_object"}));
    assert!(object["messages"][0]["content"].as_str().is_some_and(|text| text.contains("schema")));
    let prompt = body(&sent(&up("chat", "json = 'prompt'"), &json, false).await);
    assert_eq!(prompt.get("response_format"), None);
    assert_eq!(prompt["messages"][0], object["messages"][0]);
    let responses = body(&sent(&up("responses", ""), &json, false).await);
    assert_eq!(responses["text"]["format"]["type"], "json_schema");
    let anthropic = body(&sent(&up("anthropic", ""), &json, false).await);
    assert_eq!(anthropic["system"][0]["text"], object["messages"][0]["content"]);
    let schema = body(&sent(&up("anthropic", "json = 'schema'"), &json, false).await);
    assert_eq!(schema["output_config"]["format"]["schema"], json!({"type": "object"}));
}

#[tokio::test]
async fn anthropic_gets_results_before_what_the_user_said_meanwhile() {
    let call = ToolCall { id: "a".into(), name: "look".into(), arguments: "{}".into() };
    let messages = vec![
        Message::text(Role::User, "Look."),
        Message::new(Role::Assistant, vec![Block::ToolCall(call)]),
        Message::text(Role::User, "Hurry!"),
        Message::result("a", "a cat"),
    ];
    let received = sent(&up("anthropic", ""), &ask("").with(messages), false).await;
    let last = body(&received)["messages"][2]["content"].clone();
    assert_eq!([&last[0]["type"], &last[1]["text"]], ["tool_result", "Hurry!"]);
}
