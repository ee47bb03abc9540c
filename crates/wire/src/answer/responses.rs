//! `OpenAI` Responses: items by their index, and the whole response at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::{Block, ToolCall, Usage};

use super::{AnswerDraft, AnswerHead, AnswerPiece, Failure, number, owned};
use crate::document::Value;
use crate::request::answered_item;

#[derive(Debug, Default)]
pub(super) struct ResponsesDraft {
    items: BTreeMap<u64, Arc<str>>,
    /// Which call, counted from 0, an item is.
    calls: BTreeMap<u64, u32>,
}

impl AnswerDraft for ResponsesDraft {
    fn take(&mut self, data: Value<'_>, head: &mut AnswerHead) -> bool {
        let kind = data.kind();
        let index = number(Some(data), &["output_index"]).unwrap_or(0);
        match &*kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                head.text_at(data, "delta", AnswerPiece::Text);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                head.text_at(data, "delta", AnswerPiece::Reasoning);
            }
            "response.output_item.added" if head.takes_pieces() => {
                if let Some(call) = data.get("item").and_then(call_in) {
                    let number = self.calls.len() as u32;
                    self.calls.insert(index, number);
                    let (id, name) = (call.id, call.name);
                    head.piece(|| AnswerPiece::CallBegun { index: number, id, name });
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let text = data.shared_at("delta");
                if let Some(&index) = self.calls.get(&index).filter(|_| !text.is_empty()) {
                    head.piece(|| AnswerPiece::CallArguments { index, text: text.to_string() });
                }
            }
            "response.output_item.done" => {
                if let Some(item) = data.get("item") {
                    let call =
                        self.calls.get(&index).and_then(|index| Some((*index, call_in(item)?)));
                    if let Some((index, call)) = call {
                        head.piece(|| AnswerPiece::Call { index, call });
                    }
                    self.items.insert(index, Arc::from(item.raw()));
                }
            }
            "response.created" => {
                if let Some(response) = data.get("response") {
                    head.id = owned(response.get("id"));
                    head.model = owned(response.get("model"));
                }
            }
            "response.completed" | "response.incomplete" => {
                if let Some(response) = data.get("response") {
                    self.body(response, head);
                }
                head.ended = true;
                return true;
            }
            "response.failed" => {
                let told = data.get("response").and_then(Failure::of);
                let message = "the response failed, and the provider does not say why".to_owned();
                head.failure = Some(told.unwrap_or(Failure { message, word: None }));
            }
            _ => {}
        }
        false
    }

    fn body(&mut self, response: Value<'_>, head: &mut AnswerHead) {
        head.id = owned(response.get("id")).or(head.id.take());
        head.model = owned(response.get("model")).or(head.model.take());
        let status = owned(response.get("status"));
        let reason =
            response.get("incomplete_details").and_then(|details| owned(details.get("reason")));
        head.ended = matches!(status.as_deref(), Some("completed" | "incomplete"));
        head.stop = reason.or(status);
        let output = response.elements_at("output");
        let items: BTreeMap<u64, Arc<str>> =
            (0..).zip(output.map(|item| Arc::from(item.raw()))).collect();
        // Some servers leave out at the end what they sent before.
        if !items.is_empty() {
            self.items = items;
        }
        let Some(usage) = response.object_at("usage") else { return };
        let details = usage.get("input_tokens_details");
        let usage = Usage {
            prompt_tokens: number(Some(usage), &["input_tokens"]).unwrap_or(0),
            cached_tokens: number(details, &["cached_tokens"]).unwrap_or(0),
            written_tokens: number(details, &["cache_write_tokens"]).unwrap_or(0),
            written_long_tokens: 0,
            output_tokens: number(Some(usage), &["output_tokens"]).unwrap_or(0),
        };
        head.usage = Some(usage.into());
    }

    fn items(&self) -> Vec<Arc<str>> {
        self.items.values().cloned().collect()
    }
}

fn call_in(item: Value<'_>) -> Option<ToolCall> {
    answered_item(item).into_iter().find_map(|(_, block)| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    })
}
