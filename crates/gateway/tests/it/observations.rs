//! Agents that write results into the user's messages and calls into the model's: smolagents' two agents.

use std::fmt::Write as _;

use plimsoll_core::Role;
use plimsoll_engine::{SessionId, TenantId};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::{Wire, check};
use serde_json::{Value, json};

use crate::harness::Running;
use crate::talk::Talk;

const TURNS: usize = 8;

const IDS: [&str; TURNS] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

fn observed(turn: usize) -> String {
    let mut out = String::from("Observation:\n");
    for line in 0..120 {
        let _ = writeln!(out, "turn {turn} line {line} of a page that was visited");
    }
    out
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"type": "text", "text": text}]})
}

/// The messages of an agent whose model calls tools, or writes code and stops before the end of the block.
async fn play(with_tools: bool) {
    let talk = Talk::new(Wire::ChatCompletions, false, "unused");
    let said = |turn: usize| {
        if with_tools {
            format!("I visit page {turn}.")
        } else {
            format!("Thought: on to page {turn}.\n<code>\nvisit({turn})\n")
        }
    };
    let script: Vec<Scripted> = (0..TURNS)
        .map(|turn| {
            let call = (IDS[turn], "visit", json!({"page": turn}));
            talk.answer(&said(turn), if with_tools { std::slice::from_ref(&call) } else { &[] })
        })
        .collect();
    let upstream = ScriptedServer::start(script).await;
    let gateway = Running::start(upstream.address(), |config| {
        "window".clone_into(&mut config.policy);
    })
    .await;
    let mut messages = vec![message("system", "You act."), message("user", "New task:\nVisit.")];
    let mut sessions = Vec::new();
    for (turn, id) in IDS.iter().enumerate() {
        let mut body = json!({"model": "gpt-4.1", "messages": messages});
        if with_tools {
            body["tools"] = json!([{"type": "function", "function": {"name": "visit", "description": "visits", "parameters": {"type": "object", "properties": {}}}}]);
        }
        let body = serde_json::to_vec(&body).expect("plain data");
        let answer = gateway.post(talk.path(), &[], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        sessions.extend(answer.header("x-plimsoll-session").map(str::to_owned));
        let (name, end) =
            if with_tools { ("visit", "") } else { ("python_interpreter", "</code>") };
        let calls = format!(
            "{}{end}\nCalling tools:\n[{{'id': '{id}', 'type': 'function', 'function': {{'name': '{name}', 'arguments': {{'page': {turn}}}}}}}]",
            said(turn).trim_end()
        );
        messages.push(message("assistant", &calls));
        messages.push(message("user", &observed(turn)));
    }
    let requests = upstream.requests();
    let last = &requests[TURNS - 1].body;
    assert_eq!(check(Wire::ChatCompletions, last), []);
    // Observations are bounded as results are: the oldest are short, the newest is whole.
    let last: Value = serde_json::from_slice(last).expect("JSON");
    let text = |at: usize| last["messages"][at]["content"][0]["text"].as_str().unwrap_or_default();
    let (oldest, newest) = (text(3), text(2 * TURNS - 1));
    assert!(oldest.len() < observed(0).len() / 4, "{oldest}");
    assert_eq!(newest, observed(TURNS - 2));
    // The agent's own turns stay: all else would be reduced before them.
    for at in 0..TURNS - 1 {
        assert!(text(2 + 2 * at).starts_with(said(at).trim_end()), "{}", text(2 + 2 * at));
    }
    // All turns are one session without branches, and each result is the tool's.
    sessions.dedup();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let tenant = TenantId::default();
    let messages = async |id: &str| {
        let id = SessionId::new(id).expect("an id");
        gateway.store.messages(&tenant, &id, 0, 100).await.expect("a store")
    };
    assert_eq!(messages(&format!("{}.2", sessions[0])).await.len(), 0, "no branch");
    let kept = messages(&sessions[0]).await;
    let tools = kept.iter().filter(|record| record.message.role == Role::Tool).count();
    assert_eq!((kept.len(), tools), (2 * TURNS + 1, TURNS - 1));
}

#[tokio::test]
async fn calls_and_results_as_text_are_one_session_and_bounded() {
    play(true).await;
}

#[tokio::test]
async fn code_and_its_observations_are_one_session_and_bounded() {
    play(false).await;
}
