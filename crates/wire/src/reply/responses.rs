//! `OpenAI` Responses: items and events are numbered over all answers of a reply, and the last event repeats all of them.

use std::collections::HashMap;

use super::rounds::Round;
use super::{EventEdit, State, body, stops_for_calls};
use crate::Wire;
use crate::document::{Value, quoted};
use crate::patch::Patch;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
    /// For each item of this answer, the number that the client knows; none for what is withheld.
    given: HashMap<u64, Option<u64>>,
    /// The number of the next event.
    sequence: Option<u64>,
}

impl Numbers {
    pub(super) fn begin_round(&mut self) {
        self.given.clear();
    }

    pub(super) fn treat(
        &mut self,
        data: Value<'_>,
        mut patch: Patch<'_>,
        state: &mut State,
        before: &[Round],
    ) -> EventEdit {
        let kind = data.get("type").and_then(Value::text).unwrap_or_default();
        let mut changed = false;
        match &*kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                if state.round > 0 {
                    return EventEdit::Drop;
                }
                let Some(response) = data.get("response") else { return EventEdit::Pass };
                let id = response.get("id").and_then(Value::text).map(Into::into);
                state.id = id.or(state.id.take());
                changed |= body::hide_tools(response, &mut patch, state);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let Some(response) = data.get("response") else { return EventEdit::Pass };
                let status = response.get("status").and_then(Value::text);
                if state.only_own(stops_for_calls(Wire::Responses, status.as_deref())) {
                    state.asks = true;
                    return EventEdit::Drop;
                }
                if let (Some(id), Some(known)) = (response.get("id"), &state.id)
                    && !id.says(known)
                {
                    patch.replace(id, quoted(known));
                    changed = true;
                }
                changed |= body::merge_response(response, &mut patch, state, before);
            }
            _ => {}
        }
        if let Some(index) = data.get("output_index") {
            let upstream = index.number().unwrap_or(0);
            if &*kind == "response.output_item.added" {
                let given = self.begin_item(data, state);
                self.given.insert(upstream, given);
            }
            match self.given.get(&upstream) {
                Some(None) => return EventEdit::Drop,
                Some(Some(given)) if *given != upstream => {
                    patch.replace(index, given.to_string());
                    changed = true;
                }
                _ => {}
            }
        }
        if let Some(number) = data.get("sequence_number") {
            let upstream = number.number().unwrap_or(0);
            let given = *self.sequence.get_or_insert(upstream);
            self.sequence = Some(given.saturating_add(1));
            if given != upstream {
                patch.replace(number, given.to_string());
                changed = true;
            }
        }
        if changed { EventEdit::of(patch) } else { EventEdit::Pass }
    }

    fn begin_item(&mut self, data: Value<'_>, state: &mut State) -> Option<u64> {
        let item = data.get("item")?;
        if item.get("call_id").is_some() {
            if state.is_own(&item.shared_at("name")) {
                state.own_calls += 1;
                return None;
            }
            state.other_calls += 1;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}
