//! Where a payload came from: what makes two of them states of one page.

use serde_json::{Value, json};

use super::{PayloadKind, parse, recognise, text_of};

/// The id and URL of a page, and when it was changed, as they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    id: Option<String>,
    url: Option<String>,
    updated: Option<String>,
}

/// Returns where a page came from; `None` for what is no page of its own: a list, or no known payload.
pub fn source_of(text: &str) -> Option<Source> {
    let value = parse(text)?;
    let kind = recognise(&value);
    let is_page = matches!(
        kind,
        PayloadKind::GithubIssue | PayloadKind::GithubPullRequest | PayloadKind::NotionPage
    );
    if !is_page {
        return None;
    }
    let text = |keys: &[&str]| text_of(&value, keys).map(str::to_owned);
    let id = value.get("id").and_then(|id| {
        id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string()))
    });
    let source = Source {
        id,
        url: text(&["html_url", "url"]),
        updated: text(&["updated_at", "last_edited_time"]),
    };
    (source.id.is_some() || source.url.is_some()).then_some(source)
}

impl Source {
    /// Tells whether `meta`, what [`Self`] prints, is of the same page.
    pub fn is_of(&self, meta: &Value) -> bool {
        let same = |key: &str, own: Option<&String>| {
            own.is_some() && meta.get(key).and_then(Value::as_str) == own.map(String::as_str)
        };
        same("id", self.id.as_ref()) || same("url", self.url.as_ref())
    }
}

impl std::fmt::Display for Source {
    /// JSON, as `source_meta` keeps it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        json!({"id": self.id, "url": self.url, "updated_at": self.updated}).fmt(f)
    }
}
