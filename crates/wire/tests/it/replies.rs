//! Replies: streams and bodies of all wires from which our calls are withheld.

use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_core::{Block, Message, Role, ToolResult};
use plimsoll_wire::{
    Edits, Ending, Events, Forward, Progress, ProviderAnswer, Reply, Watch, Wire, WithheldCalls,
    check,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::bodies::{body, parse, wires};

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece {
    Thinking,
    Text,
    Own,
    Client,
}

use Piece::{Client, Own, Text, Thinking};

/// Answers of a provider to one request of a client: all but the last call only our tool.
fn rounds() -> impl Strategy<Value = Vec<Vec<Piece>>> {
    let head = any::<[bool; 2]>().prop_map(|[thinks, speaks]| {
        let pieces = [(thinks, Thinking), (speaks, Text)];
        pieces.into_iter().filter(|(there, _)| *there).map(|(_, piece)| piece).collect::<Vec<_>>()
    });
    let asks = (head.clone(), 1..3_usize).prop_map(|(mut head, calls)| {
        head.extend(vec![Own; calls]);
        head
    });
    let calls = prop::collection::vec(prop::sample::select(vec![Own, Client]), 0..4);
    let last = (head, calls).prop_map(|(mut head, calls)| {
        if calls.contains(&Client) {
            head.extend(calls);
        } else if !head.contains(&Text) {
            head.push(Text);
        }
        head
    });
    (prop::collection::vec(asks, 0..3), last).prop_map(|(mut rounds, last)| {
        rounds.push(last);
        rounds
    })
}

fn name(piece: Piece) -> &'static str {
    if piece == Own { "expand_ref" } else { "write" }
}

fn stop(wire: Wire, round: &[Piece]) -> &'static str {
    let calls = round.iter().any(|piece| matches!(piece, Own | Client));
    match (wire, calls) {
        (Wire::AnthropicMessages, true) => "tool_use",
        (Wire::AnthropicMessages, false) => "end_turn",
        (Wire::ChatCompletions, true) => "tool_calls",
        (Wire::ChatCompletions, false) => "stop",
        (Wire::Responses, _) => "completed",
        (Wire::Gemini, _) => "STOP",
    }
}

