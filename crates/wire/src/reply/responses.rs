//! `OpenAI` Responses: items and events are numbered over all answers of a reply, and the last event repeats all of them.

use super::rounds::Round;
use super::{EventEdit, ReplyState, body, renumber, stops_for_calls};
use crate::Wire;
use crate::document::Value;
use crate::patch::Patch;

const WIRE: Wire = Wire::Responses;

pub(super) fn edit(
    data: Value<'_>,
    mut patch: Patch<'_>,
    state: &mut ReplyState,
    before: &[Round],
) -> EventEdit {
    let kind = data.kind();
    let response = || data.get("response");
    match &*kind {
        "response.created" | "response.in_progress" | "response.queued" => {
            if state.round > 0 {
                return EventEdit::Drop;
            }
            let Some(response) = response() else { return EventEdit::Pass };
            state.keep_id(response.get("id"), &mut patch);
            body::hide_tools(response, &mut patch, state);
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            let Some(response) = response() else { return EventEdit::Pass };
            let status = response.get("status").and_then(Value::text);
            if state.only_own(stops_for_calls(WIRE, status.as_deref())) {
                state.asks = true;
                return EventEdit::Drop;
            }
            state.keep_id(response.get("id"), &mut patch);
            body::merge(WIRE, response, &mut patch, state, before);
        }
        _ => {}
    }
    if let Some(index) = data.get("output_index") {
        let upstream = index.number().unwrap_or(0);
        if &*kind == "response.output_item.added" {
            let call = data.get("item").and_then(|item| body::called_tool(WIRE, item));
            state.begin_part(upstream, call.as_deref());
        }
        match state.given.get(&upstream) {
            Some(None) => return EventEdit::Drop,
            Some(Some(given)) => renumber(data, "output_index", *given, &mut patch),
            None => {}
        }
    }
    if let Some(number) = data.get("sequence_number") {
        let given = *state.sequence.get_or_insert(number.number().unwrap_or(0));
        state.sequence = Some(given.saturating_add(1));
        renumber(data, "sequence_number", given, &mut patch);
    }
    EventEdit::of(patch)
}
