//! Streamed answers of each API, whole, cut and cancelled.

use plimsoll_engine::{ChatEvent, ChatUsage, ModelError, StopReason};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};

use crate::start::{all, ask, events, model};

/// Streams an answer and writes what came, a line each.
async fn pieces(api: &str, chunks: Vec<String>) -> Vec<String> {
    // One byte at a time is what no client may stumble over.
    let bytes: Vec<u8> = chunks.concat().into_bytes();
    let mut told = Vec::new();
    for script in [Scripted::chunks(chunks), Scripted::chunks(bytes.chunks(1).map(<[u8]>::to_vec))]
    {
        let upstream = ScriptedServer::start([script]).await;
        let stream = model(&upstream, api).0.stream(&ask("x")).await.expect("a stream");
        told.push(all(stream).await.into_iter().map(line).collect::<Vec<_>>());
    }
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

fn line(piece: Result<ChatEvent, ModelError>) -> String {
    match piece {
        Ok(ChatEvent::Text(text)) => format!("text {text}"),
        Ok(ChatEvent::Reasoning(text)) => format!("reasoning {text}"),
        Ok(ChatEvent::CallBegun { index, id, name }) => format!("begun {index} {id} {name}"),
        Ok(ChatEvent::CallArguments { index, text }) => format!("arguments {index} {text}"),
        Ok(ChatEvent::Call { index, call }) => {
            format!("call {index} {} {}", call.name, call.arguments)
        }
        Ok(ChatEvent::Done(reply)) => {
            let ChatUsage { input, cached, cache_written, output } = reply.usage;
            let shown = reply.message.shown().replace('\n', "; ");
            format!(
                "done {} {:?} {input} {cached} {cache_written} {output}: {shown}",
                reply.model, reply.stop_reason
            )
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn chat_completions() {
    let told = pieces(
        "chat",
        events(&[
            r#"{"model":"m-1","choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":"Grü"},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"ße"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"halt"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            "[DONE]",
        ]),
    )
    .await;
    assert_eq!(
        told,
        [
            "reasoning hm",
            "text Grü",
            "text ße",
            "begun 0 a look",
            "arguments 0 {\"p\":",
            "begun 1 b halt",
            "arguments 0 1}",
            "call 0 look {\"p\":1}",
            "call 1 halt {}",
            "done m-1 Calls 10 4 0 5: Grüße; look {\"p\":1}; halt {}"
        ]
    );
}

#[tokio::test]
async fn a_server_that_does_not_announce_the_end_or_number_its_calls() {
    let told = pieces(
        "chat",
        events(&[
            r#"{"model":"m","choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{"x":1}}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"b","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
        ]),
    )
    .await;
    assert_eq!(told.last().map(String::as_str), Some("done m Calls 0 0 0 0: ; a {\"x\":1}; b {}"));
}

#[tokio::test]
async fn responses() {
    let told = pieces(
        "responses",
        events(&[
            r#"{"type":"response.created","response":{"status":"in_progress","error":null}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"hm"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","content":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"delta":"Hi"}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"c","name":"look","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#,
            r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"look","arguments":"{}"}}"#,
            r#"{"type":"response.completed","response":{"model":"m-1","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":2}}}"#,
        ]),
    )
    .await;
    assert_eq!(
        told,
        [
            "reasoning hm",
            "text Hi",
            "begun 0 c look",
            "arguments 0 {}",
            "call 0 look {}",
            "done m-1 Calls 9 0 0 2: Hi; look {}"
        ]
    );
}

#[tokio::test]
async fn anthropic() {
    let told = pieces(
        "anthropic",
        events(&[
            r#"{"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"proof"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\": 1}"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":8}}"#,
            r#"{"type":"message_stop"}"#,
        ]),
    )
    .await;
    assert_eq!(
        told,
        [
            "reasoning hm",
            "text Hi",
            "begun 0 t look",
            "arguments 0 {\"p\": 1}",
            "call 0 look {\"p\": 1}",
            "done m-1 Calls 8 3 0 8: Hi; look {\"p\": 1}"
        ]
    );
}

/// A begun answer for each API: something was said, and nothing ends.
fn begun(api: &str) -> Vec<String> {
    events(match api {
        "chat" => &[r#"{"choices":[{"delta":{"content":"Hi"}}]}"#],
        "responses" => &[r#"{"type":"response.output_text.delta","delta":"Hi"}"#],
        _ => &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
        ],
    })
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_is_not_asked_for_again() {
    for api in ["chat", "responses", "anthropic"] {
        // Once without the end of the transfer, once with one that is proper and too early.
        for script in [Scripted::chunks(begun(api)).cut(), Scripted::chunks(begun(api))] {
            let upstream = ScriptedServer::start([script]).await;
            let stream = model(&upstream, api).0.stream(&ask("x")).await.expect("a stream");
            let pieces = all(stream).await;
            assert_eq!(pieces.len(), 2, "{api}");
            assert_eq!(pieces[0], Ok(ChatEvent::Text("Hi".into())));
            assert!(matches!(&pieces[1], Err(ModelError::Interrupted(_))), "{:?}", pieces[1]);
            assert_eq!(upstream.requests().len(), 1, "{api}");
        }
    }
}

#[tokio::test]
async fn a_failure_in_the_stream() {
    for (api, event) in [
        ("chat", r#"{"error":{"message":"full","code":502}}"#),
        (
            "responses",
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"full"}}}"#,
        ),
        ("anthropic", r#"{"type":"error","error":{"type":"overloaded_error","message":"full"}}"#),
    ] {
        let upstream = ScriptedServer::start([Scripted::chunks(events(&[event]))]).await;
        let stream = model(&upstream, api).0.stream(&ask("x")).await.expect("a stream");
        let first = all(stream).await.remove(0);
        assert!(matches!(&first, Err(ModelError::Unavailable { .. })), "{api} {first:?}");
        let late = begun(api).into_iter().chain(events(&[event]));
        let upstream = ScriptedServer::start([Scripted::chunks(late)]).await;
        let stream = model(&upstream, api).0.stream(&ask("x")).await.expect("a stream");
        let last = all(stream).await.pop();
        assert!(matches!(&last, Some(Err(ModelError::Interrupted(_)))), "{api} {last:?}");
        assert_eq!(upstream.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_failure_without_a_reason_is_one() {
    let event = r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#;
    let upstream = ScriptedServer::start([Scripted::chunks(events(&[event]))]).await;
    let stream = model(&upstream, "responses").0.stream(&ask("x")).await.expect("a stream");
    let told = all(stream).await;
    assert!(matches!(&told[..], [Err(ModelError::Unavailable { .. })]), "{told:?}");
}

#[tokio::test]
async fn a_stream_may_end_with_a_carriage_return() {
    let event =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\r\r";
    let upstream = ScriptedServer::start([Scripted::chunks([event])]).await;
    let stream = model(&upstream, "chat").0.stream(&ask("x")).await.expect("a stream");
    let told: Vec<String> = all(stream).await.into_iter().map(line).collect();
    assert_eq!(told, ["text Hi", "done  End 0 0 0 0: Hi"]);
}

#[tokio::test]
async fn a_call_is_told_whole_and_begins_with_what_it_began_with() {
    let told = pieces(
        "anthropic",
        events(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"look","input":{"p": 1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            r#"{"type":"message_stop"}"#,
        ]),
    )
    .await;
    let expected =
        ["begun 0 t look", "call 0 look {\"p\":1}", "done  Calls 0 0 0 0: ; look {\"p\":1}"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_is_no_event_of_the_api_is_unusable() {
    let upstream = ScriptedServer::start([Scripted::chunks(events(&["<html>"]))]).await;
    let stream = model(&upstream, "chat").0.stream(&ask("x")).await.expect("a stream");
    assert!(matches!(&all(stream).await[..], [Err(ModelError::Unusable(_))]));
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    let upstream = ScriptedServer::start([Scripted::chunks(begun("chat")).then_silence()]).await;
    let (model, _started) = model(&upstream, "chat");
    let mut stream = model.stream(&ask("x")).await.expect("a stream");
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::Text("Hi".into()))));
    {
        // A future that is dropped while it waits loses nothing and breaks nothing.
        let waiting = stream.next();
        tokio::pin!(waiting);
        assert!(futures_poll(waiting.as_mut()).await.is_pending());
    }
    drop(stream);
    upstream.closed(1).await;
}

#[tokio::test]
async fn dropping_a_call_closes_the_connection() {
    let upstream = ScriptedServer::start([Scripted::never()]).await;
    let (model, _started) = model(&upstream, "chat");
    let request = ask("x");
    tokio::select! {
        answer = model.complete(&request) => panic!("{answer:?}"),
        () = upstream.received(1) => {}
    }
    upstream.closed(1).await;
}

async fn futures_poll<F: Future>(mut future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context))).await
}

#[tokio::test]
async fn the_length_is_told() {
    let told = pieces(
        "anthropic",
        events(&[
            r#"{"type":"message_start","message":{"model":"m"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":8}}"#,
            r#"{"type":"message_stop"}"#,
        ]),
    )
    .await;
    assert_eq!(told, [format!("done m {:?} 0 0 0 8: ", StopReason::Length)]);
}