#[expect(clippy::too_many_lines, reason = "one table of four wires")]
/// Writes an answer as the provider streams it; `number` makes ids differ.
fn stream(wire: Wire, number: usize, round: &[Piece]) -> String {
    let mut out = String::new();
    let mut event = |name: &str, data: Value| {
        if !name.is_empty() {
            let _ = writeln!(out, "event: {name}");
        }
        let _ = write!(out, "data: {data}\n\n");
    };
    let (id, stop) = (format!("answer_{number}"), stop(wire, round));
    let call = |index: usize| format!("call_{number}_{index}");
    let said = format!("naïve {number} ");
    match wire {
        Wire::AnthropicMessages => {
            let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1});
            event(
                "message_start",
                json!({"type": "message_start", "message": {"id": id, "model": "m-1", "role": "assistant", "content": [], "usage": usage}}),
            );
            event("ping", json!({"type": "ping"}));
            for (index, piece) in round.iter().enumerate() {
                let (start, deltas) = match piece {
                    Thinking => (
                        json!({"type": "thinking", "thinking": "", "signature": ""}),
                        vec![
                            json!({"type": "thinking_delta", "thinking": said}),
                            json!({"type": "signature_delta", "signature": "c2ln"}),
                        ],
                    ),
                    Text => (
                        json!({"type": "text", "text": ""}),
                        vec![
                            json!({"type": "text_delta", "text": said}),
                            json!({"type": "text_delta", "text": "more"}),
                        ],
                    ),
                    _ => (
                        json!({"type": "tool_use", "id": call(index), "name": name(*piece), "input": {}}),
                        vec![
                            json!({"type": "input_json_delta", "partial_json": "{\"ref\": "}),
                            json!({"type": "input_json_delta", "partial_json": "\"r\"}"}),
                        ],
                    ),
                };
                event(
                    "content_block_start",
                    json!({"type": "content_block_start", "index": index, "content_block": start}),
                );
                for delta in deltas {
                    event(
                        "content_block_delta",
                        json!({"type": "content_block_delta", "index": index, "delta": delta}),
                    );
                }
                event("content_block_stop", json!({"type": "content_block_stop", "index": index}));
            }
            event(
                "message_delta",
                json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 10}, "context_management": cleared()}),
            );
            event("message_stop", json!({"type": "message_stop"}));
        }
        Wire::ChatCompletions => {
            let chunk = |delta: Value, reason: Value| json!({"id": id, "model": "m-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            event("", chunk(json!({"role": "assistant", "content": ""}), Value::Null));
            let mut calls = 0;
            for (index, piece) in round.iter().enumerate() {
                match piece {
                    Thinking => event("", chunk(json!({"reasoning_content": said}), Value::Null)),
                    Text => event("", chunk(json!({"content": said}), Value::Null)),
                    _ => {
                        let function = json!({"name": name(*piece), "arguments": ""});
                        event(
                            "",
                            chunk(
                                json!({"tool_calls": [{"index": calls, "id": call(index), "type": "function", "function": function}]}),
                                Value::Null,
                            ),
                        );
                        for part in ["{\"ref\": ", "\"r\"}"] {
                            event(
                                "",
                                chunk(
                                    json!({"tool_calls": [{"index": calls, "function": {"arguments": part}}]}),
                                    Value::Null,
                                ),
                            );
                        }
                        calls += 1;
                    }
                }
            }
            event("", chunk(json!({}), json!(stop)));
            event(
                "",
                json!({"id": id, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "prompt_tokens_details": {"cached_tokens": 90}}}),
            );
            out.push_str("data: [DONE]\n\n");
        }
        Wire::Responses => {
            let whole: Value = serde_json::from_str(&whole(wire, number, round)).unwrap();
            let items = whole["output"].as_array().unwrap().clone();
            let mut sequence = -1;
            let mut numbered = |kind: &str, mut data: Value| {
                sequence += 1;
                data["type"] = json!(kind);
                data["sequence_number"] = json!(sequence);
                event(kind, data);
            };
            numbered(
                "response.created",
                json!({"response": {"id": id, "model": "m-1", "status": "in_progress", "output": [], "tools": whole["tools"]}}),
            );
            for (index, item) in items.iter().enumerate() {
                numbered(
                    "response.output_item.added",
                    json!({"output_index": index, "item": item}),
                );
                if item["type"] == "function_call" {
                    numbered(
                        "response.function_call_arguments.delta",
                        json!({"output_index": index, "delta": item["arguments"]}),
                    );
                }
                if let Some(text) = item["content"][0]["text"].as_str() {
                    numbered(
                        "response.output_text.delta",
                        json!({"output_index": index, "content_index": 0, "delta": text}),
                    );
                }
                numbered("response.output_item.done", json!({"output_index": index, "item": item}));
            }
            numbered("response.completed", json!({"response": whole}));
        }
        Wire::Gemini => {
            let usage = json!({"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 10, "totalTokenCount": 110});
            let whole: Value = serde_json::from_str(&whole(wire, number, round)).unwrap();
            let parts = whole["candidates"][0]["content"]["parts"].as_array().unwrap().clone();
            let count = parts.len();
            for (index, part) in parts.into_iter().enumerate() {
                let mut candidate =
                    json!({"content": {"role": "model", "parts": [part]}, "index": 0});
                if index + 1 == count {
                    candidate["finishReason"] = json!(stop);
                }
                event(
                    "",
                    json!({"candidates": [candidate], "usageMetadata": usage, "responseId": id}),
                );
            }
        }
    }
    out
}

/// Writes an answer as a body.
fn whole(wire: Wire, number: usize, round: &[Piece]) -> String {
    let (id, stop) = (format!("answer_{number}"), stop(wire, round));
    let said = format!("naïve {number} ");
    let pieces = round.iter().enumerate();
    let each = |make: &dyn Fn(Piece, String) -> Value| -> Vec<Value> {
        pieces
            .clone()
            .map(|(index, piece)| make(*piece, format!("call_{number}_{index}")))
            .collect()
    };
    let body = match wire {
        Wire::AnthropicMessages => {
            let content = each(&|piece, id| match piece {
                Thinking => json!({"type": "thinking", "thinking": said, "signature": "c2ln"}),
                Text => json!({"type": "text", "text": format!("{said}more")}),
                _ => {
                    json!({"type": "tool_use", "id": id, "name": name(piece), "input": {"ref": "r"}})
                }
            });
            json!({"id": id, "type": "message", "role": "assistant", "model": "m-1", "content": content, "stop_reason": stop,
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 10},
                "context_management": cleared()})
        }
        Wire::ChatCompletions => {
            let mut message = json!({"role": "assistant", "content": null});
            let mut calls = Vec::new();
            for (index, piece) in pieces {
                match piece {
                    Thinking => message["reasoning_content"] = json!(said),
                    Text => message["content"] = json!(said),
                    _ => calls
                        .push(json!({"id": format!("call_{number}_{index}"), "type": "function",
                        "function": {"name": name(*piece), "arguments": "{\"ref\": \"r\"}"}})),
                }
            }
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            json!({"id": id, "model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": stop}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "prompt_tokens_details": {"cached_tokens": 90}}})
        }
        Wire::Responses => {
            let output = each(&|piece, id| match piece {
                Thinking => {
                    json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [], "encrypted_content": "gAAA"})
                }
                Text => {
                    json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": said, "annotations": []}]})
                }
                _ => {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name(piece), "arguments": "{\"ref\": \"r\"}", "status": "completed"})
                }
            });
            let tool = |name: &str| json!({"type": "function", "name": name});
            json!({"id": id, "object": "response", "model": "m-1", "status": "completed", "output": output, "error": null,
                "tools": [tool("write"), tool("expand_ref")], "incomplete_details": null,
                "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 10, "total_tokens": 110}})
        }
        Wire::Gemini => {
            let parts = each(&|piece, _| match piece {
                Thinking => json!({"text": said, "thought": true}),
                Text => json!({"text": said}),
                _ => {
                    json!({"functionCall": {"name": name(piece), "args": {"ref": "r"}}, "thoughtSignature": "c2ln"})
                }
            });
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": stop, "index": 0}], "responseId": id,
                "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 10, "totalTokenCount": 110}})
        }
    };
    body.to_string()
}

