//! Answers in JSON: checked, and asked for once more.

use plimsoll_core::Role;
use plimsoll_engine::{ChatRequest, ModelError, Response};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use serde_json::Value;

use crate::start::{all, ask, events, model, said};

fn request() -> ChatRequest {
    let schema = r#"{"type":"object","properties":{"ids":{"type":"array"}},"required":["ids"]}"#;
    ChatRequest { response: Response::Json { schema: schema.into() }, ..ask("which?") }
}

#[tokio::test]
async fn what_stands_around_the_json_is_taken_off() {
    let upstream =
        ScriptedServer::start([Scripted::body(200, said("```json\n{\"ids\": [1]}\n```"))]).await;
    let reply = model(&upstream, "chat").0.complete(&request()).await.expect("JSON");
    assert_eq!(reply.text(), "{\"ids\": [1]}");
}

#[tokio::test]
async fn a_wrong_answer_is_asked_for_once_more() {
    let answers = ["{\"id\": 1}", "{\"ids\": []}"];
    let upstream = ScriptedServer::start(answers.map(|text| Scripted::body(200, said(text)))).await;
    let reply = model(&upstream, "chat").0.complete(&request()).await.expect("JSON");
    assert_eq!(reply.text(), "{\"ids\": []}");
    assert_eq!((reply.usage.input, reply.usage.output), (2000, 200), "both are paid for");
    assert_eq!(reply.message.usage.map(|usage| usage.prompt_tokens), Some(2000));
    let second: Value = serde_json::from_slice(&upstream.requests()[1].body).expect("JSON");
    let roles: Vec<&str> = second["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|m| m["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let problem = second["messages"][2]["content"].as_str().expect("text");
    assert!(problem.contains("$ has no `ids`"), "{problem}");
}

#[tokio::test]
async fn two_wrong_answers_are_an_error() {
    let answers = ["no", "no", "{\"ids\": []}"].map(|text| Scripted::body(200, said(text)));
    let upstream = ScriptedServer::start(answers).await;
    let error = model(&upstream, "chat").0.complete(&request()).await.expect_err("no JSON");
    assert!(matches!(error, ModelError::Unusable(_)));
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn what_was_cut_by_its_length_is_not_asked_for_again() {
    let cut = said("{\"ids\": [1,").replace("\"stop\"", "\"length\"");
    let upstream = ScriptedServer::start([Scripted::body(200, cut)]).await;
    let error = model(&upstream, "chat").0.complete(&request()).await.expect_err("no JSON");
    assert!(error.to_string().contains("length"), "{error}");
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_call_of_a_tool_is_no_json_and_need_not_be() {
    let call = r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let upstream = ScriptedServer::start([Scripted::body(200, call)]).await;
    let reply = model(&upstream, "chat").0.complete(&request()).await.expect("a call");
    assert_eq!((reply.message.role, reply.message.calls().count()), (Role::Assistant, 1));
}

#[tokio::test]
async fn a_stream_is_checked_at_its_end() {
    let chunk = |text: &str| {
        let text = serde_json::to_string(text).expect("JSON");
        events(&[&format!(
            "{{\"choices\":[{{\"delta\":{{\"content\":{text}}},\"finish_reason\":\"stop\"}}]}}"
        )])
    };
    let upstream = ScriptedServer::start([
        Scripted::chunks(chunk("{\"ids\":[]}")),
        Scripted::chunks(chunk("none")),
    ])
    .await;
    let (model, _) = model(&upstream, "chat");
    let good = all(model.stream(&request()).await.expect("a stream")).await;
    assert!(good.iter().all(Result::is_ok));
    let bad = all(model.stream(&request()).await.expect("a stream")).await;
    assert!(matches!(bad.last(), Some(Err(ModelError::Unusable(_)))));
    assert_eq!(upstream.requests().len(), 2);
}
