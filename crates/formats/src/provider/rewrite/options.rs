//! What is asked of the provider beside the messages: what to do with thinking that no longer fits, and with old results.

use super::{ContextEditing, Rewrite};
use crate::provider::Wire;
use crate::provider::document::Value;

/// The header's value under which a provider reads [`super::Edits::drop_thinking`].
pub const BETA_THINKING: &str = "thinking-binding-controls-2026-08-01";
/// The header's value under which a provider reads [`super::Edits::context_editing`].
pub const BETA_EDITING: &str = "context-management-2025-06-27";

impl Rewrite<'_> {
    /// Asks the provider to drop thinking that is bound to something else, instead of refusing the request.
    pub(super) fn drop_thinking(&mut self) {
        let thinking = self.request.root().get("thinking").filter(|thinking| thinking.is_object());
        let Some(thinking) = thinking.filter(|_| self.request.wire() == Wire::AnthropicMessages)
        else {
            return;
        };
        // A client that says what it wants is heard.
        if thinking.get("block_binding").is_none() && !thinking.has("type", "disabled") {
            let wanted = r#"{"prefix_mismatch_behavior":"drop_block"}"#;
            self.patch.set(thinking, "block_binding", wanted.to_owned());
        }
    }

    /// Leaves old results to the provider's own context editing.
    pub(super) fn edit_context(&mut self, editing: ContextEditing) {
        if self.request.wire() != Wire::AnthropicMessages {
            return;
        }
        let ContextEditing { trigger, keep, at_least } = editing;
        let edit = format!(
            r#"{{"type":"clear_tool_uses_20250919","trigger":{{"type":"input_tokens","value":{trigger}}},"keep":{{"type":"tool_uses","value":{keep}}},"clear_at_least":{{"type":"input_tokens","value":{at_least}}}}}"#
        );
        let root = self.request.root();
        match root.get("context_management").filter(|known| known.is_object()) {
            None => {
                self.patch.set(root, "context_management", format!(r#"{{"edits":[{edit}]}}"#));
            }
            Some(known) => match known.get("edits").filter(|edits| edits.is_list()) {
                None => self.patch.set(known, "edits", format!("[{edit}]")),
                // Behind the client's own: thinking has to be cleared first.
                Some(edits) if !edits.elements().any(clears_tools) => self.patch.push(edits, edit),
                Some(_) => {}
            },
        }
    }
}

fn clears_tools(edit: Value<'_>) -> bool {
    let kind = edit.get("type").and_then(Value::text).unwrap_or_default();
    kind.starts_with("clear_tool_uses") || kind.starts_with("compact")
}