fn own() -> [String; 1] {
    ["expand_ref".to_owned()]
}

fn results(reply: &Reply) -> Vec<ToolResult> {
    let calls = reply.own_calls().into_iter();
    let result = |call_id| ToolResult {
        call_id,
        text: "the \"original\"".into(),
        images: Vec::new(),
        is_error: false,
    };
    calls.map(|call| result(call.id)).collect()
}

fn push(reply: &mut Reply, bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<u8> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut out = Vec::new();
    for pair in cuts.windows(2) {
        let Forward { now, last } = reply.push(&bytes[pair[0]..pair[1]]);
        out.extend(now);
        out.extend(last);
    }
    let Forward { now, last } = reply.end();
    assert!(now.is_empty() && last.is_empty());
    out
}

/// Reads what a client was sent, as a client does.
fn seen(wire: Wire, bytes: &[u8]) -> ProviderAnswer {
    let (mut events, mut watch) = (Events::default(), Watch::new(wire));
    events.push(bytes);
    while let Some(event) = events.next_event() {
        watch.see(&event);
    }
    watch.answer().clone()
}

fn data(bytes: &[u8]) -> Vec<Value> {
    let mut events = Events::default();
    events.push(bytes);
    let data = std::iter::from_fn(|| events.next_event()).filter_map(|event| event.data);
    data.filter(|data| data != "[DONE]").map(|data| serde_json::from_str(&data).unwrap()).collect()
}

/// What a client must see: all pieces but ours, under the ids of the provider.
fn expected(wire: Wire, rounds: &[Vec<Piece>]) -> Vec<Piece> {
    let all = rounds.iter().flatten().copied().filter(|piece| *piece != Own);
    let mut all: Vec<Piece> = all.collect();
    if matches!(wire, Wire::ChatCompletions) {
        all.sort_by_key(|piece| [Thinking, Text, Client].iter().position(|one| one == piece));
        all.dedup_by(|one, other| one == other && *one != Client);
    }
    if wire == Wire::Gemini {
        all.dedup_by(|one, other| one == other && *one != Client);
    }
    all
}

