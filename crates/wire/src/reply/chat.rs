//! `OpenAI` Chat Completions: calls are numbered over all answers of a reply, under the id of the first.

use super::{EventEdit, ReplyState, body, end_without_calls, renumber, stops_for_calls};
use crate::Wire;
use crate::answer::call_index;
use crate::document::Value;
use crate::patch::Patch;

const WIRE: Wire = Wire::ChatCompletions;

pub(super) fn edit<'a>(data: Value<'a>, mut patch: Patch<'a>, state: &mut ReplyState) -> EventEdit {
    let id = data.get("id");
    state.keep_id(id, &mut patch);
    let choice = data.first_at("choices");
    let delta = choice.and_then(|choice| choice.object_at("delta"));
    let (Some(choice), Some(delta)) = (choice, delta) else {
        let stop = choice.and_then(|choice| choice.get("finish_reason")?.text());
        state.asks = choice.is_some() && state.only_own(stops_for_calls(WIRE, stop.as_deref()));
        if state.asks {
            return EventEdit::Drop;
        }
        if let Some(choice) = choice {
            end_without_calls(choice, "finish_reason", "stop", &mut patch, state);
        } else {
            body::add_output(WIRE, data, &mut patch, state);
        }
        return EventEdit::of(patch);
    };
    let list = delta.list_at("tool_calls");
    let kept = list.map_or(0, |list| edit_calls(list, &mut patch, state));
    let stop = choice.get("finish_reason").and_then(Value::text);
    let asks = state.only_own(stops_for_calls(WIRE, stop.as_deref()));
    // A second `role` is appended to the first by some clients.
    let repeats_role = state.round > 0 && delta.get("role").is_some();
    let withholds = kept == 0 && list.is_some_and(|list| list.elements().next().is_some());
    if asks || withholds || repeats_role {
        let is_gone = |key: &str| match key {
            "tool_calls" => list.is_some() && kept == 0,
            "role" => repeats_role,
            _ => false,
        };
        let stays: Vec<String> = delta
            .fields()
            .filter(|(key, value)| !value.is_null() && !is_gone(&key.text().unwrap_or_default()))
            .map(|(key, value)| format!("{}:{}", key.raw(), value.raw()))
            .collect();
        let says_nothing = stays.is_empty() && (asks || stop.is_none());
        state.asks = asks;
        if says_nothing && (asks || data.object_at("usage").is_none()) {
            return EventEdit::Drop;
        }
        // Calls that stay are in the patch already, and the delta is not replaced over them.
        if kept == 0 {
            patch = Patch::new(data.document());
            patch.replace(delta, format!("{{{}}}", stays.join(",")));
            state.keep_id(id, &mut patch);
            if asks {
                // An answer that asks does not stop yet.
                for value in [choice.get("finish_reason"), data.get("usage")].into_iter().flatten()
                {
                    patch.replace(value, "null".to_owned());
                }
                return EventEdit::of(patch);
            }
        } else if repeats_role {
            patch.remove_field(delta, "role");
        }
    }
    end_without_calls(choice, "finish_reason", "stop", &mut patch, state);
    body::add_output(WIRE, data, &mut patch, state);
    EventEdit::of(patch)
}

/// Removes our calls and renumbers the others; returns how many stay.
fn edit_calls(list: Value<'_>, patch: &mut Patch<'_>, state: &mut ReplyState) -> usize {
    let mut kept = 0;
    for (place, call) in list.elements().enumerate() {
        let begun = state.given.len();
        let at = call_index(call, begun);
        if at == begun {
            let name = body::called_tool(WIRE, call).unwrap_or_default();
            state.begin_part(at as u64, Some(&name));
        }
        match state.given.get(&(at as u64)) {
            Some(Some(given)) => {
                kept += 1;
                if call.any(&["index"]).is_some() {
                    renumber(call, "index", *given, patch);
                }
            }
            _ => patch.remove(list, place),
        }
    }
    kept
}
