//! Messages that are marked as important.

use serde_json::{Value, json};

use super::context::MessagesFilter;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

record! {
    /// Names for messages that matter; a text alone is that of `output`.
    pub struct Callouts short {
        /// The name of the phase's last answer.
        output: Option<Template> = None,
        /// The name of each message.
        messages: Option<Template> = None,
        /// The messages that get it.
        messages_filter | "filter": MessagesFilter = MessagesFilter::AssistantOnly,
    }
}

impl Decode for Callouts {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            return Self::decode_map(node, decoder);
        }
        let output = Some(Template::decode(node, decoder)?);
        Some(Self { output, messages: None, messages_filter: MessagesFilter::AssistantOnly })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "string"}, Self::schema_map(definitions)]})
    }
}
