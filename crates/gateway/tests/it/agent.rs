//! An agent on Anthropic's wire that plays the scripted provider's plan through the gateway.

use std::fmt::Write as _;
use std::net::SocketAddr;

use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_testkit::provider::{
    AnswerMode, Keep, Pace, PlanAction, RecordedExchange, Rules, ScriptedPlan, ScriptedProvider,
    ScriptedProviderConfig, strict,
};
use serde_json::{Value, json};

use crate::harness::{Answer, Running};

const MESSAGES: &str = "/v1/messages";
/// A model whose thinking is bound.
pub(crate) const BOUND: &str = "claude-opus-5-5";
/// A model whose thinking is not.
pub(crate) const FREE: &str = "claude-sonnet-4-6";

/// Starts a provider that reads one file in each turn; it refuses whatever a provider is known to refuse.
pub(crate) async fn provider(files: impl IntoIterator<Item = usize>) -> ScriptedProvider {
    let read = |file| vec![PlanAction::Read(format!("file{file}.rs"))];
    playing(files.into_iter().map(read).collect()).await
}

/// Starts a provider that plays these turns, as strict.
pub(crate) async fn playing(turns: Vec<Vec<PlanAction>>) -> ScriptedProvider {
    let plan = ScriptedPlan { turns, workspace: "/project".to_owned(), last: "the end".to_owned() };
    let answers = AnswerMode::Planned { plan, check: Some(strict()), rules: Rules::default() };
    let config = ScriptedProviderConfig { answers, keep: Keep::Memory, pace: Pace::Together };
    ScriptedProvider::listen(SocketAddr::from(([127, 0, 0, 1], 0)), config)
        .await
        .expect("it starts")
}

/// Returns the body of a request as the provider received it.
pub(crate) fn body(kept: &RecordedExchange) -> Value {
    serde_json::from_slice(&kept.request).expect("JSON")
}

/// Counts the cache marks of a request.
pub(crate) fn marks(body: &Value) -> usize {
    match body {
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control"))
                + fields.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

/// The agent and its conversation.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// The next request.
    pub(crate) body: Value,
    /// Lines of each file.
    pub(crate) lines: usize,
    /// Whether it marks the ends of its system prompt and of its last message for the cache.
    pub(crate) marks: bool,
}

impl Agent {
    pub(crate) fn new(model: &str, task: &str) -> Self {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        Self {
            lines: 120,
            marks: false,
            body: json!({
                "model": model, "max_tokens": 1000, "thinking": {"type": "adaptive"},
                "system": "You mend programs.",
                "tools": [{"name": "read", "description": "reads a file", "input_schema": schema}],
                "messages": [{"role": "user", "content": task}],
            }),
        }
    }

    /// Sends the next request.
    pub(crate) async fn ask(&self, gateway: &Running) -> Answer {
        let mut body = self.body.clone();
        if self.marks {
            let mark = json!({"type": "ephemeral"});
            body["system"] =
                json!([{"type": "text", "text": body["system"], "cache_control": mark}]);
            let last = body["messages"].as_array_mut().and_then(|all| all.last_mut());
            let last = last.expect("a message");
            if let Some(text) = last["content"].as_str() {
                last["content"] = json!([{"type": "text", "text": text}]);
            }
            let block = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut());
            block.expect("a block")["cache_control"] = mark;
        }
        gateway.post(MESSAGES, &[], body.to_string().as_bytes()).await
    }

    /// Plays a turn: sends the request, and puts the answer and the results of its calls behind it.
    pub(crate) async fn turn(&mut self, gateway: &Running) -> Answer {
        let answer = self.ask(gateway).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let blocks = said["content"].as_array().expect("blocks");
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> = calls
            .map(|call| {
                let path = call["input"]["path"].as_str().expect("a path");
                json!({"type": "tool_result", "tool_use_id": call["id"], "content": file(path, self.lines)})
            })
            .collect();
        let messages = self.body["messages"].as_array_mut().expect("a list");
        messages.push(json!({"role": "assistant", "content": blocks}));
        if !results.is_empty() {
            messages.push(json!({"role": "user", "content": results}));
        }
        answer
    }
}

/// Returns what stands in a file: about 50 bytes a line, and no line that another file has.
pub(crate) fn file(path: &str, lines: usize) -> String {
    let mut out = String::new();
    for line in 0..lines {
        let _ = writeln!(out, "fn line_{line}() {{ /* number {line} of {path} */ }}");
    }
    out
}

/// Returns the receipts of the session that an answer names.
pub(crate) async fn receipts(store: &dyn HistoryStore, answer: &Answer) -> Vec<Value> {
    let session = answer.header("x-plimsoll-session").expect("a session is named");
    let session = SessionId::new(session).expect("an id");
    let receipts = store.receipts(&TenantId::default(), &session).await.expect("a store");
    receipts.iter().map(|one| serde_json::from_str(&one.receipt).expect("JSON")).collect()
}
