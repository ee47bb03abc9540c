//! Options for the provider beside the messages: how it handles thinking that no longer fits, and old results.

use super::{ContextEditing, Rewrite};
use crate::Wire;
use crate::document::Value;

/// The header's value under which a provider reads [`super::Edits::drop_thinking`].
pub const BETA_THINKING: &str = "thinking-binding-controls-2026-08-01";
/// The header's value under which a provider reads [`super::Edits::context_editing`].
pub const BETA_EDITING: &str = "context-management-2025-06-27";

impl Rewrite<'_> {
    /// Asks the provider to drop thinking that is bound to something else, instead of refusing the request.
    pub(super) fn drop_thinking(&mut self) {
        let thinking = self.request.root().object_at("thinking");
        let Some(thinking) = thinking.filter(|_| self.request.wire() == Wire::AnthropicMessages)
        else {
            return;
        };
        // The client's own choice stays.
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
        match root.object_at("context_management") {
            None => {
                self.patch.set(root, "context_management", format!(r#"{{"edits":[{edit}]}}"#));
            }
            Some(known) => match known.list_at("edits") {
                None => self.patch.set(known, "edits", format!("[{edit}]")),
                // Behind the client's own: thinking has to be cleared first.
                Some(edits) if !edits.elements().any(clears_tools) => self.patch.push(edits, edit),
                Some(_) => {}
            },
        }
    }
}

fn clears_tools(edit: Value<'_>) -> bool {
    let kind = edit.kind();
    kind.starts_with("clear_tool_uses") || kind.starts_with("compact")
}

#[cfg(test)]
mod tests {
    use crate::{ContextEditing, DEFAULT_DEPTH, Edits, ProviderRequest, Wire};

    const EDIT: &str = r#"{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":9},"keep":{"type":"tool_uses","value":3},"clear_at_least":{"type":"input_tokens","value":4}}"#;

    fn rewritten(wire: Wire, body: &str, edits: &Edits) -> String {
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH);
        let body = request.expect("a request").rewrite(edits).expect("it is written");
        String::from_utf8(body).expect("text")
    }

    #[test]
    fn a_client_that_says_what_becomes_of_bound_thinking_is_heard() {
        let edits = Edits { drop_thinking: true, ..Edits::default() };
        let drop =
            r#"{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#;
        let error = r#"{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}"#;
        let off = r#"{"type":"disabled"}"#;
        for (thinking, expected) in
            [(r#"{"type":"adaptive"}"#, drop), (error, error), (off, off), ("null", "null")]
        {
            let body = |thinking| format!(r#"{{"messages":[],"thinking":{thinking}}}"#);
            let changed = rewritten(Wire::AnthropicMessages, &body(thinking), &edits);
            assert_eq!(changed, body(expected));
        }
    }

    #[test]
    fn context_editing_stands_behind_the_clients_own_edits() {
        let context_editing = Some(ContextEditing { trigger: 9, keep: 3, at_least: 4 });
        let edits = Edits { context_editing, ..Edits::default() };
        let thinking = r#"{"type":"clear_thinking_20251015"}"#;
        let tools = r#"{"type":"clear_tool_uses_20250919"}"#;
        let body = |known: &str| format!(r#"{{"messages":[]{known}}}"#);
        let of = |list: &str| body(&format!(r#","context_management":{{"edits":[{list}]}}"#));
        for (known, expected) in [
            (body(""), of(EDIT)),
            (body(r#","context_management":{}"#), of(EDIT)),
            (of(""), of(EDIT)),
            (of(thinking), of(&format!("{thinking},{EDIT}"))),
            (of(tools), of(tools)),
        ] {
            assert_eq!(rewritten(Wire::AnthropicMessages, &known, &edits), expected);
        }
    }

    #[test]
    fn other_wires_are_asked_for_nothing() {
        let context_editing = Some(ContextEditing { trigger: 9, keep: 3, at_least: 4 });
        let edits = Edits { drop_thinking: true, context_editing, ..Edits::default() };
        for (wire, body) in [
            (Wire::ChatCompletions, r#"{"messages":[],"thinking":{}}"#),
            (Wire::Responses, r#"{"input":"x","thinking":{}}"#),
            (Wire::Gemini, r#"{"contents":[],"thinking":{}}"#),
        ] {
            assert_eq!(rewritten(wire, body, &edits), body);
        }
    }
}
