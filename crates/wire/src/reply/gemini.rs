//! Gemini's `generateContent`: nothing is numbered; our calls are taken out of the parts.

use super::{EventEdit, State, body, stops_for_calls};
use crate::Wire;
use crate::document::{Value, quoted};
use crate::patch::Patch;

pub(super) fn treat(data: Value<'_>, mut patch: Patch<'_>, state: &mut State) -> EventEdit {
    let mut changed = false;
    if let Some(id) = data.get("responseId").filter(|id| id.is_text()) {
        let known = state.id.get_or_insert_with(|| id.text().unwrap_or_default().into_owned());
        if !id.says(known) {
            patch.replace(id, quoted(known));
            changed = true;
        }
    }
    let candidate = data.get("candidates").and_then(|all| all.elements().next());
    let parts = candidate.and_then(|candidate| candidate.get("content")?.get("parts"));
    let (own, others) =
        parts.map_or((0, 0), |parts| body::hide_parts(parts, &mut patch, state, &[]));
    changed |= own > 0;
    state.own_calls += own;
    state.other_calls += others;
    let reason = candidate.and_then(|candidate| candidate.get("finishReason"));
    let stop = reason.and_then(Value::text);
    let left = parts.map_or(0, |parts| parts.elements().count()) - own;
    if state.only_own(stops_for_calls(Wire::Gemini, stop.as_deref())) {
        state.asks = true;
        let says = parts.into_iter().flat_map(Value::elements).any(|part| {
            part.get("functionCall").is_none() && part.get("text").is_none_or(|text| !text.says(""))
        });
        if left == 0 || !says {
            return EventEdit::Drop;
        }
        // It goes on: what it says is shown, that it ends is not.
        if let Some(candidate) = candidate {
            patch.remove_field(candidate, "finishReason");
        }
        return EventEdit::of(patch);
    }
    if own > 0 && left == 0 && reason.is_none() {
        return EventEdit::Drop;
    }
    changed |= body::count_gemini(data, &mut patch, state);
    if changed { EventEdit::of(patch) } else { EventEdit::Pass }
}
