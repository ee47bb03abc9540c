//! A Notion page: its structure without its content (`context-strategy.md` 6.1, `compress_notion_page`).

use serde_json::Value;

use super::{Omissions, View, day, first, text_of};

pub(super) fn is_page(value: &Value) -> bool {
    let is_page = value.get("object").is_some_and(|kind| kind == "page" || kind == "database");
    is_page
        && value.get("id").is_some_and(Value::is_string)
        && first(value, &["properties", "last_edited_time", "title"]).is_some()
}

pub(super) fn page(value: &Value, left_out: &mut Omissions) -> Value {
    let children = value.get("children").and_then(Value::as_array);
    let (mut words, mut characters) = (0_u64, 0_u64);
    for part in ["children", "content", "markdown"] {
        let content = value.get(part);
        each_plain_text(content.unwrap_or(&Value::Null), &mut |text| {
            words += text.split_whitespace().count() as u64;
            characters += text.chars().count() as u64;
        });
    }
    left_out.characters += characters;
    left_out.items += children.map_or(0, Vec::len) as u64;
    View::default()
        .put("title", title(value))
        .put_some("id", text_of(value, &["id"]))
        .put_some("url", text_of(value, &["url"]))
        .put("type", text_of(value, &["object"]).unwrap_or("page"))
        .put("last_edited", text_of(value, &["last_edited_time"]).map_or("", day))
        .put("word_count", words)
        .put("has_children", children.is_some_and(|children| !children.is_empty()))
        .done()
}

/// Returns the title: a property of the type title, or a field of that name.
fn title(value: &Value) -> String {
    let property = value.get("properties").and_then(Value::as_object).and_then(|properties| {
        let is_title = |property: &&Value| property.get("type").is_some_and(|kind| kind == "title");
        let found = properties.values().find(is_title);
        found.or_else(|| properties.get("title").or_else(|| properties.get("Name")))?.get("title")
    });
    let mut title = String::new();
    each_plain_text(property.or_else(|| value.get("title")).unwrap_or(&Value::Null), &mut |text| {
        title.push_str(text);
    });
    title
}

/// Calls `found` with the texts that a reader of the page sees, in order: `plain_text`, else `content`, else a bare text.
fn each_plain_text(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => {
            for item in items {
                if item.is_object() || item.is_array() {
                    each_plain_text(item, found);
                }
            }
        }
        Value::Object(fields) => {
            if let Some(text) = text_of(value, &["plain_text", "content"]) {
                return found(text);
            }
            for field in fields.values().filter(|field| field.is_object() || field.is_array()) {
                each_plain_text(field, found);
            }
        }
        _ => {}
    }
}
