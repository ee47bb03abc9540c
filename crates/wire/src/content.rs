//! Content: texts, images and the results of tools, in the spellings of all wires.

use std::sync::Arc;

use plimsoll_core::json_text::compact;
use plimsoll_core::{Block, Image, Opaque, ToolCall};

use super::document::{NodeId, Value};

/// A block and the value that it was read from.
pub(crate) type LocatedBlock = (NodeId, Block);

/// Reads a text, unless it is empty: a string, and a list with one text, say the same.
pub(crate) fn text(value: Value<'_>) -> Option<LocatedBlock> {
    let text = value.text().filter(|text| !text.is_empty())?;
    Some((value.id(), Block::Text(Arc::from(text))))
}

/// Reads content that is a string or a list of parts, each by `part`.
pub(crate) fn parts<'a>(
    content: Option<Value<'a>>,
    mut part: impl FnMut(Value<'a>) -> Option<Block>,
) -> Vec<LocatedBlock> {
    let Some(content) = content else { return Vec::new() };
    if content.is_text() {
        return text(content).into_iter().collect();
    }
    content
        .elements()
        .filter_map(|element| {
            if element.is_text() {
                text(element)
            } else {
                part(element).map(|block| (element.id(), block))
            }
        })
        .collect()
}

/// Reads a part of the types that both of `OpenAI`'s wires have, or Anthropic's.
pub(crate) fn part(part: Value<'_>) -> Option<Block> {
    let kind = part.kind();
    match &*kind {
        "text" | "input_text" | "output_text" | "summary_text" => {
            let text = part.shared_at("text");
            (!text.is_empty()).then_some(Block::Text(text))
        }
        "refusal" => {
            let text = part.shared_at("refusal");
            (!text.is_empty()).then_some(Block::Text(text))
        }
        "image" | "image_url" | "input_image" => Some(Block::Image(image(part))),
        kind => Some(opaque(kind, part)),
    }
}

/// Returns whether a part is a text, without reading it.
pub(crate) fn is_text(part: Value<'_>) -> bool {
    let kind = part.kind();
    matches!(&*kind, "text" | "input_text" | "output_text" | "summary_text")
}

/// Returns whether a part is an image, without reading it.
pub(crate) fn is_image(part: Value<'_>) -> bool {
    let kind = part.kind();
    matches!(&*kind, "image" | "image_url" | "input_image")
}

/// Reads an image of either provider.
pub(crate) fn image(part: Value<'_>) -> Image {
    let empty = || Arc::from("");
    let source = part.get("source");
    let url = part.get("image_url").and_then(|url| {
        if url.is_object() { url.get("url").and_then(Value::shared) } else { url.shared() }
    });
    let data = url.or_else(|| {
        let source = source?;
        source.any(&["data", "url", "file_id"])?.shared()
    });
    Image {
        media_type: source
            .and_then(|source| source.get("media_type")?.shared())
            .unwrap_or_else(empty),
        data: data.or_else(|| part.get("file_id")?.shared()).unwrap_or_else(empty),
    }
}

/// Makes a block of an unknown part. It leaves out marks of the cache, since they come and go.
pub(crate) fn opaque(kind: &str, value: Value<'_>) -> Block {
    let raw = if value.get("cache_control").is_none() {
        Arc::from(value.raw())
    } else {
        let fields: Vec<String> = value
            .fields()
            .filter(|(key, _)| !key.says("cache_control"))
            .map(|(key, value)| format!("{}:{}", key.raw(), value.raw()))
            .collect();
        Arc::from(format!("{{{}}}", fields.join(",")))
    };
    Block::Opaque(Opaque { kind: Arc::from(kind), raw })
}

/// Reads a call.
pub(crate) fn call(id: Arc<str>, name: Arc<str>, arguments: Option<Value<'_>>) -> Block {
    let arguments = match arguments {
        None => Arc::from(""),
        Some(value) => value.shared().unwrap_or_else(|| compact(value.raw())),
    };
    Block::ToolCall(ToolCall { id, name, arguments })
}

/// Reads the result of a tool: the texts, joined by a line break, and the images.
pub(crate) fn answer(content: Option<Value<'_>>) -> (Arc<str>, Vec<Image>) {
    let mut texts: Vec<Arc<str>> = Vec::new();
    let mut images = Vec::new();
    for (_, block) in parts(content, part) {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Image(image) => images.push(image),
            _ => {}
        }
    }
    let text = match &texts[..] {
        [only] => only.clone(),
        _ => Arc::from(texts.join("\n")),
    };
    (text, images)
}
