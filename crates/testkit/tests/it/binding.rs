//! Thinking that is bound, and contexts that the provider edits.

use plimsoll_testkit::provider::{BINDING_BETA, Binding, EDITING_BETA, Rules, ScriptedProvider};
use serde_json::{Value, json};

use crate::talk::{BOUND, FREE, MESSAGES, first, go_on, message, played, post, post_raw, start};

/// What the error says, whatever stands around it.
const BOUND_ELSEWHERE: &str =
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";

type Change = fn(&mut Value);

/// Plays three turns, so that the blocks stand in messages 1, 3 and 5, and returns the next request.
async fn three(model: &str) -> (ScriptedProvider, Value) {
    let provider = start(9, Rules::default()).await;
    let body = played(&provider, first(model), 3).await;
    (provider, body)
}

fn remove_thinking(body: &mut Value, index: usize) {
    let blocks = body["messages"][index]["content"].as_array_mut().expect("blocks");
    assert_eq!(blocks.remove(0)["type"], "thinking");
}

fn with_drop(mut body: Value) -> Value {
    body["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    body
}

#[tokio::test]
async fn what_only_grows_or_moves_its_marks_fits() {
    let (provider, body) = three(BOUND).await;
    let mut marked = body.clone();
    marked["system"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    marked["tools"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    marked["messages"][0]["content"] =
        json!([{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]);
    let mut other_settings = body.clone();
    other_settings["max_tokens"] = json!(7);
    other_settings["tool_choice"] = json!({"type": "auto"});
    let mut deferred = body.clone();
    let later = json!({"name": "later", "defer_loading": true, "input_schema": {"type": "object"}});
    deferred["tools"].as_array_mut().expect("a list").push(later);
    for body in [body, marked, other_settings, deferred] {
        let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["content"][0]["type"], "thinking");
    }
}

#[tokio::test]
async fn blocks_may_be_left_out_at_the_beginning_at_the_end_or_all() {
    for left_out in [&[1][..], &[1, 3], &[5], &[3, 5], &[1, 3, 5]] {
        let (provider, mut body) = three(BOUND).await;
        for &index in left_out {
            remove_thinking(&mut body, index);
        }
        let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 200, "{left_out:?}: {answer}");
    }
}

#[tokio::test]
async fn a_gap_and_a_block_that_came_back_are_refused() {
    let (provider, body) = three(BOUND).await;
    let mut gap = body.clone();
    remove_thinking(&mut gap, 3);
    let (status, answer) = post(&provider, MESSAGES, &[], &gap).await;
    assert_eq!(status, 400, "{answer}");
    assert!(message(&answer).starts_with("messages.5.content.0: "), "{answer}");
    // The first is left out for one turn, whose block is made without it.
    let thought = body["messages"][1]["content"][0].clone();
    let mut without = body;
    for index in [1, 3, 5] {
        remove_thinking(&mut without, index);
    }
    let mut back = played(&provider, without, 1).await;
    back["messages"][1]["content"].as_array_mut().expect("blocks").insert(0, thought);
    let (status, answer) = post(&provider, MESSAGES, &[], &back).await;
    assert_eq!(status, 400, "{answer}");
    assert!(message(&answer).starts_with("messages.7.content.0: "), "{answer}");
}

#[tokio::test]
async fn an_edit_before_a_block_is_refused_with_the_providers_words() {
    let changes: [(&str, Change); 7] = [
        ("system", |body| body["system"][0]["text"] = json!("You do not.")),
        ("tools", |body| body["tools"][0]["name"] = json!("Shell")),
        ("the question", |body| body["messages"][0]["content"] = json!("gone")),
        ("a result", |body| body["messages"][2]["content"][0]["content"] = json!("short")),
        ("a call", |body| body["messages"][1]["content"][2]["input"] = json!({"command": "two"})),
        ("a role", |body| body["messages"][0]["role"] = json!("assistant")),
        ("an order", |body| body["messages"].as_array_mut().expect("a list").swap(0, 2)),
    ];
    for (what, change) in changes {
        let (provider, mut body) = three(BOUND).await;
        change(&mut body);
        let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 400, "{what}: {answer}");
        assert!(message(&answer).contains(BOUND_ELSEWHERE), "{what}: {answer}");
        assert!(message(&answer).contains("value in the `anthropic-beta` header"), "{what}");
        let (status, counted) = post(&provider, "/v1/messages/count_tokens", &[], &body).await;
        assert_eq!(status, 400, "{what}: {counted}");
        let kept = provider.kept();
        let thinking = kept[kept.len() - 2].thinking;
        assert_eq!((thinking.sent, thinking.dropped), (3, 0), "{what}");
        assert!(thinking.invalid > 0, "{what}");
        // The record of the refusal says where the request differs from the one before; another question begins another
        // conversation.
        if ["system", "tools", "a result", "a call"].contains(&what) {
            assert!(kept[kept.len() - 2].continuity.is_broken(), "{what}");
        }
        // The same on a model that does not bind is let through.
        let (provider, mut body) = three(FREE).await;
        change(&mut body);
        let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
        assert_eq!(status, 200, "{what}: {answer}");
    }
}

#[tokio::test]
async fn blocks_that_do_not_fit_are_dropped_when_that_is_asked_for() {
    let (provider, mut body) = three(BOUND).await;
    let sent = provider.kept().len();
    body["messages"][2]["content"][0]["content"] = json!("x".repeat(2000));
    let beta = [("anthropic-beta", "something-else, thinking-binding-controls-2026-08-01")];
    let (status, answer) = post(&provider, MESSAGES, &beta, &with_drop(body.clone())).await;
    assert_eq!(status, 200, "{answer}");
    let dropped = |index: usize| {
        json!({"type": "thinking_dropped", "path": format!("messages.{index}.content.0"),
            "reason": "prefix_binding_mismatch"})
    };
    assert_eq!(answer["input_transformations"], json!([dropped(3), dropped(5)]));
    let kept = provider.kept();
    let thinking = kept[sent].thinking;
    assert_eq!((thinking.sent, thinking.invalid, thinking.dropped), (3, 2, 2));
    // What was dropped is not billed.
    remove_thinking(&mut body, 3);
    remove_thinking(&mut body, 5);
    let (_, counted) = post(&provider, "/v1/messages/count_tokens", &[], &body).await;
    assert_eq!(counted["input_tokens"], answer["usage"]["input_tokens"]);
    // The block of the answer fits behind what was kept.
    go_on(&mut body, &answer, "ok");
    let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn all_behind_a_dropped_block_are_dropped() {
    let (provider, mut body) = three(BOUND).await;
    // A block in the wrong place; those behind it would fit if it were left out.
    body["messages"][1]["content"][0] = body["messages"][5]["content"][0].clone();
    let beta = [("anthropic-beta", BINDING_BETA)];
    let (status, answer) = post(&provider, MESSAGES, &beta, &with_drop(body)).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(provider.kept()[3].thinking.dropped, 3);
}

#[tokio::test]
async fn the_controls_need_their_beta() {
    let (provider, body) = three(BOUND).await;
    let (status, answer) = post(&provider, MESSAGES, &[], &with_drop(body.clone())).await;
    assert_eq!(status, 400);
    assert_eq!(message(&answer), "thinking.adaptive.block_binding: Extra inputs are not permitted");
    let beta = [("anthropic-beta", BINDING_BETA)];
    let (_, with) = post(&provider, MESSAGES, &beta, &with_drop(body.clone())).await;
    assert_eq!(with["input_transformations"], json!([]));
    let (_, without) = post(&provider, MESSAGES, &[], &body).await;
    assert!(without["input_transformations"].is_null());
}

#[tokio::test]
async fn blocks_of_another_model_are_dropped_without_an_error() {
    let (provider, mut body) = three(FREE).await;
    body["model"] = json!(BOUND);
    let beta = [("anthropic-beta", BINDING_BETA)];
    let (status, answer) = post(&provider, MESSAGES, &beta, &body).await;
    assert_eq!(status, 200, "{answer}");
    let all = answer["input_transformations"].as_array().expect("a list");
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|one| one["reason"] == "model_binding_mismatch"), "{answer}");
    assert_eq!(provider.kept()[3].thinking.dropped, 3);
    // Its own block then stands behind none.
    go_on(&mut body, &answer, "ok");
    let (status, answer) = post(&provider, MESSAGES, &[], &body).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn a_signature_that_was_touched_is_another_error() {
    for signature in ["", "c2lnbmVk", "digit"] {
        let (provider, mut body) = three(BOUND).await;
        let own = &mut body["messages"][1]["content"][0]["signature"];
        let touched = match signature {
            // A digit of the sealed content.
            "digit" => {
                let mut text = own.as_str().expect("a text").to_owned();
                let digit = if text.as_bytes()[30] == b'0' { "1" } else { "0" };
                text.replace_range(30..31, digit);
                text
            }
            other => other.to_owned(),
        };
        *own = json!(touched);
        let beta = [("anthropic-beta", BINDING_BETA)];
        let (status, answer) = post(&provider, MESSAGES, &beta, &with_drop(body)).await;
        assert_eq!(status, 400, "{signature}");
        assert_eq!(
            message(&answer),
            "messages.1.content.0: Invalid `signature` in `thinking` block"
        );
    }
}

#[tokio::test]
async fn nothing_is_checked_when_binding_is_off() {
    let rules = Rules { binding: Binding::Never, ..Rules::default() };
    let provider = start(9, rules).await;
    let mut body = played(&provider, first(BOUND), 2).await;
    body["messages"][0]["content"] = json!("gone");
    let (status, _) = post(&provider, MESSAGES, &[], &body).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn an_unknown_model_binds_as_the_one_it_is_priced_as() {
    let rules = Rules { price_as: Some(BOUND.to_owned()), ..Rules::default() };
    let provider = start(9, rules).await;
    let mut body = played(&provider, first("scripted-model"), 2).await;
    body["messages"][0]["content"] = json!("gone");
    let (status, _) = post(&provider, MESSAGES, &[], &body).await;
    assert_eq!(status, 400);
    assert_eq!(provider.kept()[0].bill.as_ref().expect("a bill").priced_as, BOUND);
}

#[tokio::test]
async fn bound_thinking_is_shown_only_if_asked_for() {
    let provider = start(1, Rules::default()).await;
    let (_, answer) = post(&provider, MESSAGES, &[], &first(BOUND)).await;
    assert_eq!(answer["content"][0]["thinking"], "");
    let mut body = first(BOUND);
    body["stream"] = json!(true);
    let (_, bytes) = post_raw(&provider, MESSAGES, &[], &body).await;
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("signature_delta") && !text.contains("thinking_delta"), "{text}");
    body["stream"] = json!(false);
    body["thinking"]["display"] = json!("summarized");
    let (_, answer) = post(&provider, MESSAGES, &[], &body).await;
    assert_ne!(answer["content"][0]["thinking"], "");
    body["thinking"] = json!({"type": "disabled"});
    let (_, answer) = post(&provider, MESSAGES, &[], &body).await;
    assert_eq!(answer["content"][0]["type"], "text");
}

/// Asks to clear results over a trigger, all but the newest one.
fn clearing(mut body: Value, trigger: u64) -> Value {
    body["context_management"] = json!({"edits": [{"type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": 1}}]});
    body
}

