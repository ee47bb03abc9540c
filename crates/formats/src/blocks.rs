//! Content blocks: text, images, calls, results and thinking, in the spellings of all dialects.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Block, Image, Opaque, Thinking, ToolCall, ToolResult};
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::arguments;
use crate::json::{Flag, Text};

/// The content of a message: a string, a list of blocks, or nothing.
#[derive(Debug, Clone, Default)]
pub(crate) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Blocks(Vec<&'a RawValue>),
}

impl Content<'_> {
    /// Returns the blocks with their indexes; a string has none. Empty strings and `null` give no block.
    pub(crate) fn blocks(&self) -> Vec<(Option<u32>, Block)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![(None, Block::Text(Arc::from(&**text)))],
            Self::Blocks(blocks) => (0..)
                .zip(blocks)
                .filter_map(|(index, raw)| Some((Some(index), block(raw.get())?)))
                .collect(),
        }
    }

    /// Returns the text, parts of a list joined by a line break, and the images.
    pub(crate) fn text_and_images(&self) -> (Arc<str>, Vec<Image>) {
        let mut images = Vec::new();
        let text = match self {
            Self::Nothing => Arc::from(""),
            Self::Text(text) => Arc::from(&**text),
            Self::Blocks(_) => {
                let mut texts: Vec<Arc<str>> = Vec::new();
                for (_, block) in self.blocks() {
                    match block {
                        Block::Text(text) => texts.push(text),
                        Block::Image(image) => images.push(image),
                        Block::ToolResult(result) => {
                            texts.push(result.text);
                            images.extend(result.images);
                        }
                        Block::ToolCall(_) | Block::Thinking(_) | Block::Opaque(_) => {}
                    }
                }
                match &texts[..] {
                    [only] => only.clone(),
                    _ => Arc::from(texts.join("\n")),
                }
            }
        };
        (text, images)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of blocks")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element::<&'de RawValue>()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Nothing)
    }
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    #[serde(alias = "thinkingSignature")]
    signature: Option<Text<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    #[serde(borrow, alias = "arguments")]
    input: Option<&'a RawValue>,
    tool_use_id: Option<Text<'a>>,
    #[serde(default)]
    content: Content<'a>,
    #[serde(default)]
    is_error: Flag,
    source: Option<ImageSource<'a>>,
    data: Option<Text<'a>>,
    #[serde(rename = "mimeType")]
    mime_type: Option<Text<'a>>,
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ImageSource<'a> {
    #[serde(borrow)]
    media_type: Option<Text<'a>>,
    data: Option<Text<'a>>,
    url: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ImageUrl<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
}

/// Reads one element of a content list. A string is text; what is not understood is passed on as it is.
pub(crate) fn block(raw: &str) -> Option<Block> {
    if raw.starts_with('"') {
        return serde_json::from_str::<Text<'_>>(raw).ok().map(|text| Block::Text(text.shared()));
    }
    if !raw.starts_with('{') {
        return None;
    }
    let Ok(wire) = serde_json::from_str::<WireBlock<'_>>(raw) else {
        return Some(opaque("unreadable", raw));
    };
    let shared = |text: Option<&Text<'_>>| text.map_or_else(|| Arc::from(""), Text::shared);
    let kind = wire.kind.as_ref().map_or("", Text::as_str);
    Some(match kind {
        "text" | "input_text" | "output_text" => Block::Text(shared(wire.text.as_ref())),
        "" if wire.text.is_some() => Block::Text(shared(wire.text.as_ref())),
        "thinking" => Block::Thinking(Thinking {
            text: shared(wire.thinking.as_ref()),
            signature: shared(wire.signature.as_ref()),
        }),
        "toolCall" | "tool_use" => Block::ToolCall(ToolCall {
            id: shared(wire.id.as_ref()),
            name: shared(wire.name.as_ref()),
            arguments: arguments::from_raw(wire.input),
        }),
        "tool_result" => {
            let (text, images) = wire.content.text_and_images();
            Block::ToolResult(ToolResult {
                call_id: shared(wire.tool_use_id.as_ref()),
                text,
                images,
                is_error: wire.is_error.0,
            })
        }
        "image" | "image_url" | "input_image" => Block::Image(image(&wire)),
        _ => opaque(kind, raw),
    })
}

fn image(wire: &WireBlock<'_>) -> Image {
    let url = wire.image_url.and_then(|raw| {
        let text = raw.get();
        if text.starts_with('{') {
            serde_json::from_str::<ImageUrl<'_>>(text).ok()?.url
        } else {
            serde_json::from_str(text).ok()
        }
    });
    let source = wire.source.as_ref();
    let data = url
        .as_ref()
        .or(wire.data.as_ref())
        .or_else(|| source.and_then(|source| source.data.as_ref().or(source.url.as_ref())));
    let media_type =
        wire.mime_type.as_ref().or_else(|| source.and_then(|source| source.media_type.as_ref()));
    Image {
        media_type: media_type.map_or_else(|| Arc::from(""), Text::shared),
        data: data.map_or_else(|| Arc::from(""), Text::shared),
    }
}

fn opaque(kind: &str, raw: &str) -> Block {
    Block::Opaque(Opaque { kind: Arc::from(kind), raw: Arc::from(raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_both_dialects_are_one() {
        let pi = block(r#"{"type":"toolCall","id":"a","name":"read","arguments":{"p": 1}}"#);
        let anthropic = block(r#"{"type":"tool_use","id":"a","name":"read","input":{"p":1}}"#);
        assert_eq!(pi, anthropic);
        assert!(matches!(pi, Some(Block::ToolCall(call)) if &*call.arguments == r#"{"p":1}"#));
    }

    #[test]
    fn results_join_their_parts() {
        let raw = r#"{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"x"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"text","text":"y"}]}"#;
        let Some(Block::ToolResult(result)) = block(raw) else { panic!() };
        assert_eq!(&*result.text, "x\ny");
        assert!(result.is_error);
        assert_eq!(&*result.images[0].data, "AA");
    }

    #[test]
    fn the_unknown_is_passed_on() {
        let raw = r#"{"type":"redacted_thinking","data":"x"}"#;
        assert!(matches!(block(raw), Some(Block::Opaque(opaque)) if &*opaque.raw == raw));
        assert_eq!(block("3"), None);
    }
}
