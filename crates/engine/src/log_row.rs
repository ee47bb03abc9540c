//! Rows of the unified log, made from what was recorded: the same on every backend.

use plimsoll_core::text::{Limit, head};
use serde_json::json;

use crate::history::{LogRow, MessageRecord, ReceiptRecord};

impl LogRow {
    /// Characters of the line that a row shows.
    pub const LINE: usize = 200;
    /// The `node_type` of a message.
    pub const MESSAGE: &'static str = "message";
    /// The `node_type` of a context decision.
    pub const SELECTION: &'static str = "context_selection";

    /// Makes the row of a message: its first line that is not blank.
    pub fn of_message(record: &MessageRecord) -> Self {
        let shown = record.message.shown();
        let line = shown.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        Self {
            session: record.session.clone(),
            node_type: Self::MESSAGE.to_owned(),
            at: record.recorded_at,
            number: record.position,
            content_hash: Some(record.hash.short()),
            role: Some(record.message.role.as_str().to_owned()),
            tokens: Some(record.tokens),
            text: head(line, Limit::Characters(Self::LINE)).to_owned(),
            metadata: None,
        }
    }

    /// Makes the row of a context decision, with the metadata of `auto-context.md`, Logging.
    pub fn of_receipt(record: &ReceiptRecord) -> Self {
        let metadata = json!({
            "semantic_actor": "auto_context",
            "selection_type": record.selection_type.as_str(),
            "strategy": record.strategy,
            "full_history_size": record.full_history_size,
            "context_size": record.context_size,
            "masked_count": record.masked_count,
            "anchor_hashes": record.anchor_hashes,
            "selected_hashes": record.selected_hashes,
            "tokens_saved": record.tokens_saved,
            "trace_id": record.trace_id,
            "cascade_id": record.cascade_id,
        });
        Self {
            session: record.session.clone(),
            node_type: Self::SELECTION.to_owned(),
            at: record.recorded_at,
            number: record.turn,
            content_hash: None,
            role: None,
            tokens: None,
            text: format!(
                "{}: {} of {} messages, {} masked, {} tokens saved",
                record.strategy,
                record.context_size,
                record.full_history_size,
                record.masked_count,
                record.tokens_saved
            ),
            metadata: Some(metadata.to_string()),
        }
    }
}