#[tokio::test]
async fn what_the_provider_clears_is_not_billed_and_breaks_no_thinking() {
    let beta = [("anthropic-beta", EDITING_BETA)];
    let (provider, body) = three(BOUND).await;
    let (_, plain) = post(&provider, MESSAGES, &[], &body).await;
    let (status, cleared) = post(&provider, MESSAGES, &beta, &clearing(body.clone(), 100)).await;
    assert_eq!(status, 200, "{cleared}");
    let edit = &cleared["context_management"]["applied_edits"][0];
    assert_eq!(edit["cleared_tool_uses"], 2);
    let size = |answer: &Value| answer["usage"]["input_tokens"].as_u64().expect("a number");
    assert_eq!(edit["cleared_input_tokens"], size(&plain) - size(&cleared));
    assert!(size(&plain) - size(&cleared) > 900, "{cleared}");
    let (_, counted) =
        post(&provider, "/v1/messages/count_tokens", &beta, &clearing(body.clone(), 100)).await;
    assert_eq!(counted["input_tokens"], size(&cleared));
    assert_eq!(counted["context_management"]["original_input_tokens"], size(&plain));
    // Under the trigger nothing happens, and it is said that nothing did.
    let (_, under) = post(&provider, MESSAGES, &beta, &clearing(body.clone(), 99_999)).await;
    assert_eq!(under["context_management"]["applied_edits"], json!([]));
    assert_eq!(size(&under), size(&plain));
    assert!(plain["context_management"].is_null());
    // Tools that are kept from it, and a gain that is too small.
    let mut kept = clearing(body.clone(), 100);
    kept["context_management"]["edits"][0]["exclude_tools"] = json!(["Bash"]);
    let mut small = clearing(body.clone(), 100);
    small["context_management"]["edits"][0]["clear_at_least"] =
        json!({"type": "input_tokens", "value": 50_000});
    for body in [kept, small] {
        let (_, answer) = post(&provider, MESSAGES, &beta, &body).await;
        assert_eq!(answer["context_management"]["applied_edits"], json!([]));
        assert_eq!(size(&answer), size(&plain));
    }
    // By the number of uses, and with the calls' arguments.
    for (uses, inputs, found) in [(3, false, 0), (2, false, 2), (2, true, 2)] {
        let mut asked = clearing(body.clone(), 0);
        let edit = &mut asked["context_management"]["edits"][0];
        edit["trigger"] = json!({"type": "tool_uses", "value": uses});
        edit["clear_tool_inputs"] = json!(inputs);
        let (_, answer) = post(&provider, MESSAGES, &beta, &asked).await;
        let applied = &answer["context_management"]["applied_edits"];
        let count = applied[0]["cleared_tool_uses"].as_u64().unwrap_or(0);
        assert_eq!(count, found, "{uses} {inputs}");
        let less = size(&answer) < size(&cleared);
        assert_eq!(less, inputs, "{uses} {inputs}: {answer}");
    }
    let (status, _) = post(&provider, MESSAGES, &[], &clearing(body.clone(), 100)).await;
    assert_eq!(status, 400, "without the beta");
    let mut streamed = clearing(body, 100);
    streamed["stream"] = json!(true);
    let (_, bytes) = post_raw(&provider, MESSAGES, &beta, &streamed).await;
    let text = String::from_utf8_lossy(&bytes);
    let (start, end) = text.split_once("event: message_delta").expect("an end");
    assert!(start.contains(r#""context_management":null"#), "{start}");
    assert!(end.contains("cleared_tool_uses"), "{end}");
}

#[tokio::test]
async fn thinking_is_cleared_by_turns() {
    let beta = [("anthropic-beta", EDITING_BETA)];
    let (provider, mut body) = three(FREE).await;
    let edits = |edit: Value| json!({"edits": [edit]});
    body["context_management"] = edits(json!({"type": "clear_thinking_20251015", "keep": "all"}));
    let (_, all) = post(&provider, MESSAGES, &beta, &body).await;
    assert_eq!(all["context_management"]["applied_edits"], json!([]));
    body["context_management"] = edits(json!({"type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": 1}}));
    let (_, one) = post(&provider, MESSAGES, &beta, &body).await;
    let edit = &one["context_management"]["applied_edits"][0];
    assert_eq!(edit["cleared_thinking_turns"], 2, "{one}");
    let tools = json!({"type": "clear_tool_uses_20250919"});
    let thinking = body["context_management"]["edits"][0].clone();
    body["context_management"]["edits"] = json!([tools, thinking]);
    let (status, _) = post(&provider, MESSAGES, &beta, &body).await;
    assert_eq!(status, 400, "thinking comes first");
    assert!(edit["cleared_input_tokens"].as_u64() > Some(0));
}
