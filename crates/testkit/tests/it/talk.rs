//! A conversation with the scripted provider on Anthropic's wire, and what every test of it needs.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plimsoll_testkit::provider::{
    AnswerMode, Keep, Pace, PlanAction, Rules, ScriptedPlan, ScriptedProvider,
    ScriptedProviderConfig,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;

pub(crate) const MESSAGES: &str = "/v1/messages";
/// The model whose thinking is bound.
pub(crate) const BOUND: &str = "claude-opus-5-5";
/// One whose thinking is not.
pub(crate) const FREE: &str = "claude-sonnet-4-6";

/// Starts a provider that calls a tool so many times.
pub(crate) async fn start(turns: usize, rules: Rules) -> ScriptedProvider {
    let turns = vec![vec![PlanAction::Shell("one".to_owned())]; turns];
    let plan = ScriptedPlan { turns, workspace: "/work".to_owned(), last: "the end".to_owned() };
    let answers = AnswerMode::Planned { plan, check: None, rules };
    let config = ScriptedProviderConfig { answers, keep: Keep::Memory, pace: Pace::Together };
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    ScriptedProvider::listen(address, config).await.expect("it starts")
}

/// Sends a body with headers and returns status and answer.
pub(crate) async fn post(
    provider: &ScriptedProvider,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, Value) {
    let (status, bytes) = post_raw(provider, path, headers, body).await;
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

pub(crate) async fn post_raw(
    provider: &ScriptedProvider,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, Bytes) {
    let address = provider.address();
    let stream =
        TcpStream::connect(address.trim_start_matches("http://")).await.expect("it listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let mut request = Request::post(path).header("host", "loopback");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_string()))).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.into_body().collect().await.expect("its body").to_bytes())
}

/// A first request with a tool, a system prompt and thinking.
pub(crate) fn first(model: &str) -> Value {
    json!({
        "model": model,
        "max_tokens": 100,
        "thinking": {"type": "adaptive"},
        "system": [{"type": "text", "text": "You mend programs."}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object",
            "properties": {"command": {"type": "string"}}, "required": ["command"]}}],
        "messages": [{"role": "user", "content": "go"}],
    })
}

/// Plays `turns` turns; their results are of 2,000 bytes each. Returns the request that would come next.
pub(crate) async fn played(provider: &ScriptedProvider, mut body: Value, turns: usize) -> Value {
    for turn in 0..turns {
        let (status, answer) = post(provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 200, "{answer}");
        go_on(&mut body, &answer, &format!("{turn}").repeat(2000));
    }
    body
}

/// Puts an answer and the results of its calls behind a request.
pub(crate) fn go_on(body: &mut Value, answer: &Value, result: &str) {
    let blocks = answer["content"].as_array().expect("blocks");
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    let results: Vec<_> = calls
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": result}))
        .collect();
    let messages = body["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": blocks}));
    messages.push(json!({"role": "user", "content": results}));
}

/// Returns the error that an answer tells.
pub(crate) fn message(answer: &Value) -> &str {
    assert_eq!(answer["error"]["type"], "invalid_request_error", "{answer}");
    answer["error"]["message"].as_str().expect("a text")
}
