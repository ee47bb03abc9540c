//! Faults, and how often each makes a call: nothing is asked for again after the first byte of an answer.

use std::time::Duration;

use plimsoll_engine::{ChatReply, ModelError};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};

use crate::start::{KEY, Started, all, ask, model, said, start, up};

struct Outcome {
    answer: Result<ChatReply, ModelError>,
    requests: usize,
    waits: Vec<Duration>,
}

/// Asks once, of each API's client alike, and tells what came of it.
async fn outcome(script: impl IntoIterator<Item = Scripted>) -> Outcome {
    let upstream = ScriptedServer::start(script).await;
    let (model, started) = model(&upstream, "chat");
    let answer = model.complete(&ask("x")).await;
    Outcome { answer, requests: upstream.requests().len(), waits: started.clock.waits() }
}

fn fine() -> Scripted {
    Scripted::body(200, said("fine"))
}

fn refused(status: u16) -> Scripted {
    Scripted::body(status, r#"{"error":{"message":"not now"}}"#)
}

const HALF: Duration = Duration::from_millis(250);

#[tokio::test]
async fn what_is_refused_for_now_is_asked_again_after_a_pause() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        let outcome = outcome([refused(status), refused(status), fine()]).await;
        assert_eq!(outcome.answer.expect("the third try").text(), "fine", "{status}");
        assert_eq!(outcome.requests, 3, "{status}");
        // Half of 500 ms and half of a second, for the chance is one half.
        assert_eq!(outcome.waits, [HALF, HALF * 2], "{status}");
    }
}

