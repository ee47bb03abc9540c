//! Bodies: our calls taken out, what the answers before said put in front, and counts added up.

use super::State;
use super::rounds::Round;
use crate::Wire;
use crate::document::{Value, quoted};
use crate::patch::Patch;

/// Makes a whole body what the client gets.
pub(super) fn merge(
    wire: Wire,
    body: Value<'_>,
    patch: &mut Patch<'_>,
    state: &State,
    before: &[Round],
) {
    match wire {
        Wire::AnthropicMessages => {
            if let Some(content) = body.get("content") {
                let own = |block: Value<'_>| {
                    block.has("type", "tool_use") && state.is_own(&block.shared_at("name"))
                };
                remove_own(content, patch, own);
                for raw in before.iter().flat_map(Round::shown) {
                    patch.insert(content, 0, raw.to_string());
                }
            }
            let usage = body.get("usage");
            add(usage, &["output_tokens"], patch, state.output_before);
        }
        Wire::ChatCompletions => {
            let choice = body.get("choices").and_then(|choices| choices.elements().next());
            if let Some(message) = choice.and_then(|choice| choice.get("message")) {
                merge_message(message, patch, state, before);
            }
            count_chat(body, patch, state);
        }
        Wire::Responses => {
            merge_response(body, patch, state, before);
        }
        Wire::Gemini => {
            let candidate = body.get("candidates").and_then(|all| all.elements().next());
            let parts = candidate.and_then(|candidate| candidate.get("content")?.get("parts"));
            if let Some(parts) = parts {
                let before: Vec<String> =
                    before.iter().flat_map(Round::shown).map(ToString::to_string).collect();
                hide_parts(parts, patch, state, &before);
            }
            count_gemini(body, patch, state);
        }
    }
}

/// Removes what is ours from a list; returns how much.
fn remove_own(list: Value<'_>, patch: &mut Patch<'_>, is_own: impl Fn(Value<'_>) -> bool) -> usize {
    let mut removed = 0;
    for (index, element) in list.elements().enumerate() {
        if is_own(element) {
            patch.remove(list, index);
            removed += 1;
        }
    }
    removed
}

fn merge_message(message: Value<'_>, patch: &mut Patch<'_>, state: &State, before: &[Round]) {
    if let Some(calls) = message.get("tool_calls").filter(|calls| calls.is_list()) {
        let own = |call: Value<'_>| {
            let inner = call.any(&["function", "custom"]);
            inner.is_some_and(|inner| state.is_own(&inner.shared_at("name")))
        };
        if calls.elements().all(own) {
            patch.remove_field(message, "tool_calls");
        } else {
            remove_own(calls, patch, own);
        }
    }
    let said: String = before.iter().flat_map(Round::texts).collect();
    if said.is_empty() {
        return;
    }
    match message.get("content") {
        Some(content) if content.is_text() || content.is_null() => {
            let more = content.text().unwrap_or_default();
            patch.replace(content, quoted(&(said + &more)));
        }
        None => patch.set(message, "content", quoted(&said)),
        Some(_) => {}
    }
}

/// Makes a response one of all answers; tells whether anything changed.
pub(super) fn merge_response(
    response: Value<'_>,
    patch: &mut Patch<'_>,
    state: &State,
    before: &[Round],
) -> bool {
    let mut changed = hide_tools(response, patch, state);
    if let Some(output) = response.get("output").filter(|output| output.is_list()) {
        let own = |item: Value<'_>| {
            item.get("call_id").is_some() && state.is_own(&item.shared_at("name"))
        };
        changed |= remove_own(output, patch, own) > 0;
        for raw in before.iter().flat_map(Round::shown_items) {
            patch.insert(output, 0, raw.to_string());
            changed = true;
        }
    }
    let usage = response.get("usage");
    changed | add(usage, &["output_tokens", "total_tokens"], patch, state.output_before)
}

/// Takes our tools out of those that a response repeats.
pub(super) fn hide_tools(response: Value<'_>, patch: &mut Patch<'_>, state: &State) -> bool {
    let Some(tools) = response.get("tools").filter(|tools| tools.is_list()) else { return false };
    remove_own(tools, patch, |tool| state.is_own(&tool.shared_at("name"))) > 0
}

/// Takes our calls out of parts, which are never left empty, and puts others in front; returns how many calls were ours and not.
pub(super) fn hide_parts(
    parts: Value<'_>,
    patch: &mut Patch<'_>,
    state: &State,
    before: &[String],
) -> (usize, usize) {
    let name = |part: Value<'_>| {
        part.any(&["functionCall", "function_call"]).map(|call| call.shared_at("name"))
    };
    let calls = parts.elements().filter(|part| name(*part).is_some()).count();
    let own = remove_own(parts, patch, |part| name(part).is_some_and(|name| state.is_own(&name)));
    for raw in before {
        patch.insert(parts, 0, raw.clone());
    }
    if own > 0 && before.is_empty() && own == parts.elements().count() {
        patch.insert(parts, 0, r#"{"text":""}"#.to_owned());
    }
    (own, calls - own)
}

pub(super) fn count_chat(data: Value<'_>, patch: &mut Patch<'_>, state: &State) -> bool {
    let keys = ["completion_tokens", "total_tokens"];
    add(data.get("usage"), &keys, patch, state.output_before)
}

pub(super) fn count_gemini(data: Value<'_>, patch: &mut Patch<'_>, state: &State) -> bool {
    let keys = ["candidatesTokenCount", "totalTokenCount"];
    add(data.get("usageMetadata"), &keys, patch, state.output_before)
}

/// Adds to counts; tells whether anything changed.
fn add(usage: Option<Value<'_>>, keys: &[&str], patch: &mut Patch<'_>, tokens: u64) -> bool {
    if tokens == 0 {
        return false;
    }
    let mut changed = false;
    for place in keys.iter().filter_map(|key| usage?.get(key)) {
        if let Some(count) = place.number() {
            patch.replace(place, count.saturating_add(tokens).to_string());
            changed = true;
        }
    }
    changed
}
