//! The origin of a payload: which page it is a state of.

use serde_json::json;

use super::{PayloadKind, parse, recognise, text_of};

/// The id and URL of a page, and the time of its last change, as the payload writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    id: Option<String>,
    url: Option<String>,
    updated: Option<String>,
}

/// Returns the source of a page; `None` for a list and for an unknown payload.
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

impl std::fmt::Display for Source {
    /// Writes the JSON that `source_meta` stores.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        json!({"id": self.id, "url": self.url, "updated_at": self.updated}).fmt(f)
    }
}
