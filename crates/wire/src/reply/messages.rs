//! Anthropic Messages: blocks are numbered from 0 without a gap, over all answers of a reply.

use std::collections::HashMap;

use super::{EventEdit, State, stops_for_calls};
use crate::Wire;
use crate::document::Value;
use crate::patch::Patch;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: u64,
    /// For each block of this answer, the number that the client knows; none for what is withheld.
    given: HashMap<u64, Option<u64>>,
}

impl Numbers {
    pub(super) fn begin_round(&mut self) {
        self.given.clear();
    }

    pub(super) fn treat(
        &mut self,
        data: Value<'_>,
        patch: Patch<'_>,
        state: &mut State,
    ) -> EventEdit {
        let kind = data.get("type").and_then(Value::text).unwrap_or_default();
        let index = data.get("index").and_then(Value::number).unwrap_or(0);
        match &*kind {
            "message_start" if state.round > 0 => EventEdit::Drop,
            "content_block_start" => {
                let given = self.begin_block(data, state);
                self.given.insert(index, given);
                renumbered(data, patch, given)
            }
            "content_block_delta" | "content_block_stop" => match self.given.get(&index) {
                Some(given) => renumbered(data, patch, *given),
                None => EventEdit::Pass,
            },
            "message_delta" => {
                let stop = data.get("delta").and_then(|delta| delta.get("stop_reason"));
                let stop = stop.and_then(Value::text);
                if state.only_own(stops_for_calls(Wire::AnthropicMessages, stop.as_deref())) {
                    state.asks = true;
                    return EventEdit::Drop;
                }
                count(data, patch, state)
            }
            _ => EventEdit::Pass,
        }
    }

    fn begin_block(&mut self, data: Value<'_>, state: &mut State) -> Option<u64> {
        let block = data.get("content_block")?;
        if block.has("type", "tool_use") {
            if state.is_own(&block.shared_at("name")) {
                state.own_calls += 1;
                return None;
            }
            state.other_calls += 1;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

fn renumbered(data: Value<'_>, mut patch: Patch<'_>, given: Option<u64>) -> EventEdit {
    let Some(given) = given else { return EventEdit::Drop };
    if data.get("index").and_then(Value::number) == Some(given) {
        return EventEdit::Pass;
    }
    patch.set(data, "index", given.to_string());
    EventEdit::of(patch)
}

/// What was written counts over all answers; what was read stays that of the last, which is the size of the context.
fn count(data: Value<'_>, mut patch: Patch<'_>, state: &State) -> EventEdit {
    let usage = data.get("usage");
    let output = usage.and_then(|usage| usage.get("output_tokens"));
    match (output, output.and_then(Value::number)) {
        (Some(place), Some(tokens)) if state.output_before > 0 => {
            patch.replace(place, tokens.saturating_add(state.output_before).to_string());
            EventEdit::of(patch)
        }
        _ => EventEdit::Pass,
    }
}
