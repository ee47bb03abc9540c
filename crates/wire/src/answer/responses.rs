//! `OpenAI` Responses: items by their index, and the whole response at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{AnswerUsage, Seen, number, owned};
use crate::document::Value;

#[derive(Debug, Default)]
pub(super) struct Parts {
    items: BTreeMap<u64, Arc<str>>,
}

impl Parts {
    pub(super) fn take(&mut self, data: Value<'_>, seen: &mut Seen) -> bool {
        let kind = data.get("type").and_then(Value::text).unwrap_or_default();
        match &*kind {
            "response.output_item.done" => {
                let index = number(Some(data), &["output_index"]).unwrap_or(0);
                if let Some(item) = data.get("item") {
                    self.items.insert(index, Arc::from(item.raw()));
                }
            }
            "response.created" => {
                if let Some(response) = data.get("response") {
                    seen.id = owned(response.get("id"));
                    seen.model = owned(response.get("model"));
                }
            }
            "response.completed" | "response.incomplete" => {
                if let Some(response) = data.get("response") {
                    self.body(response, seen);
                }
                seen.ended = true;
                return true;
            }
            "response.failed" => {
                let error = data.get("response").and_then(|response| response.get("error"));
                let told = error.and_then(|error| owned(error.get("message")));
                seen.failure = Some(told.unwrap_or_else(|| "the response failed".to_owned()));
            }
            _ => {}
        }
        false
    }

    pub(super) fn body(&mut self, response: Value<'_>, seen: &mut Seen) {
        seen.id = owned(response.get("id")).or(seen.id.take());
        seen.model = owned(response.get("model")).or(seen.model.take());
        let status = owned(response.get("status"));
        let reason =
            response.get("incomplete_details").and_then(|details| owned(details.get("reason")));
        seen.ended = matches!(status.as_deref(), Some("completed" | "incomplete"));
        seen.stop = reason.or(status);
        let output = response.get("output").into_iter().flat_map(Value::elements);
        let items: BTreeMap<u64, Arc<str>> =
            (0..).zip(output.map(|item| Arc::from(item.raw()))).collect();
        // Some servers leave out at the end what they sent before.
        if !items.is_empty() {
            self.items = items;
        }
        let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) else { return };
        let details = usage.get("input_tokens_details");
        seen.usage = Some(AnswerUsage {
            input: number(Some(usage), &["input_tokens"]).unwrap_or(0),
            cached: number(details, &["cached_tokens"]).unwrap_or(0),
            written: number(details, &["cache_write_tokens"]).unwrap_or(0),
            written_long: 0,
            dropped_thinking: 0,
            cleared_tool_uses: 0,
            output: number(Some(usage), &["output_tokens"]).unwrap_or(0),
        });
    }

    pub(super) fn items(&self) -> Vec<Arc<str>> {
        self.items.values().cloned().collect()
    }
}
