//! Bodies: our calls taken out, the earlier answers put in front, and counts added up.

use std::sync::Arc;

use super::rounds::Round;
use super::{ReplyState, end_without_calls};
use crate::Wire;
use crate::document::{Value, quoted};
use crate::patch::Patch;

/// Makes the body of the last answer one of all answers.
pub(super) fn merge(
    wire: Wire,
    body: Value<'_>,
    patch: &mut Patch<'_>,
    state: &ReplyState,
    before: &[Round],
) {
    match wire {
        Wire::AnthropicMessages => {
            end_without_calls(body, "stop_reason", "end_turn", patch, state);
            if let Some(content) = body.get("content") {
                remove_own_calls(wire, content, patch, state);
                put_first(content, before.iter().flat_map(Round::shown), patch);
            }
        }
        Wire::ChatCompletions => {
            let choice = body.first_at("choices");
            if let Some(choice) = choice {
                end_without_calls(choice, "finish_reason", "stop", patch, state);
            }
            if let Some(message) = choice.and_then(|choice| choice.get("message")) {
                merge_message(message, patch, state, before);
            }
        }
        Wire::Responses => {
            hide_tools(body, patch, state);
            if let Some(output) = body.list_at("output") {
                remove_own_calls(wire, output, patch, state);
                put_first(output, before.iter().flat_map(Round::shown_items), patch);
            }
        }
        Wire::Gemini => {
            let candidate = body.first_at("candidates");
            let parts = candidate.and_then(|candidate| candidate.get("content")?.get("parts"));
            if let Some(parts) = parts {
                hide_parts(parts, patch, state, before);
            }
        }
    }
    add_output(wire, body, patch, state);
}

/// Returns the name of the tool that an element of an answer calls, if it is a call.
pub(super) fn called_tool(wire: Wire, element: Value<'_>) -> Option<Arc<str>> {
    let call = match wire {
        Wire::AnthropicMessages => Some(element).filter(|block| block.has("type", "tool_use")),
        Wire::ChatCompletions => element.any(&["function", "custom"]),
        Wire::Responses => Some(element).filter(|item| item.get("call_id").is_some()),
        Wire::Gemini => element.any(&["functionCall", "function_call"]),
    };
    call.map(|call| call.shared_at("name"))
}

fn calls_own(wire: Wire, element: Value<'_>, state: &ReplyState) -> bool {
    called_tool(wire, element).is_some_and(|name| state.is_own(&name))
}

/// Removes the calls of our tools from a list; returns how many.
fn remove_own_calls(
    wire: Wire,
    list: Value<'_>,
    patch: &mut Patch<'_>,
    state: &ReplyState,
) -> usize {
    let own = list.elements().enumerate().filter(|(_, one)| calls_own(wire, *one, state));
    own.map(|(index, _)| patch.remove(list, index)).count()
}

/// Puts what the client was shown of earlier answers before the elements of a list.
fn put_first<'r>(
    list: Value<'_>,
    before: impl Iterator<Item = &'r Arc<str>>,
    patch: &mut Patch<'_>,
) {
    for raw in before {
        patch.insert(list, 0, raw.to_string());
    }
}

fn merge_message(message: Value<'_>, patch: &mut Patch<'_>, state: &ReplyState, before: &[Round]) {
    if let Some(calls) = message.list_at("tool_calls") {
        if calls.elements().all(|call| calls_own(Wire::ChatCompletions, call, state)) {
            patch.remove_field(message, "tool_calls");
        } else {
            remove_own_calls(Wire::ChatCompletions, calls, patch, state);
        }
    }
    let earlier: String = before.iter().flat_map(Round::texts).collect();
    if earlier.is_empty() {
        return;
    }
    match message.get("content") {
        Some(content) if content.is_text() || content.is_null() => {
            let more = content.text().unwrap_or_default();
            patch.replace(content, quoted(&(earlier + &more)));
        }
        None => patch.set(message, "content", quoted(&earlier)),
        Some(_) => {}
    }
}

/// Removes our tools from those that a response repeats.
pub(super) fn hide_tools(response: Value<'_>, patch: &mut Patch<'_>, state: &ReplyState) {
    let Some(tools) = response.list_at("tools") else { return };
    for (index, tool) in tools.elements().enumerate() {
        if state.is_own(&tool.shared_at("name")) {
            patch.remove(tools, index);
        }
    }
}

/// Removes our calls from parts, which are never left empty, and puts what earlier answers showed in front.
pub(super) fn hide_parts(
    parts: Value<'_>,
    patch: &mut Patch<'_>,
    state: &ReplyState,
    before: &[Round],
) {
    let own = remove_own_calls(Wire::Gemini, parts, patch, state);
    let shown = || before.iter().flat_map(Round::shown);
    put_first(parts, shown(), patch);
    if own > 0 && own == parts.elements().count() && shown().next().is_none() {
        patch.insert(parts, 0, r#"{"text":""}"#.to_owned());
    }
}

/// Adds the output of the earlier answers to the counts.
///
/// The input stays that of the last answer, which is the size of the context.
pub(super) fn add_output(wire: Wire, data: Value<'_>, patch: &mut Patch<'_>, state: &ReplyState) {
    if state.output_before == 0 {
        return;
    }
    let (key, counts): (&str, &[&str]) = match wire {
        Wire::AnthropicMessages => ("usage", &["output_tokens"]),
        Wire::ChatCompletions => ("usage", &["completion_tokens", "total_tokens"]),
        Wire::Responses => ("usage", &["output_tokens", "total_tokens"]),
        Wire::Gemini => ("usageMetadata", &["candidatesTokenCount", "totalTokenCount"]),
    };
    let Some(usage) = data.get(key) else { return };
    for place in counts.iter().filter_map(|count| usage.get(count)) {
        if let Some(count) = place.number() {
            patch.replace(place, count.saturating_add(state.output_before).to_string());
        }
    }
}
