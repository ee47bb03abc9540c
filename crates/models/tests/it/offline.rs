//! Models without a network: scripts, and recordings of what was real.

use plimsoll_core::Message;
use plimsoll_engine::{ChatEvent, ChatModel as _, ChatRequest, ModelError, Response, StopReason};
use plimsoll_models::{ReplayModel, ScriptedModel};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};

use crate::start::{KEY, all, ask, events, said, start, up};

const SCRIPT: &str = r#"
# A comment, and an empty line.

{"expect": "weather", "reasoning": "hm", "calls": [{"name": "forecast", "arguments": {"place": "Ulm"}}]}
{"expect": "rain", "text": "Take an umbrella.", "usage": {"input": 120, "cached": 20, "output": 6}}
{"json": {"ids": [1]}, "stop": "length"}
{"fault": "unavailable", "retry_after_seconds": 3}
{"text": "Half an", "fault": "interrupted"}
"#;

#[tokio::test]
async fn a_script_is_played_turn_by_turn() {
    let model = ScriptedModel::parse("scripted/s", SCRIPT).expect("sound");
    let first = model.complete(&ask("the weather?")).await.expect("a turn");
    let call = first.message.calls().next().expect("a call");
    assert_eq!(
        (&*call.id, &*call.name, &*call.arguments),
        ("call_1_0", "forecast", r#"{"place":"Ulm"}"#)
    );
    assert_eq!(
        (first.stop_reason, first.usage.input, first.usage.output),
        (StopReason::Calls, 3, 7)
    );
    let result = ChatRequest::new(vec![Message::result("call_1_0", "rain")]);
    let second = all(model.stream(&result).await.expect("a turn")).await;
    let words: Vec<_> = second[..3].iter().collect();
    assert_eq!(
        words,
        [
            &Ok(ChatEvent::Text("Take ".into())),
            &Ok(ChatEvent::Text("an ".into())),
            &Ok(ChatEvent::Text("umbrella.".into()))
        ]
    );
    let Some(Ok(ChatEvent::Done(reply))) = second.last() else { panic!("{second:?}") };
    assert_eq!((reply.usage.input, reply.usage.cached, reply.usage.output), (120, 20, 6));
    let third = model.complete(&ask("x")).await.expect("a turn");
    assert_eq!((third.text().as_str(), third.stop_reason), (r#"{"ids":[1]}"#, StopReason::Length));
    let fault = model.complete(&ask("x")).await.expect_err("a fault");
    assert!(
        matches!(fault, ModelError::Unavailable { retry_after: Some(wait), .. } if wait.as_secs() == 3)
    );
    let cut = all(model.stream(&ask("x")).await.expect("begun")).await;
    assert!(matches!(&cut[..], [Ok(_), Ok(_), Err(ModelError::Interrupted(_))]), "{cut:?}");
    assert_eq!(model.left(), 0);
    let again = ScriptedModel::parse("s", "{\"text\": \"a\"}\n{\"text\": \"b\", \"repeat\": true}");
    let again = again.expect("sound");
    for expected in ["a", "b", "b", "b"] {
        assert_eq!(again.complete(&ask("x")).await.expect("a turn").text(), expected);
    }
    let error = model.complete(&ask("x")).await.expect_err("over").to_string();
    assert!(error.contains("has 5 turns, and this is request 6"), "{error}");
}

#[tokio::test]
async fn a_script_says_where_it_is_wrong() {
    let model = ScriptedModel::parse("s", SCRIPT).expect("sound");
    let error = model.complete(&ask("hello")).await.expect_err("another question").to_string();
    assert!(error.contains("turn 1") && error.contains("weather"), "{error}");
    let error = ScriptedModel::parse("s", "{}\n{\"txt\": 1}").expect_err("no such key").to_string();
    assert!(error.contains("line 2") && error.contains("txt"), "{error}");
}

#[tokio::test]
async fn a_script_is_a_model_of_the_registry_and_its_json_is_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.jsonl");
    std::fs::write(&path, "{\"text\": \"none\"}\n{\"expect\": \"not JSON\", \"json\": {}}\n")
        .expect("a file");
    let upstream = ScriptedServer::start([]).await;
    let started = start(&upstream, "");
    let name = format!("scripted/{}", path.display());
    let model = started.models.chat(&name).expect("a model");
    let request = ChatRequest { response: Response::Json { schema: "{}".into() }, ..ask("x") };
    assert_eq!(model.complete(&request).await.expect("the second try").text(), "{}");
    assert!(started.models.chat("scripted/nowhere.jsonl").is_err());
}

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.jsonl");
    let streamed = events(&[
        r#"{"model":"m-1","choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#,
    ]);
    let cut = events(&[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#]);
    let upstream = ScriptedServer::start([
        Scripted::body(200, said("one")),
        Scripted::body(200, said("two")),
        Scripted::body(401, "{}"),
        Scripted::chunks(streamed),
        Scripted::chunks(cut).then_silence(),
    ])
    .await;
    let config = format!(
        "record = '{}'\n{}",
        path.display(),
        up("chat", "headers = { x = 'hidden-header' }")
    );
    let started = start(&upstream, &config);
    let model = started.models.chat("up/m").expect("a model");
    let mut real = Vec::new();
    for _ in 0..3 {
        real.push(model.complete(&ask("x")).await);
    }
    let real_stream = all(model.stream(&ask("y")).await.expect("a stream")).await;
    let mut left = model.stream(&ask("z")).await.expect("a stream");
    assert!(left.next().await.is_some());
    drop(left);

    let text = std::fs::read_to_string(&path).expect("a recording");
    assert_eq!(text.lines().count(), 5);
    assert!(!text.contains(KEY) && !text.contains("hidden-header"), "{text}");
    let replay = started.models.chat(&format!("replay/{}", path.display())).expect("a model");
    for real in real {
        assert_eq!(replay.complete(&ask("x")).await, real);
    }
    assert_eq!(all(replay.stream(&ask("y")).await.expect("a stream")).await, real_stream);
    let left = all(replay.stream(&ask("z")).await.expect("a stream")).await;
    assert!(matches!(&left[..], [Ok(ChatEvent::Text(_)), Err(ModelError::Interrupted(_))]));
    let none = replay.complete(&ask("x")).await.expect_err("each is there once");
    assert!(none.to_string().contains("no such request"));
    assert_eq!(upstream.requests().len(), 5, "nothing was asked of the real one");
}

#[tokio::test]
async fn a_recording_plays_streams_whole_and_whole_answers_as_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.jsonl");
    let upstream = ScriptedServer::start([Scripted::body(200, said("one two"))]).await;
    let started = start(&upstream, &format!("record = '{}'\n{}", path.display(), up("chat", "")));
    started.models.chat("up/m").expect("a model").complete(&ask("x")).await.expect("an answer");
    let text = std::fs::read_to_string(&path).expect("a recording");
    let replay = ReplayModel::parse("r", &text).expect("sound");
    let pieces = all(replay.stream(&ask("x")).await.expect("a stream")).await;
    assert_eq!(pieces.len(), 3);
    assert!(ReplayModel::parse("r", "{}").is_err());
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_not_made() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("one"))]).await;
    let started = start(&upstream, &format!("record = '/nowhere/calls.jsonl'\n{}", up("chat", "")));
    let error = started.models.chat("up/m").expect("a model").complete(&ask("x")).await;
    assert!(error.expect_err("no file").to_string().contains("/nowhere/calls.jsonl"));
    assert!(upstream.requests().is_empty());
}
