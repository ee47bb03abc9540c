//! Gemini's `generateContent`: nothing is numbered; our calls are taken out of the parts.

use super::{EventEdit, ReplyState, body, stops_for_calls};
use crate::Wire;
use crate::document::Value;
use crate::patch::Patch;

const WIRE: Wire = Wire::Gemini;

pub(super) fn edit(data: Value<'_>, mut patch: Patch<'_>, state: &mut ReplyState) -> EventEdit {
    state.keep_id(data.get("responseId"), &mut patch);
    let candidate = data.first_at("candidates");
    let parts = candidate.and_then(|candidate| candidate.get("content")?.get("parts"));
    let elements = || parts.into_iter().flat_map(Value::elements);
    let mut own = 0;
    for name in elements().filter_map(|part| body::called_tool(WIRE, part)) {
        own += usize::from(state.count_call(&name));
    }
    if let Some(parts) = parts {
        body::hide_parts(parts, &mut patch, state, &[]);
    }
    let reason = candidate.and_then(|candidate| candidate.get("finishReason"));
    let stop = reason.and_then(Value::text);
    let left = elements().count() - own;
    if state.only_own(stops_for_calls(WIRE, stop.as_deref())) {
        state.asks = true;
        let says = elements().any(|part| {
            part.get("functionCall").is_none() && part.get("text").is_none_or(|text| !text.says(""))
        });
        if left == 0 || !says {
            return EventEdit::Drop;
        }
        // The reply goes on: the client gets the text, but not the end.
        if let Some(candidate) = candidate {
            patch.remove_field(candidate, "finishReason");
        }
        return EventEdit::of(patch);
    }
    if own > 0 && left == 0 && reason.is_none() {
        return EventEdit::Drop;
    }
    body::add_output(WIRE, data, &mut patch, state);
    EventEdit::of(patch)
}
