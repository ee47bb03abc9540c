//! Bound thinking: signatures that fit only behind what they were made behind.
//!
//! A signature holds digests of the model, of everything before the block (system, tools, messages; thinking and cache marks
//! left out) and of the thinking block before it. So a block fits after everything was only appended to, after marks moved,
//! and after a leading run of blocks, or all, were left out. It does not fit after an edit, or behind a gap. A block that does
//! not fit refuses the request, or is dropped with all later ones where the request asks for that. A block of another model is
//! dropped in any case. Source: Anthropic's page "Preserved thinking".

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_wire::Wire;
use serde_json::{Value, json};

use super::pieces::{hash, messages, one_or_many, system};

/// The beta that admits `thinking.block_binding` and reports what was dropped.
pub const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Whether signatures are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Binding {
    /// Any signature is accepted.
    Never,
    /// On models that bind their thinking.
    #[default]
    ByModel,
}

/// Thinking blocks of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThinkingBlocks {
    pub sent: usize,
    /// How many did not fit what stands before them.
    pub invalid: usize,
    /// How many the model did not see, those of other models included.
    pub dropped: usize,
}

/// The result of checking a request.
#[derive(Debug, Default)]
pub(crate) struct BindingVerdict {
    pub(crate) thinking: ThinkingBlocks,
    /// Message and block indexes that the model does not see.
    pub(crate) dropped: Vec<(usize, usize)>,
    /// For the answer, if the beta asks for it.
    pub(crate) transformations: Option<Value>,
    /// For the thinking block of the answer.
    pub(crate) signature: String,
    /// The error message, if the request is refused.
    pub(crate) refusal: Option<String>,
}

struct Signature {
    model: u64,
    prefix: u64,
    previous: u64,
}

/// Every signature begins with it, as opaque data would.
const SEAL: &str = "c2NyaXB0ZWQ";

/// Checks the thinking blocks of a request to `model`, whose thinking is bound or not, and signs the next.
pub(crate) fn check(body: &Value, model: &str, is_bound: bool, has_beta: bool) -> BindingVerdict {
    let mut verdict = BindingVerdict::default();
    let asked = &body["thinking"]["block_binding"];
    let kind = body["thinking"]["type"].as_str().unwrap_or("adaptive");
    if !asked.is_null() && !has_beta {
        let place = format!("thinking.{kind}.block_binding");
        verdict.refusal = Some(format!("{place}: Extra inputs are not permitted"));
        return verdict;
    }
    let drops = asked["prefix_mismatch_behavior"] == "drop_block";
    let own = digest(model);
    let mut prefix = beginning(body);
    let mut last = None;
    let mut failed = false;
    let mut reasons = Vec::new();
    for (index, message) in messages(Wire::AnthropicMessages, body).iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        for (at, block) in one_or_many(&message["content"]).iter().enumerate() {
            match block["type"].as_str() {
                Some("thinking") => {}
                Some("redacted_thinking") => continue,
                _ => {
                    role.hash(&mut prefix);
                    hash(block, &mut prefix);
                    continue;
                }
            }
            verdict.thinking.sent += 1;
            let place = format!("messages.{index}.content.{at}");
            let text = block["signature"].as_str().unwrap_or_default();
            let reason = match Signature::read(text) {
                None => {
                    let message = format!("{place}: Invalid `signature` in `thinking` block");
                    verdict.refusal.get_or_insert(message);
                    continue;
                }
                Some(signature) if signature.model != own => "model_binding_mismatch",
                Some(signature) => {
                    let follows = last.is_none_or(|last| signature.previous == last);
                    failed |= is_bound && !(follows && signature.prefix == prefix.finish());
                    if !failed {
                        last = Some(digest(text));
                        continue;
                    }
                    verdict.thinking.invalid += 1;
                    if !drops {
                        verdict.refusal.get_or_insert_with(|| refusal(&place, has_beta));
                        continue;
                    }
                    "prefix_binding_mismatch"
                }
            };
            verdict.dropped.push((index, at));
            reasons.push(json!({"type": "thinking_dropped", "path": place, "reason": reason}));
        }
    }
    verdict.thinking.dropped = verdict.dropped.len();
    verdict.transformations = has_beta.then(|| json!(reasons));
    let prefix = prefix.finish();
    verdict.signature = Signature { model: own, prefix, previous: last.unwrap_or(0) }.written();
    verdict
}

/// Takes blocks out of a request; a message that is left without blocks goes with them.
pub(crate) fn without(body: &mut Value, dropped: &[(usize, usize)]) {
    let Some(messages) = body["messages"].as_array_mut() else { return };
    for &(index, at) in dropped.iter().rev() {
        if let Some(blocks) = messages[index]["content"].as_array_mut() {
            blocks.remove(at);
            if blocks.is_empty() {
                messages.remove(index);
            }
        }
    }
}

fn refusal(place: &str, has_beta: bool) -> String {
    let message = format!(
        "{place}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the \
         block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
    );
    if has_beta {
        return message;
    }
    format!(
        "{message} That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
    )
}

/// Digests system and tools; tools that are loaded later are no part of it.
fn beginning(body: &Value) -> DefaultHasher {
    let mut hasher = DefaultHasher::new();
    for block in system(Wire::AnthropicMessages, body) {
        "system".hash(&mut hasher);
        hash(block, &mut hasher);
    }
    for tool in one_or_many(&body["tools"]).iter().filter(|tool| tool["defer_loading"] != true) {
        "tool".hash(&mut hasher);
        hash(tool, &mut hasher);
    }
    hasher
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Signature {
    fn written(&self) -> String {
        let Self { model, prefix, previous } = self;
        let content = format!("{model:016x}{prefix:016x}{previous:016x}");
        format!("{SEAL}{content}{:016x}", digest(&content))
    }

    /// Returns nothing for a signature that nobody has made here, or that was touched.
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix(SEAL)?;
        let (content, seal) = text.split_at_checked(48)?;
        let number = |at: usize| u64::from_str_radix(content.get(at..at + 16)?, 16).ok();
        let fits = u64::from_str_radix(seal, 16).ok()? == digest(content);
        fits.then_some(Self { model: number(0)?, prefix: number(16)?, previous: number(32)? })
    }
}