fn pieces(answer: &ProviderAnswer) -> Vec<Piece> {
    let blocks = answer.message.iter().flat_map(|message| &message.blocks);
    blocks
        .map(|block| match block {
            Block::Thinking(_) => Thinking,
            Block::Opaque(opaque) if &*opaque.kind == "reasoning" => Thinking,
            Block::Text(_) => Text,
            Block::ToolCall(call) if &*call.name == "expand_ref" => Own,
            Block::ToolCall(_) => Client,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// What Anthropic tells of its context editing.
fn cleared() -> Value {
    let edit = |count: u64| json!({"type": "clear_tool_uses_20250919", "cleared_tool_uses": count, "cleared_input_tokens": 900});
    json!({"applied_edits": [edit(3), {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1}, edit(2)]})
}

fn assert_coherent(wire: Wire, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(!text.contains("expand_ref"), "{text}");
    let data = data(bytes);
    let count = |kind: &str| data.iter().filter(|one| one["type"] == kind).count();
    match wire {
        Wire::AnthropicMessages => {
            assert_eq!(
                (count("message_start"), count("message_delta"), count("message_stop")),
                (1, 1, 1)
            );
            let starts = data.iter().filter(|one| one["type"] == "content_block_start");
            for (number, start) in starts.enumerate() {
                assert_eq!(start["index"], number);
            }
        }
        Wire::ChatCompletions => {
            assert!(data.iter().all(|one| one["id"] == "answer_0"));
            let deltas = || data.iter().map(|one| &one["choices"][0]["delta"]);
            assert_eq!(deltas().filter(|delta| delta["role"].is_string()).count(), 1);
            let calls = deltas().filter_map(|delta| delta["tool_calls"].get(0));
            for (number, call) in calls.filter(|call| call["id"].is_string()).enumerate() {
                assert_eq!(call["index"], number);
            }
            assert_eq!(text.matches("[DONE]").count(), 1);
        }
        Wire::Responses => {
            for (number, one) in data.iter().enumerate() {
                assert_eq!(one["sequence_number"], number);
            }
            assert_eq!((count("response.created"), count("response.completed")), (1, 1));
            let done: Vec<&Value> =
                data.iter().filter(|one| one["type"] == "response.output_item.done").collect();
            let last = &data.last().unwrap()["response"];
            assert_eq!(last["id"], "answer_0");
            let output = last["output"].as_array().unwrap();
            assert_eq!(output.len(), done.len());
            for (number, one) in done.iter().enumerate() {
                assert_eq!((&one["output_index"], &one["item"]), (&json!(number), &output[number]));
            }
        }
        Wire::Gemini => {
            assert!(data.iter().all(|one| one["responseId"] == "answer_0"));
            let ends = data.iter().filter(|one| one["candidates"][0]["finishReason"].is_string());
            assert_eq!(ends.count(), 1);
        }
    }
}

/// What a client answers to the calls that it was handed, or says where it has none.
fn client_goes_on(wire: Wire, request: &str, answer: &ProviderAnswer) -> String {
    let mut body: Value =
        serde_json::from_str(&request.replace("123456789012345678901234567890", "1")).unwrap();
    let key = match wire {
        Wire::AnthropicMessages | Wire::ChatCompletions => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    };
    let list = body[key].as_array_mut().unwrap();
    list.extend(answer.items.iter().map(|item| serde_json::from_str::<Value>(item).unwrap()));
    let ids: Vec<String> = answer.calls().map(|call| call.id.to_string()).collect();
    let told = ids.iter().map(|id| match wire {
        Wire::AnthropicMessages => {
            json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
        }
        Wire::ChatCompletions => json!({"role": "tool", "tool_call_id": id, "content": "ok"}),
        Wire::Responses => json!({"type": "function_call_output", "call_id": id, "output": "ok"}),
        Wire::Gemini => {
            json!({"functionResponse": {"name": "write", "response": {"output": "ok"}}})
        }
    });
    let told: Vec<Value> = told.collect();
    match (wire, told.is_empty()) {
        (Wire::Gemini, true) => list.push(json!({"role": "user", "parts": [{"text": "and"}]})),
        (Wire::Gemini, false) => list.push(json!({"role": "user", "parts": told})),
        (_, true) => list.push(json!({"role": "user", "content": "and"})),
        (Wire::AnthropicMessages, false) => list.push(json!({"role": "user", "content": told})),
        (_, false) => list.extend(told),
    }
    body.to_string()
}

/// Goes through all rounds; returns what the client was sent, and the reply as it stands at the end.
fn played(
    wire: Wire,
    rounds: &[Vec<Piece>],
    cuts: &[prop::sample::Index],
    request: &str,
) -> (Vec<u8>, Reply) {
    let (out, reply, _) = asked_further(wire, rounds, cuts, request);
    (out, reply)
}

/// Goes through all rounds; returns also what the provider was sent behind the client's request.
fn asked_further(
    wire: Wire,
    rounds: &[Vec<Piece>],
    cuts: &[prop::sample::Index],
    request: &str,
) -> (Vec<u8>, Reply, String) {
    let mut reply = Reply::new(wire, own());
    let mut out = Vec::new();
    let mut behind = String::new();
    for (number, round) in rounds.iter().enumerate() {
        let bytes = stream(wire, number, round);
        out.extend(push(&mut reply, bytes.as_bytes(), cuts));
        if number + 1 < rounds.len() {
            assert_eq!(reply.progress(), Progress::Asks, "{round:?}");
            let continuations = reply.answered(&results(&reply));
            assert_eq!(continuations.len(), number + 1);
            let edits = Edits { continuations, ..Edits::default() };
            let asked = parse(wire, request.as_bytes()).rewrite(&edits).unwrap();
            assert_eq!(check(wire, &asked), [], "{}", String::from_utf8_lossy(&asked));
            behind = added(request, &asked);
        }
    }
    assert_eq!(reply.progress(), Progress::Ended);
    (out, reply, behind)
}

/// Returns what was put into a request, where it was put in at one place.
fn added(request: &str, rewritten: &[u8]) -> String {
    let at = request.bytes().zip(rewritten).take_while(|(one, other)| one == *other).count();
    let length = rewritten.len() - request.len();
    String::from_utf8(rewritten[at..at + length].to_vec()).unwrap()
}

proptest! {
    #[test]
    fn without_tools_of_ours_every_byte_passes(wire in wires(), rounds in rounds(), cuts in any::<[prop::sample::Index; 9]>()) {
        let bytes = stream(wire, 0, &rounds[0]).into_bytes();
        let mut reply = Reply::new(wire, []);
        prop_assert_eq!(push(&mut reply, &bytes, &cuts), bytes);
        prop_assert_eq!(reply.progress(), Progress::Ended);
    }

    #[test]
    fn until_ours_is_called_every_byte_passes(wire in wires(), rounds in rounds(), cuts in any::<[prop::sample::Index; 9]>()) {
        let mut round = rounds.last().unwrap().clone();
        round.retain(|piece| *piece != Own);
        let mut bytes = stream(wire, 0, &round);
        if wire == Wire::Responses {
            // The provider repeats the tools, and ours are never seen.
            bytes = bytes.replace(r#",{"type":"function","name":"expand_ref"}"#, "");
        }
        let mut reply = Reply::new(wire, own());
        prop_assert_eq!(push(&mut reply, bytes.as_bytes(), &cuts), bytes.as_bytes());
    }

    #[test]
    fn the_pieces_of_a_stream_add_up_to_the_answer(wire in wires(), rounds in rounds()) {
        use plimsoll_wire::AnswerPiece;
        for (number, round) in rounds.iter().enumerate() {
            let bytes = stream(wire, number, round);
            let (mut events, mut watch) = (Events::default(), Watch::in_pieces(wire));
            events.push(bytes.as_bytes());
            let (mut text, mut thoughts) = (String::new(), String::new());
            let mut calls: Vec<(Arc<str>, Arc<str>, String)> = Vec::new();
            while let Some(event) = events.next_event() {
                watch.see(&event);
                for piece in watch.pieces() {
                    match piece {
                        AnswerPiece::Text(more) => text += &more,
                        AnswerPiece::Reasoning(more) => thoughts += &more,
                        AnswerPiece::CallBegun { index, id, name } => {
                            prop_assert_eq!(index as usize, calls.len());
                            calls.push((id, name, String::new()));
                        }
                        AnswerPiece::CallArguments { index, text } => calls[index as usize].2 += &text,
                        AnswerPiece::Call { index, call } => {
                            let (id, name, arguments) = &calls[index as usize];
                            prop_assert_eq!((&call.id, &call.name), (id, name));
                            prop_assert_eq!(&*call.arguments, arguments);
                        }
                    }
                }
            }
            let answer = watch.answer();
            prop_assert_eq!(text, answer.text());
            let blocks = answer.blocks(wire);
            prop_assert_eq!(&blocks, &answer.message.as_ref().unwrap().blocks);
            if wire != Wire::Responses {
                let told = blocks.iter().filter_map(|block| match block {
                    Block::Thinking(thinking) => Some(&*thinking.text),
                    _ => None,
                });
                prop_assert_eq!(thoughts, told.collect::<String>());
            }
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let calls: Vec<_> =
                calls.into_iter().map(|(id, name, text)| (id, name, json(&text))).collect();
            let told: Vec<_> = answer
                .calls()
                .map(|call| (call.id.clone(), call.name.clone(), json(&call.arguments)))
                .collect();
            prop_assert_eq!(calls, told);
        }
    }

    #[test]
    fn a_stream_and_a_body_say_the_same(wire in wires(), rounds in rounds()) {
        for (number, round) in rounds.iter().enumerate() {
            let streamed = seen(wire, stream(wire, number, round).as_bytes());
            let mut whole = ProviderAnswer::of_body(wire, whole(wire, number, round).as_bytes());
            prop_assert_eq!(&streamed.ending, &Ending::Complete);
            whole.model.clone_from(&streamed.model);
            if wire == Wire::ChatCompletions {
                whole.items.clone_from(&streamed.items);
            }
            prop_assert_eq!(&streamed.message, &whole.message);
            prop_assert_eq!(streamed.usage, whole.usage);
            prop_assert_eq!(&streamed.stop, &whole.stop);
            let usage = streamed.usage.unwrap();
            prop_assert_eq!((usage.tokens.prompt_tokens, usage.tokens.cached_tokens, usage.tokens.output_tokens), (100, 90, 10));
            let cleared = if wire == Wire::AnthropicMessages { 5 } else { 0 };
            prop_assert_eq!(usage.cleared_tool_uses, cleared);
        }
    }

    #[test]
    fn the_client_sees_one_answer_without_our_calls(
        wire in wires(),
        rounds in rounds(),
        cuts in any::<[prop::sample::Index; 9]>(),
    ) {
        let request = body(wire, &[]);
        let (sent, reply, behind) = asked_further(wire, &rounds, &cuts, &request);
        let (same, _) = played(wire, &rounds, &[], &request);
        prop_assert_eq!(&sent, &same, "chunks make a difference");
        assert_coherent(wire, &sent);
        let answer = seen(wire, &sent);
        prop_assert_eq!(&answer.ending, &Ending::Complete);
        prop_assert_eq!(pieces(&answer), expected(wire, &rounds));
        prop_assert_eq!(answer.usage.unwrap().tokens.output_tokens, 10 * rounds.len() as u64);
        prop_assert_eq!(answer.usage.unwrap().tokens.prompt_tokens, 100);

        // The next request holds the calls again, and is sound with and without them.
        let next = client_goes_on(wire, &request, &answer);
        if wire != Wire::Responses {
            prop_assert_eq!(check(wire, next.as_bytes()), []);
        }
        let Some(withheld) = reply.withheld(&results(&reply)) else {
            prop_assert!(!rounds.iter().flatten().any(|piece| *piece == Own));
            return Ok(());
        };
        let edits = Edits { restore: vec![withheld], ..Edits::default() };
        let rewritten = parse(wire, next.as_bytes()).rewritten(&edits).unwrap();
        let restored = rewritten.body;
        let text = String::from_utf8_lossy(&restored);
        prop_assert_eq!(check(wire, &restored), [], "{}", text);
        prop_assert_eq!(rewritten.unplaced, [] as [usize; 0], "{}", text);
        // The provider's cache has all that it was asked further with, and finds it again.
        prop_assert!(text.contains(&behind), "{behind} is not in {text}");
        let again = parse(wire, &restored);
        let calls = again.messages().iter().flat_map(|message| message.calls());
        let found = calls.filter(|call| &*call.name == "expand_ref").count();
        let all = rounds.iter().flatten().filter(|piece| **piece == Own).count();
        prop_assert_eq!(found, all, "{}", text);
        let results = again.messages().iter().filter(|message| message.role == Role::Tool);
        prop_assert_eq!(results.filter(|message| message.shown() == "the \"original\"").count(), found);
        let parts: Vec<Piece> = again.messages().iter().filter(|one| one.role == Role::Assistant)
            .flat_map(|one| pieces(&ProviderAnswer { message: Some(one.clone()), ..answer.clone() })).collect();
        let mut said = rounds.concat();
        if wire == Wire::Gemini {
            // Without ids, calls of ours beside the client's may stand before others of the same answer.
            said.sort_by_key(|piece| *piece as u8);
            let mut parts = parts.clone();
            parts.sort_by_key(|piece| *piece as u8);
            prop_assert_eq!(parts, said);
        } else {
            prop_assert_eq!(parts, said);
        }
    }

    #[test]
    fn bodies_are_one_answer_too(wire in wires(), rounds in rounds()) {
        let request = body(wire, &[]);
        let mut reply = Reply::new(wire, own());
        let mut got = None;
        for (number, round) in rounds.iter().enumerate() {
            let bytes = whole(wire, number, round);
            got = reply.body(bytes.as_bytes());
            if number + 1 < rounds.len() {
                prop_assert!(got.is_none());
                let edits = Edits { continuations: reply.answered(&results(&reply)), ..Edits::default() };
                let asked = parse(wire, request.as_bytes()).rewrite(&edits).unwrap();
                prop_assert_eq!(check(wire, &asked), []);
            } else if rounds.len() == 1 && !round.contains(&Own) && wire != Wire::Responses {
                prop_assert_eq!(got.as_deref(), Some(bytes.as_bytes()));
            }
        }
        let got = got.unwrap();
        prop_assert!(!String::from_utf8_lossy(&got).contains("expand_ref"));
        let answer = ProviderAnswer::of_body(wire, &got);
        let mut expected = expected(wire, &rounds);
        if wire == Wire::ChatCompletions && !rounds.last().unwrap().contains(&Thinking) {
            // What was thought before is the provider's field of another answer.
            expected.retain(|piece| *piece != Thinking);
        }
        prop_assert_eq!(pieces(&answer), expected);
        prop_assert_eq!(answer.usage.unwrap().tokens.output_tokens, 10 * rounds.len() as u64);
        if rounds.iter().flatten().any(|piece| *piece == Own) {
            let next = client_goes_on(wire, &request, &answer);
            let edits = Edits { restore: reply.withheld(&results(&reply)).into_iter().collect(), ..Edits::default() };
            let rewritten = parse(wire, next.as_bytes()).rewritten(&edits).unwrap();
            prop_assert_eq!(check(wire, &rewritten.body), []);
            prop_assert_eq!(rewritten.unplaced, [] as [usize; 0]);
        }
    }

    #[test]
    fn a_cut_stays_a_cut(wire in wires(), rounds in rounds(), at in any::<prop::sample::Index>()) {
        let bytes = stream(wire, 0, rounds.last().unwrap());
        let events: Vec<&str> = bytes.split_inclusive("\n\n").collect();
        let end = events.len() - if wire == Wire::ChatCompletions { 3 } else { 1 };
        let limit: usize = events[..end].iter().map(|event| event.len()).sum();
        let cut = at.index(limit + 1);
        let mut reply = Reply::new(wire, own());
        let mut forward = reply.push(&bytes.as_bytes()[..cut]);
        forward.now.extend(reply.end().now);
        prop_assert_eq!(reply.progress(), Progress::Open);
        prop_assert!(forward.last.is_empty());
        prop_assert_eq!(seen(wire, &forward.now).ending, Ending::Cut);
    }

    #[test]
    fn arbitrary_streams_never_panic(wire in wires(), rounds in rounds(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8)) {
        let mut bytes = stream(wire, 0, &rounds[0]).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut reply = Reply::new(wire, own());
        reply.push(&bytes);
        reply.end();
        let given = results(&reply);
        let _ = reply.withheld(&given);
        if reply.progress() == Progress::Asks {
            reply.answered(&given);
            reply.push(&bytes);
        }
        let _ = ProviderAnswer::of_body(wire, &bytes);
        let _ = Reply::new(wire, own()).body(&bytes);
    }
}

#[test]
fn the_end_is_held_apart() {
    for wire in Wire::ALL {
        let bytes = stream(wire, 0, &[Text]);
        let mut reply = Reply::new(wire, []);
        let forward = reply.push(bytes.as_bytes());
        let end = bytes.split_inclusive("\n\n").last().unwrap();
        assert_eq!(String::from_utf8(forward.last).unwrap(), end, "{wire}");
    }
}

#[test]
fn an_answer_cut_short_in_our_call_is_not_asked_further() {
    let bytes = stream(Wire::AnthropicMessages, 0, &[Text, Own])
        .replace("tool_use\"},\"usage", "max_tokens\"},\"usage");
    let mut reply = Reply::new(Wire::AnthropicMessages, own());
    let sent = push(&mut reply, bytes.as_bytes(), &[]);
    assert_eq!(reply.progress(), Progress::Ended);
    assert_eq!(pieces(&seen(Wire::AnthropicMessages, &sent)), [Text]);
    assert_eq!(reply.withheld(&[]), None);
}

#[test]
fn errors_of_the_provider_pass_and_are_seen() {
    let cases = [
        (
            Wire::AnthropicMessages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        ),
        (Wire::ChatCompletions, "data: {\"error\":{\"message\":\"busy\"}}\n\n"),
        (
            Wire::Responses,
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"busy\"}}}\n\n",
        ),
        (Wire::Gemini, "data: {\"error\":{\"code\":503,\"message\":\"busy\"}}\n\n"),
    ];
    for (wire, event) in cases {
        let mut reply = Reply::new(wire, own());
        let forward = reply.push(event.as_bytes());
        assert_eq!(forward.now, event.as_bytes());
        assert_eq!(reply.progress(), Progress::Failed);
        let Ending::Failed(failure) = &reply.answer().ending else { panic!("{wire}") };
        assert_eq!(failure.message, "busy");
    }
}

#[test]
fn unknown_deltas_pass_and_citations_are_kept() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}"#;
    let citation = r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"at":1}}}"#;
    let unknown = r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","x":1}}"#;
    let text =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let bytes = format!("data: {start}\n\ndata: {citation}\n\ndata: {unknown}\n\ndata: {text}\n\n");
    let mut reply = Reply::new(Wire::AnthropicMessages, own());
    assert_eq!(reply.push(bytes.as_bytes()).now, bytes.as_bytes());
    let expected =
        r#"{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"at":1}]}]}"#;
    assert_eq!(reply.answer().items, [Arc::from(expected)]);
}

