//! Calls of our tools that the client did not see: their stored form in a request's receipt, from which later requests restore them.

use std::sync::Arc;

use plimsoll_core::tokens::{MESSAGE_OVERHEAD, Tokenizer};
use plimsoll_core::{Message, ToolResult};
use plimsoll_engine::live::LiveSession;
use plimsoll_wire::{OwnCall, WithheldCall, WithheldCalls};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct WithheldRecord {
    shown: Arc<Message>,
    calls: Vec<WithheldCallRecord>,
    earlier: Vec<Vec<Arc<str>>>,
    at: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct WithheldCallRecord {
    before: usize,
    round: usize,
    raw: Arc<str>,
    name: Arc<str>,
    result: ToolResult,
}

/// Writes withheld calls.
pub(crate) fn write(withheld: &WithheldCalls) -> Arc<str> {
    let calls = withheld.calls.iter().map(|one| WithheldCallRecord {
        before: one.before,
        round: one.round,
        raw: one.call.raw.clone(),
        name: one.call.name.clone(),
        result: one.call.result.clone(),
    });
    let kept = WithheldRecord {
        shown: withheld.shown.clone(),
        calls: calls.collect(),
        earlier: withheld.earlier.clone(),
        at: withheld.at,
    };
    serde_json::to_string(&kept).unwrap_or_default().into()
}

/// Returns about how many tokens a withheld call has in a request that it is put back into.
pub(crate) fn tokens(withheld: &WithheldCalls, tokenizer: Tokenizer) -> u32 {
    let calls = withheld.calls.iter().map(|one| {
        tokenizer.count(&one.call.raw) + tokenizer.count(&one.call.result.text) + MESSAGE_OVERHEAD
    });
    let earlier = withheld.earlier.iter().flatten().map(|raw| tokenizer.count(raw));
    calls.chain(earlier).sum()
}

/// Reads withheld calls; `None` for any other text.
pub(crate) fn read(text: &str) -> Option<WithheldCalls> {
    let WithheldRecord { shown, calls, earlier, at } = serde_json::from_str(text).ok()?;
    let calls = calls.into_iter().map(|one| {
        let call = OwnCall { raw: one.raw, name: one.name, result: one.result };
        WithheldCall { before: one.before, round: one.round, call }
    });
    Some(WithheldCalls { shown, calls: calls.collect(), earlier, at })
}

/// Returns the tokens of each lookup that the session's requests carry, oldest first.
pub(crate) fn put_back(session: &LiveSession) -> Vec<u32> {
    let tokenizer = session.transcript().tokenizer();
    let lookups = session.carried().iter().filter_map(|text| read(text));
    lookups.map(|lookup| tokens(&lookup, tokenizer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Role;

    #[test]
    fn what_was_withheld_is_read_back() {
        let result = ToolResult {
            call_id: "1".into(),
            text: "whole".into(),
            images: Vec::new(),
            is_error: false,
        };
        let call = OwnCall { raw: "{}".into(), name: "expand_ref".into(), result };
        let withheld = WithheldCalls {
            shown: Arc::new(Message::text(Role::Assistant, "a")),
            calls: vec![WithheldCall { before: 1, round: 0, call }],
            earlier: vec![vec!["{}".into()]],
            at: 3,
        };
        assert_eq!(read(&write(&withheld)), Some(withheld));
        assert_eq!(read("{}"), None);
    }
}
