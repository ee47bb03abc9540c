//! The spending cap.

use plimsoll_engine::ModelError;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};

use crate::start::{Started, all, ask, events, said, start, up};

/// A model at $1,000 for a million tokens of either kind: a call for 100 tokens may cost $0.117, and used 1,100 tokens cost $1.1.
const PRICE: &str = "price = { input = 1000, output = 1000 }";

fn with(upstream: &ScriptedServer, provider: &str, spending: &str) -> Started {
    start(upstream, &format!("{}\n[spending]\n{spending}", up("chat", provider)))
}

fn capped<T>(answer: &Result<T, ModelError>) -> bool {
    matches!(answer, Err(ModelError::Capped(_)))
}

fn close(is: f64, should: f64) -> bool {
    (is - should).abs() < 1e-9
}

#[tokio::test]
async fn what_a_call_used_is_booked() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("x"))]).await;
    let started = with(&upstream, PRICE, "");
    started.models.chat("up/m").expect("a model").complete(&ask("x")).await.expect("an answer");
    assert!(close(started.models.spent_dollars(), 1.1), "{}", started.models.spent_dollars());
}

#[tokio::test]
async fn the_prices_are_those_of_the_table() {
    let usage = r#""usage":{"prompt_tokens":3000000,"completion_tokens":1000000,"prompt_tokens_details":{"cached_tokens":1000000}}"#;
    let body = format!("{{\"choices\":[{{\"message\":{{\"content\":\"x\"}}}}],{usage}}}");
    let upstream = ScriptedServer::start([Scripted::body(200, body)]).await;
    let started = with(&upstream, "", "");
    let model = started.models.chat("up/gpt-5").expect("a model");
    model.complete(&ask("x")).await.expect("an answer");
    // Two plain millions, one from the cache at a tenth, one written by the model.
    let dollars = 2.0 * 1.25 + 0.125 + 10.0;
    assert!(close(started.models.spent_dollars(), dollars), "{}", started.models.spent_dollars());
}

#[tokio::test]
async fn a_call_beyond_the_cap_is_not_made() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("x"))]).await;
    let started = with(&upstream, PRICE, "process_dollars = 1.2");
    let model = started.models.chat("up/m").expect("a model");
    model.complete(&ask("x")).await.expect("the first is within");
    assert!(capped(&model.complete(&ask("x")).await));
    assert!(capped(&model.stream(&ask("x")).await.map(|_| ())));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn one_call_has_a_cap_of_its_own() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("x"))]).await;
    let started = with(&upstream, PRICE, "call_dollars = 0.15");
    let model = started.models.chat("up/m").expect("a model");
    model.complete(&ask("x")).await.expect("small enough");
    assert!(capped(&model.complete(&ask(&"x".repeat(500))).await));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_model_of_unknown_price_is_refused_under_a_cap() {
    let upstream =
        ScriptedServer::start([Scripted::body(200, said("x")), Scripted::body(200, said("x"))])
            .await;
    let refused = with(&upstream, "", "process_dollars = 5");
    assert!(capped(&refused.models.chat("up/m").expect("a model").complete(&ask("x")).await));
    assert!(upstream.requests().is_empty());
    let priced =
        with(&upstream, "", "process_dollars = 5\nunknown_model = { input = 1000, output = 1000 }");
    priced.models.chat("up/m").expect("a model").complete(&ask("x")).await.expect("an answer");
    assert!(close(priced.models.spent_dollars(), 1.1));
    let uncapped = with(&upstream, "", "");
    uncapped.models.chat("up/m").expect("a model").complete(&ask("x")).await.expect("an answer");
}

#[tokio::test]
async fn what_was_refused_costs_nothing_and_what_broke_off_may() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let whole = events(&[
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10}}"#,
    ]);
    let upstream = ScriptedServer::start([
        Scripted::body(400, "{}"),
        Scripted::chunks(whole),
        Scripted::chunks([text]).cut(),
        Scripted::chunks([text]).then_silence(),
    ])
    .await;
    let started = with(&upstream, PRICE, "");
    let model = started.models.chat("up/m").expect("a model");
    assert!(model.complete(&ask("x")).await.is_err());
    assert!(close(started.models.spent_dollars(), 0.0));
    all(model.stream(&ask("x")).await.expect("a stream")).await;
    assert!(close(started.models.spent_dollars(), 0.01));
    // 17 tokens for the message and 100 for the answer, all set aside.
    all(model.stream(&ask("x")).await.expect("a stream")).await;
    assert!(
        close(started.models.spent_dollars(), 0.01 + 0.117),
        "{}",
        started.models.spent_dollars()
    );
    let mut left = model.stream(&ask("x")).await.expect("a stream");
    assert!(left.next().await.is_some());
    drop(left);
    assert!(close(started.models.spent_dollars(), 0.01 + 2.0 * 0.117));
}

#[tokio::test]
async fn the_second_try_for_json_is_under_the_cap_too() {
    let upstream = ScriptedServer::start([Scripted::body(200, said("no JSON"))]).await;
    let started = with(&upstream, PRICE, "process_dollars = 1.2");
    let mut request = ask("x");
    request.response = plimsoll_engine::Response::Json { schema: "{}".into() };
    assert!(capped(&started.models.chat("up/m").expect("a model").complete(&request).await));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_say_what_it_used_stays_booked_at_the_most() {
    let silent = r#"{"choices":[{"message":{"content":"x"}}]}"#;
    let upstream = ScriptedServer::start([Scripted::body(200, silent)]).await;
    let started = with(&upstream, PRICE, "");
    started.models.chat("up/m").expect("a model").complete(&ask("x")).await.expect("an answer");
    assert!(close(started.models.spent_dollars(), 0.117), "{}", started.models.spent_dollars());
}