/// A reply of two rounds on Anthropic's wire: ours alone, then ours beside the client's.
fn mixed() -> (ProviderAnswer, Reply) {
    let rounds = [vec![Thinking, Own], vec![Text, Own, Client]];
    let request = body(Wire::AnthropicMessages, &[]);
    let (sent, reply) = played(Wire::AnthropicMessages, &rounds, &[], &request);
    (seen(Wire::AnthropicMessages, &sent), reply)
}

#[test]
fn what_was_withheld_stands_where_it_stood() {
    let (answer, reply) = mixed();
    assert_eq!(pieces(&answer), [Thinking, Text, Client]);
    let wire = Wire::AnthropicMessages;
    let next = client_goes_on(wire, r#"{"messages":[{"role":"user","content":"go"}]}"#, &answer);
    let restore = reply.withheld(&results(&reply)).into_iter().collect();
    let restored =
        parse(wire, next.as_bytes()).rewrite(&Edits { restore, ..Edits::default() }).unwrap();
    let value: Value = serde_json::from_slice(&restored).unwrap();
    let kinds: Vec<String> = value["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let content = message["content"].as_array().into_iter().flatten();
            let blocks = content.map(|block| {
                let which = block["name"].as_str().or(block["tool_use_id"].as_str());
                format!(" {}:{}", block["type"].as_str().unwrap(), which.unwrap_or("-"))
            });
            format!("{}{}", message["role"].as_str().unwrap(), blocks.collect::<String>())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "user",
            "assistant thinking:- tool_use:expand_ref",
            "user tool_result:call_0_1",
            "assistant text:- tool_use:expand_ref tool_use:write",
            "user tool_result:call_1_1 tool_result:call_1_2",
        ]
    );
}

