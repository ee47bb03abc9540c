//! A list of e-mails, as Gmail, Microsoft Graph and the tools around them return it.

use serde_json::Value;

use super::{ITEMS, Omissions, View, cut, first, text_of};

/// Returns the e-mails of a payload: a list at its top or under a usual name, each with a sender and a subject.
pub(super) fn items(value: &Value) -> Option<&[Value]> {
    let list = match value {
        Value::Array(items) => items,
        _ => first(value, &["messages", "emails", "value", "threads", "results", "items"])?
            .as_array()?,
    };
    let is_email = |item: &Value| sender(item).is_some() && subject(item).is_some();
    (!list.is_empty() && list.iter().all(is_email)).then_some(list.as_slice())
}

pub(super) fn list(value: &Value, left_out: &mut Omissions) -> Value {
    let all = items(value).unwrap_or(&[]);
    let told = first(value, &["resultSizeEstimate", "total", "total_count", "@odata.count"]);
    let count = told.and_then(Value::as_u64).unwrap_or(0).max(all.len() as u64);
    let emails: Vec<Value> = all.iter().take(ITEMS).map(|item| email(item, left_out)).collect();
    let more = count - emails.len() as u64;
    left_out.items += more;
    let next = text_of(value, &["nextPageToken", "@odata.nextLink"]);
    View::default()
        .put("count", count)
        .put("emails", emails)
        .put("more", more)
        .put_some("next", next)
        .done()
}

fn email(item: &Value, left_out: &mut Omissions) -> Value {
    let labels = item.get("labelIds").or_else(|| item.get("labels")).and_then(Value::as_array);
    let unread = item.get("isRead").and_then(Value::as_bool).map(|read| !read).or_else(|| {
        let flag = first(item, &["unread", "is_unread"]).and_then(Value::as_bool);
        flag.or_else(|| labels.map(|labels| labels.iter().any(|label| label == "UNREAD")))
    });
    let attachments = match item.get("attachments").and_then(Value::as_array) {
        Some(attachments) => Some(Value::from(attachments.len())),
        None => first(item, &["hasAttachments", "has_attachments"]).cloned(),
    };
    let preview = text_of(item, &["snippet", "bodyPreview", "preview"]);
    let body = text_of(item, &["body", "text"])
        .or_else(|| item.get("body").and_then(|body| text_of(body, &["content"])));
    if preview.is_some() {
        left_out.characters += body.map_or(0, |body| body.chars().count()) as u64;
    }
    View::default()
        .put_some("id", first(item, &["id", "message_id", "messageId"]).cloned())
        .put_some("thread", first(item, &["threadId", "thread_id", "conversationId"]).cloned())
        .put_some("url", text_of(item, &["url", "webLink", "link"]))
        .put_some("from", sender(item))
        .put_some("to", address(item, &["to", "toRecipients"], "to"))
        .put_some("subject", subject(item))
        .put_some("date", date(item))
        .put_some("unread", unread)
        .put_some("attachments", attachments)
        .put_some("preview", preview.or(body).map(|text| cut(text, left_out)))
        .done()
}

fn sender(item: &Value) -> Option<String> {
    address(item, &["from", "sender"], "from")
}

fn subject(item: &Value) -> Option<String> {
    item.get("subject")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .or_else(|| header(item, "subject"))
}

fn date(item: &Value) -> Option<Value> {
    first(item, &["date", "receivedDateTime", "received_at", "internalDate", "sentDateTime"])
        .cloned()
        .or_else(|| header(item, "date").map(Value::from))
}

/// Returns one address or several, as they are written.
fn address(item: &Value, keys: &[&str], name: &str) -> Option<String> {
    match first(item, keys) {
        Some(found) => written(found),
        None => header(item, name),
    }
}

fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().filter_map(written).collect();
            (!all.is_empty()).then(|| all.join(", "))
        }
        Value::Object(_) => {
            let inner = value.get("emailAddress").unwrap_or(value);
            let address = text_of(inner, &["address", "email"]);
            match (text_of(inner, &["name"]), address) {
                (Some(name), Some(address)) if name != address => {
                    Some(format!("{name} <{address}>"))
                }
                (name, address) => address.or(name).map(str::to_owned),
            }
        }
        _ => None,
    }
}

/// Returns a header in the form of Gmail: `payload.headers`, a list of names and values.
fn header(item: &Value, name: &str) -> Option<String> {
    let headers = item.get("payload")?.get("headers")?.as_array()?;
    let named = |header: &&Value| {
        text_of(header, &["name"]).is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    headers.iter().find(named)?.get("value")?.as_str().map(str::to_owned)
}
