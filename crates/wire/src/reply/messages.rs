//! Anthropic Messages: blocks are numbered from 0 without a gap, over all answers of a reply.

use super::{EventEdit, ReplyState, body, end_without_calls, renumber, stops_for_calls};
use crate::Wire;
use crate::document::Value;
use crate::patch::Patch;

const WIRE: Wire = Wire::AnthropicMessages;

pub(super) fn edit(data: Value<'_>, mut patch: Patch<'_>, state: &mut ReplyState) -> EventEdit {
    let index = data.get("index").and_then(Value::number).unwrap_or(0);
    match &*data.kind() {
        "message_start" if state.round > 0 => return EventEdit::Drop,
        "content_block_start" => {
            let call = data.get("content_block").and_then(|block| body::called_tool(WIRE, block));
            state.begin_part(index, call.as_deref());
        }
        "content_block_delta" | "content_block_stop" => {}
        "message_delta" => {
            let stop = data.get("delta").and_then(|delta| delta.get("stop_reason")?.text());
            if state.only_own(stops_for_calls(WIRE, stop.as_deref())) {
                state.asks = true;
                return EventEdit::Drop;
            }
            if let Some(delta) = data.get("delta") {
                end_without_calls(delta, "stop_reason", "end_turn", &mut patch, state);
            }
            body::add_output(WIRE, data, &mut patch, state);
            return EventEdit::of(patch);
        }
        _ => return EventEdit::Pass,
    }
    match state.given.get(&index) {
        Some(None) => return EventEdit::Drop,
        Some(Some(given)) => renumber(data, "index", *given, &mut patch),
        None => {}
    }
    EventEdit::of(patch)
}
