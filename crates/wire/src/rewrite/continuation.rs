//! Continuing: an answer that called our tools goes back with the results, behind the conversation.

use std::sync::Arc;

use super::{Continuation, OwnCall, Rewrite, RewriteError};
use crate::Wire;
use crate::document::{quoted, scanned};

impl Rewrite<'_> {
    /// Puts answers and their results behind the conversation.
    pub(super) fn continue_with(
        &mut self,
        continuations: &[Continuation],
    ) -> Result<(), RewriteError> {
        if continuations.is_empty() {
            return Ok(());
        }
        let wire = self.request.wire();
        let mut added: Vec<String> = Vec::new();
        for one in continuations {
            let items = one.items.iter().filter(|item| !self.is_lost(item));
            added.extend(items.map(ToString::to_string));
            added.extend(results(wire, &one.calls));
        }
        if let Some(items) = self.request.items() {
            for item in added {
                self.patch.push(items, item);
            }
            return Ok(());
        }
        let input = self.request.root().get("input").filter(|input| input.is_text());
        let input = input.ok_or(RewriteError::NoPlace { what: "a continuation" })?;
        let said = match self.texts.remove(&input.id()) {
            Some(changed) => quoted(&changed),
            None => input.raw().to_owned(),
        };
        let said = format!(r#"{{"role":"user","content":{said}}}"#);
        self.patch.replace(input, format!("[{said},{}]", added.join(",")));
        Ok(())
    }
}

impl Rewrite<'_> {
    /// Returns whether an item is useless to a server that did not keep it: reasoning without its encrypted content.
    pub(super) fn is_lost(&self, item: &Arc<str>) -> bool {
        let is_kept = self.request.is_kept_by_the_server();
        if self.request.wire() != Wire::Responses || is_kept {
            return false;
        }
        scanned(item).is_some_and(|item| {
            let item = item.root();
            item.has("type", "reasoning") && item.any(&["encrypted_content"]).is_none()
        })
    }
}

/// Returns the results of calls as elements of the list of messages.
pub(super) fn results(wire: Wire, calls: &[OwnCall]) -> Vec<String> {
    let all: Vec<String> = calls.iter().map(|call| result(wire, call)).collect();
    match wire {
        Wire::AnthropicMessages => {
            vec![format!(r#"{{"role":"user","content":[{}]}}"#, all.join(","))]
        }
        Wire::Gemini => vec![format!(r#"{{"role":"user","parts":[{}]}}"#, all.join(","))],
        Wire::ChatCompletions | Wire::Responses => all,
    }
}

/// Returns the result of a call, where results of its wire stand.
pub(super) fn result(wire: Wire, call: &OwnCall) -> String {
    let (id, text) = (quoted(&call.result.call_id), quoted(&call.result.text));
    match wire {
        Wire::AnthropicMessages => {
            let error = if call.result.is_error { r#","is_error":true"# } else { "" };
            format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text}{error}}}"#)
        }
        Wire::ChatCompletions => {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{text}}}"#)
        }
        Wire::Responses => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{text}}}"#)
        }
        Wire::Gemini => {
            // The provider does not accept an id that it did not give.
            let given = scanned(&call.raw).and_then(|part| {
                let call = part.root().any(&["functionCall", "function_call"])?;
                Some(call.get("id")?.raw().to_owned())
            });
            let id = given.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
            let key = if call.result.is_error { "error" } else { "output" };
            let name = quoted(&call.name);
            format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{key}":{text}}}}}}}"#)
        }
    }
}
