//! Makes known payloads small without a model: keeps exact fields by kind, and counts the rest.
//!
//! The kind is recognised by content. Other text is cut like any other result ([`crate::compress_result`]).

mod email;
mod github;
mod notion;
mod source;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::compression::{LARGE_RESULT_TOKENS, compress_result};
use crate::json_text::each_text;
use crate::text::{Limit, head_at_word, is_error_line, left_out as mark};
use crate::tokens::Tokenizer;

pub use source::{Source, source_of};

/// The kind of a payload, and of the artefact that stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    GithubSearch,
    GithubIssue,
    GithubPullRequest,
    NotionPage,
    EmailList,
    /// Any other JSON.
    Json,
    Text,
}

names!(PayloadKind {
    GithubSearch "github_search",
    GithubIssue "github_issue",
    GithubPullRequest "github_pull_request",
    NotionPage "notion_page",
    EmailList "email_list",
    Json "json",
    Text "text",
});

/// The small form of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompressedPayload {
    pub kind: PayloadKind,
    /// JSON on one line, or for [`PayloadKind::Text`] the text with a mark in the place of its middle.
    pub text: String,
    pub left_out: Omissions,
}

/// How much a compressed payload does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Omissions {
    /// Items of lists.
    pub items: u64,
    /// Characters of texts that were cut.
    pub characters: u64,
}

/// Items of a list that are shown (`context-strategy.md` 6.1, `compress_github_search`).
const ITEMS: usize = 10;
/// Characters of a body that are shown (chosen: a paragraph; the length of the light compression of 6.2).
const BODY: usize = 300;

/// Returns the kind of a payload.
pub fn kind_of_payload(text: &str) -> PayloadKind {
    parse(text).map_or(PayloadKind::Text, |value| recognise(&value))
}

/// Returns a smaller form of a payload, or `None` if there is none.
///
/// Shape: the same payload gives the same bytes. Ids, URLs and figures are exact or left out; a text that is cut says so.
/// All lines that report errors or security warnings stay; those of omitted parts stand under `kept`.
/// A payload that is an error itself, or that would not become smaller, is not compressed.
/// Source: `context-strategy.md` 6.1 for the fields of a search and a page; the fields of the others are chosen.
pub fn compress(text: &str, tokenizer: Tokenizer) -> Option<CompressedPayload> {
    let Some(value) = parse(text) else { return compress_text(text, tokenizer) };
    if is_error(&value) {
        return None;
    }
    let kind = recognise(&value);
    let mut left_out = Omissions::default();
    let mut view = match kind {
        PayloadKind::GithubSearch => github::search(&value, &mut left_out),
        PayloadKind::GithubIssue => github::issue(&value, &mut left_out),
        PayloadKind::GithubPullRequest => github::pull_request(&value, &mut left_out),
        PayloadKind::NotionPage => notion::page(&value, &mut left_out),
        PayloadKind::EmailList => email::list(&value, &mut left_out),
        PayloadKind::Json if tokenizer.count(text) > LARGE_RESULT_TOKENS => {
            shorten(&value, &mut left_out)
        }
        PayloadKind::Json | PayloadKind::Text => return None,
    };
    keep_warnings(&value, &mut view);
    let compressed = view.to_string();
    (compressed.len() < text.len()).then_some(CompressedPayload {
        kind,
        text: compressed,
        left_out,
    })
}

fn compress_text(text: &str, tokenizer: Tokenizer) -> Option<CompressedPayload> {
    let compressed = compress_result(text, tokenizer)?;
    let shown = compressed.chars().count() as u64;
    let characters = (text.chars().count() as u64).saturating_sub(shown);
    let left_out = Omissions { items: 0, characters };
    Some(CompressedPayload { kind: PayloadKind::Text, text: compressed, left_out })
}

fn parse(text: &str) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    begins.then(|| serde_json::from_str(text).ok()).flatten()
}

fn recognise(value: &Value) -> PayloadKind {
    if github::is_search(value) {
        PayloadKind::GithubSearch
    } else if github::is_pull_request(value) {
        PayloadKind::GithubPullRequest
    } else if github::is_issue(value) {
        PayloadKind::GithubIssue
    } else if notion::is_page(value) {
        PayloadKind::NotionPage
    } else if email::items(value).is_some() {
        PayloadKind::EmailList
    } else {
        PayloadKind::Json
    }
}

/// Returns whether the payload is an error, by its fields at the top.
fn is_error(value: &Value) -> bool {
    let told = |key| value.get(key).is_some_and(|told| !is_nothing(told));
    told("error") || told("errors") || value.get("object").is_some_and(|kind| kind == "error")
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Adds the warnings that `view` lost: fields at the top, and lines of texts.
fn keep_warnings(value: &Value, view: &mut Value) {
    const FIELDS: [&str; 5] =
        ["warning", "warnings", "security_warning", "security_warnings", "incomplete_results"];
    let Value::Object(view) = view else { return };
    for field in FIELDS {
        if let Some(told) = value.get(field).filter(|told| !is_nothing(told)) {
            view.insert(field.to_owned(), told.clone());
        }
    }
    let mut shown = HashSet::new();
    for field in view.values() {
        each_text(field, &mut |text| shown.extend(text.lines().map(str::to_owned)));
    }
    let mut kept = Vec::new();
    each_text(value, &mut |text| {
        for line in text.lines().filter(|line| is_error_line(line)) {
            if shown.insert(line.to_owned()) {
                kept.push(Value::from(line));
            }
        }
    });
    if !kept.is_empty() {
        view.insert("kept".to_owned(), Value::Array(kept));
    }
}

/// Cuts lists and texts of any JSON. Objects keep all their keys, so that a reader sees which fields exist.
fn shorten(value: &Value, left_out: &mut Omissions) -> Value {
    match value {
        Value::String(text) => Value::from(cut(text, left_out)),
        Value::Array(items) => {
            let mut shown: Vec<Value> =
                items.iter().take(ITEMS).map(|item| shorten(item, left_out)).collect();
            if items.len() > ITEMS {
                let more = items.len() - ITEMS;
                left_out.items += more as u64;
                shown.push(Value::from(mark(more, "item", None)));
            }
            Value::Array(shown)
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| (key.clone(), shorten(field, left_out)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Cuts a text to [`BODY`] characters, at white space where there is some, so that no URL or id is cut in two.
fn cut(text: &str, left_out: &mut Omissions) -> String {
    let shown = head_at_word(text, Limit::Characters(BODY));
    if shown.len() == text.len() {
        return text.to_owned();
    }
    let shown = shown.trim_end();
    let more = text.chars().count() - shown.chars().count();
    left_out.characters += more as u64;
    format!("{shown} {}", mark(more, "character", None)).trim_start().to_owned()
}

/// Returns the first field of `keys` that is not null.
fn first<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().filter_map(|key| value.get(key)).find(|found| !found.is_null())
}

/// Returns the first field of `keys` that is a text with characters.
fn text_of<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().filter_map(|key| value.get(key)?.as_str()).find(|text| !text.is_empty())
}

/// Returns the day of a time in ISO 8601.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Builds an object, in the order in which its fields are put, without absent fields.
#[derive(Default)]
struct View(Map<String, Value>);

impl View {
    fn put(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) -> &mut Self {
        if let Some(value) = value {
            self.put(key, value);
        }
        self
    }

    fn put_day(&mut self, key: &str, from: &Value, keys: &[&str]) -> &mut Self {
        self.put_some(key, text_of(from, keys).map(day))
    }

    fn done(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests;
