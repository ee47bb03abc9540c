//! Refs, recall and search.

use plimsoll_core::{Ref, Tokenizer};
use plimsoll_engine::expand::{ContentPart, ExpandOptions, Originals, expand};
use plimsoll_engine::{Scope, SearchQuery, SessionId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::problem::ApiError;
use crate::query::body;
use crate::sessions;

/// Characters of an original in one answer (chosen: a large page).
const PIECE: usize = 100_000;

pub(crate) async fn expanded(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let offset = asked.query.parsed("offset")?;
    let part = match (asked.query.get("lines"), asked.query.get("search"), offset) {
        (Some(lines), None, None) => lines_of(lines)?,
        (None, Some(text), None) => {
            ContentPart::Search { text: text.to_owned(), around: 0, limit: 1000 }
        }
        (None, None, offset) => ContentPart::Slice { offset: offset.unwrap_or(0), limit: PIECE },
        _ => {
            return Err(ApiError::Invalid("give one of `lines`, `search`, `offset`".to_owned()));
        }
    };
    let scope = Scope::default();
    let originals = Originals {
        history: &*asked.parts.history,
        knowledge: Some(&*asked.parts.knowledge),
        tenant: asked.tenant,
        asker: Some(&scope),
    };
    let options = ExpandOptions { fields: Vec::new(), part };
    let now = asked.parts.clock.now();
    let found = expand(&originals, asked.query.path("ref"), &options, now).await?;
    Ok(serde_json::to_value(found).unwrap_or_default())
}

fn lines_of(lines: &str) -> Result<ContentPart, ApiError> {
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last => {
            Ok(ContentPart::Lines { first, last })
        }
        _ => Err(ApiError::Invalid(format!("`{lines}` are no lines: FIRST-LAST"))),
    }
}

/// The body of `recall`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallBody {
    query: String,
    #[serde(default = "usual_budget")]
    budget: u64,
    session: Option<SessionId>,
}

fn usual_budget() -> u64 {
    4000
}

/// The largest budget of a recall in tokens (chosen: some hundred messages).
const MOST_RECALLED: u64 = 100_000;

pub(crate) async fn recall(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let RecallBody { query, budget, session } = body(&asked.body)?;
    let budget = budget.min(MOST_RECALLED);
    let tokenizer = Tokenizer::O200k { factor: 1.0 };
    let (recall, history) = (&asked.parts.recall, &*asked.parts.history);
    let scope = recall.scope(history, asked.tenant, session.as_ref()).await?;
    let found = scope.recall(&query, budget, tokenizer);
    let hits = found.hits.iter().map(|hit| {
        json!({
            "session": hit.record.session,
            "position": hit.record.position,
            "role": hit.record.message.role.as_str(),
            "time": hit.record.message.time,
            "ref": Ref::message(hit.record.hash).to_string(),
            "text": hit.text,
            "tokens": hit.tokens,
            "score": hit.recalled.score,
        })
    });
    Ok(json!({
        "items": hits.collect::<Vec<_>>(),
        "tokens": found.tokens,
        "ranked": found.ranked,
        "passed_over": found.passed_over,
    }))
}

/// The body of `search`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchBody {
    query: String,
    #[serde(default = "usual_limit")]
    limit: usize,
    session: Option<SessionId>,
}

fn usual_limit() -> usize {
    20
}

pub(crate) async fn search(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let SearchBody { query, limit, session } = body(&asked.body)?;
    if !(1..=500).contains(&limit) {
        return Err(ApiError::Invalid("`limit` is from 1 to 500".to_owned()));
    }
    let words = SearchQuery { text: Some(query), embedding: None, limit };
    let hits = asked.parts.history.search(asked.tenant, session.as_ref(), &words).await?;
    let items = hits.iter().map(|hit| {
        let mut item = sessions::message(&hit.item);
        item["score"] = json!(hit.score);
        item
    });
    Ok(json!({"items": items.collect::<Vec<_>>()}))
}