#[tokio::test]
async fn a_server_that_says_when_is_asked_then() {
    for value in ["7", "Thu, 01 Jan 2026 00:00:07 GMT"] {
        let outcome = outcome([refused(429).header("retry-after", value), fine()]).await;
        assert!(outcome.answer.is_ok());
        assert_eq!(outcome.waits, [Duration::from_secs(7) + HALF], "{value}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_too_long_is_not_asked_again() {
    let outcome = outcome([refused(429).header("retry-after", "3600")]).await;
    let Err(ModelError::Unavailable { retry_after, message }) = outcome.answer else { panic!() };
    assert_eq!(retry_after, Some(Duration::from_hours(1)));
    assert_eq!(message, "up answered 429: not now");
    assert_eq!((outcome.requests, outcome.waits), (1, Vec::new()));
}

#[tokio::test]
async fn it_gives_up_after_so_many_attempts() {
    let outcome = outcome([refused(529), refused(529), refused(529), fine()]).await;
    assert!(matches!(outcome.answer, Err(ModelError::Unavailable { .. })));
    assert_eq!((outcome.requests, outcome.waits.len()), (3, 2));
}

#[tokio::test]
async fn the_retry_settings_are_obeyed() {
    let settings = "[retries]\nattempts = 2\nbase_millis = 4000\nlongest_seconds = 1";
    let upstream = ScriptedServer::start([refused(500), refused(500), fine()]).await;
    let started = start(&upstream, &format!("{}{settings}", up("chat", "")));
    let model = started.models.chat("up/m").expect("a model");
    assert!(model.complete(&ask("x")).await.is_err());
    assert_eq!(upstream.requests().len(), 2);
    assert_eq!(started.clock.waits(), [Duration::from_millis(500)]);
}

#[tokio::test]
async fn what_no_repetition_mends_is_asked_once() {
    let denied = |outcome: Outcome| matches!(outcome.answer, Err(ModelError::Denied(_)));
    let invalid = |outcome: Outcome| matches!(outcome.answer, Err(ModelError::Invalid(_)));
    for status in [400, 404, 413, 422, 302] {
        let outcome = outcome([refused(status)]).await;
        assert_eq!(outcome.requests, 1, "{status}");
        assert!(invalid(outcome), "{status}");
    }
    for status in [401, 402, 403] {
        let outcome = outcome([refused(status)]).await;
        assert_eq!(outcome.requests, 1, "{status}");
        assert!(denied(outcome), "{status}");
    }
    let quota = r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#;
    let outcome = outcome([Scripted::body(429, quota)]).await;
    assert_eq!(outcome.requests, 1);
    assert!(denied(outcome));
}

#[tokio::test]
async fn a_status_of_success_with_an_error_inside() {
    for (body, is_later) in [
        (r#"{"error":{"message":"upstream full","code":502}}"#, true),
        (r#"{"error":{"message":"too long","type":"invalid_request_error"}}"#, false),
    ] {
        let outcome = outcome([Scripted::body(200, body), fine()]).await;
        assert_eq!(outcome.requests, 1, "{body}");
        let error = outcome.answer.expect_err(body);
        assert_eq!(error.is_temporary(), is_later, "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none() {
    for body in
        ["<html>", "", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"message":{"content":"x"}"#]
    {
        let outcome = outcome([Scripted::body(200, body), fine()]).await;
        assert!(matches!(outcome.answer, Err(ModelError::Unusable(_))), "{:?}", outcome.answer);
        assert_eq!(outcome.requests, 1, "{body}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off() {
    let outcome = outcome([Scripted::chunks([said("fine")]).cut(), fine()]).await;
    assert!(matches!(outcome.answer, Err(ModelError::Interrupted(_))), "{:?}", outcome.answer);
    assert_eq!(outcome.requests, 1);
}

/// Runs a call whose upstream falls silent, and moves the clock once it has the request.
async fn silent(script: Scripted, config: &str, wait: Duration) -> (ModelError, usize, Started) {
    let upstream = ScriptedServer::start([script, fine()]).await;
    let started = start(&upstream, &format!("{}{config}", up("chat", "")));
    let model = started.models.chat("up/m").expect("a model");
    let request = ask("x");
    let mut call = model.complete(&request);
    tokio::select! {
        biased;
        answer = &mut call => panic!("too early: {answer:?}"),
        () = upstream.received(1) => {}
    }
    started.clock.advance(wait);
    let error = call.await.expect_err("silence");
    (error, upstream.requests().len(), started)
}

#[tokio::test]
async fn silence_before_the_first_byte_ends_the_call_and_is_not_paid_for_twice() {
    let (error, requests, _) = silent(Scripted::never(), "", Duration::from_mins(2)).await;
    assert_eq!(error, ModelError::Interrupted("up sent nothing within 120 s".into()));
    assert_eq!(requests, 1);
    let settings = "[timeouts]\nfirst_byte_seconds = 70";
    let (error, ..) = silent(Scripted::never(), settings, Duration::from_secs(70)).await;
    assert_eq!(error, ModelError::Interrupted("up sent nothing within 70 s".into()));
    let settings = "timeouts = { whole_seconds = 65 }";
    let (error, ..) = silent(Scripted::never(), settings, Duration::from_secs(65)).await;
    assert_eq!(error, ModelError::Interrupted("up sent nothing within 65 s".into()));
}

#[tokio::test]
async fn silence_in_the_answer_ends_the_call() {
    let begun = Scripted::chunks([r#"{"choices":"#]).then_silence();
    let (error, requests, _) = silent(begun, "", Duration::from_mins(10)).await;
    // The clock may have moved before the head was read.
    assert!(matches!(&error, ModelError::Interrupted(told) if told.contains("within")), "{error}");
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn silence_in_a_stream_ends_it() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let upstream = ScriptedServer::start([Scripted::chunks([piece]).then_silence()]).await;
    let (model, started) = model(&upstream, "chat");
    let mut stream = model.stream(&ask("x")).await.expect("a stream");
    assert!(stream.next().await.is_some_and(|piece| piece.is_ok()));
    started.clock.advance(Duration::from_mins(10));
    let rest = all(stream).await;
    assert_eq!(rest, [Err(ModelError::Interrupted("up was not done within 600 s".into()))]);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn nobody_there() {
    let upstream = ScriptedServer::start([]).await;
    let (model, started) = model(&upstream, "chat");
    drop(upstream);
    tokio::task::yield_now().await;
    let error = model.complete(&ask("x")).await.expect_err("nobody listens");
    assert!(error.is_temporary(), "{error}");
    assert_eq!(started.clock.waits().len(), 2, "no connection costs nothing, so it is tried again");
}

/// A server that does not take connections: the one place in its queue is taken.
#[tokio::test(start_paused = true)]
async fn the_time_to_connect_is_a_setting() {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = socket.local_addr().expect("bound");
    let _listener = socket.listen(0).expect("listening");
    let _waiting: Vec<_> =
        (0..4).map(|_| tokio::spawn(tokio::net::TcpStream::connect(address))).collect();
    tokio::task::yield_now().await;
    let upstream = ScriptedServer::start([]).await;
    let config = format!(
        "[providers.up]\napi = 'chat'\nbase_url = 'http://{address}'\n[timeouts]\nconnect_seconds = 3\n[retries]\nattempts = 1"
    );
    let started = start(&upstream, &config);
    let before = tokio::time::Instant::now();
    let error = started.models.chat("up/m").expect("a model").complete(&ask("x")).await;
    assert!(error.expect_err("nobody accepts").is_temporary());
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn no_key_is_ever_told() {
    let told = format!(r#"{{"error":{{"message":"wrong key {KEY} of Bearer {KEY}"}}}}"#);
    for script in [
        Scripted::body(401, told.clone()),
        Scripted::body(400, told.clone()),
        Scripted::body(200, told.clone()),
        Scripted::body(200, format!("<p>{KEY}</p>")),
        Scripted::body(404, format!("<p>{KEY}</p>")),
    ] {
        let upstream = ScriptedServer::start([script]).await;
        let (model, started) = model(&upstream, "chat");
        let error = model.complete(&ask("x")).await.expect_err("a failure");
        let printed = format!("{error} {error:?} {model:?} {:?}", started.models);
        assert!(!printed.contains(KEY), "{printed}");
        assert!(
            upstream.requests()[0].header("authorization").is_some_and(|key| key.contains(KEY))
        );
    }
    let upstream = ScriptedServer::start([Scripted::chunks([format!("data: {told}\n\n")])]).await;
    let stream = model(&upstream, "chat").0.stream(&ask("x")).await.expect("a stream");
    let printed = format!("{stream:?}");
    assert!(!format!("{printed} {:?}", all(stream).await).contains(KEY));
}