#[test]
fn a_history_without_the_answer_stays_as_it_is() {
    let (_, reply) = mixed();
    let restore: Vec<_> = reply.withheld(&results(&reply)).into_iter().collect();
    let edits = Edits { restore, ..Edits::default() };
    for wire in Wire::ALL {
        let body = body(wire, &[]);
        let rewritten = parse(wire, body.as_bytes()).rewritten(&edits).unwrap();
        assert_eq!(rewritten.body, body.as_bytes());
        assert_eq!(rewritten.unplaced, [0], "and that is said");
    }
}

/// What a client of a wire does to an answer before it sends it back.
type Change<'a> = (Wire, &'a dyn Fn(&mut Value));

#[test]
fn earlier_answers_are_put_back_whatever_the_client_made_of_them() {
    let rounds = [vec![Thinking, Text, Own], vec![Text, Own], vec![Thinking, Text, Client]];
    let join = |message: &mut Value| {
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let is_text = |part: &&Value| part["type"] == "text";
        let texts = parts.iter().filter(is_text).map(|part| part["text"].as_str().unwrap().trim());
        let mut joined =
            vec![json!({"type": "text", "text": texts.collect::<Vec<_>>().join("\n")})];
        joined.extend(parts.iter().filter(|part| part["type"] == "tool_use").cloned());
        message["content"] = json!(joined);
    };
    let split = |message: &mut Value| {
        let text = message["content"].as_str().unwrap().to_owned();
        let parts = [&text[..5], &text[5..]].map(|part| json!({"type": "text", "text": part}));
        message["content"] = json!(parts);
    };
    let trim = |message: &mut Value| {
        message["content"] = json!(message["content"].as_str().unwrap().trim());
        message.as_object_mut().unwrap().remove("reasoning_content");
    };
    let forget = |item: &mut Value| {
        for key in ["id", "status"] {
            item.as_object_mut().unwrap().remove(key);
        }
    };
    let as_string = |item: &mut Value| {
        item["content"] = item["content"][0]["text"].clone();
    };
    let unthink = |message: &mut Value| {
        message["content"].as_array_mut().unwrap().retain(|block| block["type"] != "thinking");
    };
    let cases: [Change<'_>; 6] = [
        (Wire::AnthropicMessages, &join),
        (Wire::AnthropicMessages, &unthink),
        (Wire::ChatCompletions, &split),
        (Wire::ChatCompletions, &trim),
        (Wire::Responses, &forget),
        (Wire::Responses, &as_string),
    ];
    for (wire, change) in cases {
        let key = if wire == Wire::Responses { "input" } else { "messages" };
        let request = format!(r#"{{"{key}":[{{"role":"user","content":"go"}}]}}"#);
        let request = &*request;
        let (sent, reply, behind) = asked_further(wire, &rounds, &[], request);
        let next = client_goes_on(wire, request, &seen(wire, &sent));
        let mut next: Value = serde_json::from_str(&next).unwrap();
        if wire == Wire::Responses {
            let items = next["input"].as_array_mut().unwrap();
            items.iter_mut().filter(|item| item["type"] == "message").for_each(change);
        } else {
            change(&mut next["messages"][1]);
        }
        let restore = reply.withheld(&results(&reply)).into_iter().collect();
        let edits = Edits { restore, ..Edits::default() };
        let rewritten = parse(wire, next.to_string().as_bytes()).rewritten(&edits).unwrap();
        let text = String::from_utf8(rewritten.body).unwrap();
        assert!(rewritten.unplaced.is_empty(), "{text}");
        assert_eq!(check(wire, text.as_bytes()), [], "{text}");
        assert!(text.contains(&behind), "{wire}: {behind} is not in {text}");
        assert_eq!(text.matches("naïve 0").count(), behind.matches("naïve 0").count(), "{text}");
        assert_eq!(text.matches("naïve 1").count(), 1, "{text}");
    }
}

#[test]
fn an_answer_is_found_where_it_was_and_not_where_another_says_the_same() {
    for wire in [Wire::AnthropicMessages, Wire::ChatCompletions] {
        let request = r#"{"messages":[{"role":"user","content":"go"}]}"#;
        let (sent, reply) = played(wire, &[vec![Own], vec![Text]], &[], request);
        let mut next: Value =
            serde_json::from_str(&client_goes_on(wire, request, &seen(wire, &sent))).unwrap();
        let again = next["messages"][1].clone();
        let list = next["messages"].as_array_mut().unwrap();
        list.extend([again, json!({"role": "user", "content": "once more"})]);
        let restore: Vec<_> = reply.withheld(&results(&reply)).into_iter().collect();
        for (at, place) in [(1, 1), (2, 3), (9, 3)] {
            let restore = vec![WithheldCalls { at, ..restore[0].clone() }];
            let edits = Edits { restore, ..Edits::default() };
            let restored = parse(wire, next.to_string().as_bytes()).rewrite(&edits).unwrap();
            let restored: Value = serde_json::from_slice(&restored).unwrap();
            assert!(restored["messages"][place].to_string().contains("expand_ref"), "{restored}");
        }
        // Answered twice, as when a client asks the same again: the later answer is what it has.
        let restore = vec![restore[0].clone(), restore[0].clone()];
        let edits = Edits { restore, ..Edits::default() };
        let rewritten = parse(wire, next.to_string().as_bytes()).rewritten(&edits).unwrap();
        assert_eq!(rewritten.unplaced, [0]);
        assert_eq!(check(wire, &rewritten.body), []);
    }
}

#[test]
fn a_text_that_has_another_form_is_no_earlier_answer() {
    let wire = Wire::ChatCompletions;
    let request = r#"{"messages":[{"role":"user","content":"go"}]}"#;
    let (sent, reply) = played(wire, &[vec![Text, Own], vec![Text]], &[], request);
    let next = client_goes_on(wire, request, &seen(wire, &sent));
    let restore: Vec<_> = reply.withheld(&results(&reply)).into_iter().collect();
    let form = Arc::new(Message::text(Role::Assistant, "short"));
    let edits = Edits { restore, messages: vec![(1, Some(form))], ..Edits::default() };
    let rewritten = parse(wire, next.as_bytes()).rewritten(&edits).unwrap();
    assert_eq!(rewritten.unplaced, [0]);
    let text = String::from_utf8(rewritten.body).unwrap();
    assert!(text.contains("short") && !text.contains("naïve") && !text.contains("expand_ref"));
}

#[test]
fn reasoning_that_nobody_kept_is_not_sent_back() {
    let wire = Wire::Responses;
    let bytes = whole(wire, 0, &[Thinking, Own]).replace(r#","encrypted_content":"gAAA""#, "");
    let mut reply = Reply::new(wire, own());
    assert_eq!(reply.body(bytes.as_bytes()), None);
    let given = results(&reply);
    let edits = Edits { continuations: reply.answered(&given), ..Edits::default() };
    for (store, count) in [("false", 0), ("true", 1)] {
        let body = format!(r#"{{"input":"hi","store":{store}}}"#);
        let asked = parse(wire, body.as_bytes()).rewrite(&edits).unwrap();
        assert_eq!(check(wire, &asked), []);
        let text = String::from_utf8(asked).unwrap();
        assert_eq!(text.matches(r#""type":"reasoning""#).count(), count);
        assert!(text.starts_with(r#"{"input":[{"role":"user","content":"hi"},"#), "{text}");
    }
}
