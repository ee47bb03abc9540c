//! Sessions, their messages and receipts, and the efficiency of decisions.

use std::collections::BTreeMap;

use plimsoll_core::bill::{BilledSession, RecordedBill, Row};
use plimsoll_core::cost::Pricing;
use plimsoll_core::text::{Limit, head, line};
use plimsoll_core::{ContextBudget, Ref, Role, pressure};
use plimsoll_engine::{Efficiency, Gathering, MessageRecord, SessionSummary};
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::paging::{PageQuery, page};
use crate::problem::ApiError;
use crate::view::{SessionView, view};

/// Characters of a message in a list (chosen: a few lines).
const SHOWN: usize = 600;

pub(crate) async fn list(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let (history, tenant) = (&*asked.parts.history, asked.tenant);
    let query = PageQuery::of(&asked.query)?;
    let all = history.sessions(tenant, usize::MAX >> 1).await?;
    let (sessions, next) = query.take(all, |one| one.session.to_string())?;
    let gathered = history.efficiency(tenant, Gathering::Session).await?;
    let efficiencies: BTreeMap<_, _> =
        gathered.iter().filter_map(|one| Some((one.session.as_ref()?, one))).collect();
    let mut items = Vec::new();
    for one in &sessions {
        let efficiency = efficiencies.get(&one.session).copied();
        items.push(written(asked, one, efficiency).await?);
    }
    Ok(page(items, next.as_deref()))
}

pub(crate) async fn one(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let summary = summary(asked).await?;
    let gathered = asked.parts.history.efficiency(asked.tenant, Gathering::Session).await?;
    let efficiency = gathered.iter().find(|one| one.session.as_ref() == Some(&summary.session));
    let mut session = written(asked, &summary, efficiency).await?;
    session["sub_agents"] = sub_agents(asked, &summary).await?;
    let view = view(asked.views, &*asked.parts.history, asked.tenant, summary).await?;
    session["reported"] = json!(reported(&view, asked.parts.policies.pricing()));
    Ok(session)
}

/// Lists the sessions of a session's sub-agents: their ids begin with its own.
async fn sub_agents(asked: &ApiRequest<'_>, parent: &SessionSummary) -> Result<Value, ApiError> {
    let all = asked.parts.history.sessions(asked.tenant, usize::MAX >> 1).await?;
    let mut agents = Vec::new();
    for one in
        all.iter().filter(|one| parent_of(one.session.as_str()) == Some(parent.session.as_str()))
    {
        agents.push(written(asked, one, None).await?);
    }
    Ok(json!(agents))
}

/// Returns the id of the session that a sub-agent works for: the part before the name of the agent.
fn parent_of(id: &str) -> Option<&str> {
    id.rsplit_once(':').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

/// Returns the session that the path names.
pub(crate) async fn summary(asked: &ApiRequest<'_>) -> Result<SessionSummary, ApiError> {
    let session = asked.query.session()?;
    let found = asked.parts.history.session(asked.tenant, &session).await?;
    found.ok_or_else(|| ApiError::NotFound(format!("session `{session}`")))
}

/// Writes a session; its model is that of one of its last messages, and its title begins what the user said first.
async fn written(
    asked: &ApiRequest<'_>,
    session: &SessionSummary,
    efficiency: Option<&Efficiency>,
) -> Result<Value, ApiError> {
    let history = &*asked.parts.history;
    let from = session.messages.saturating_sub(20);
    let last = history.messages(asked.tenant, &session.session, from, 20).await?;
    let model = last.iter().rev().find_map(|record| record.message.model.clone());
    let first = history.messages(asked.tenant, &session.session, 0, 8).await?;
    let texts = first.iter().filter(|record| record.message.role == Role::User);
    let texts: Vec<String> =
        texts.map(|record| record.message.shown()).filter(|text| !text.is_empty()).collect();
    let title = texts.iter().find(|text| !is_wrapping(text)).or_else(|| texts.first());
    let title = title.map(|text| line(text, 120));
    let pressure = pressure(session.tokens, &ContextBudget::default());
    let bills = efficiency.map(|one| one.bills).filter(|bills| bills.requests_billed > 0);
    Ok(json!({
        "id": session.session,
        "parent": parent_of(session.session.as_str()),
        "title": title,
        "model": model,
        "messages": session.messages,
        "tokens": session.tokens,
        "first_at": session.first_at,
        "last_at": session.last_at,
        "said_at": last.iter().rev().find_map(|record| record.message.time),
        "pressure": pressure.percent,
        "decisions": efficiency.map_or(0, |one| one.selections),
        "tokens_saved": efficiency.map(|one| one.tokens_saved),
        "bill": bills.map(|bills| json!({
            "requests": bills.requests_billed,
            "billed": bills.dollars_billed,
            "without": bills.dollars_without,
            "estimated_requests": bills.bills_estimated,
        })),
    }))
}

/// Returns whether a text is what a client puts before the words of its user.
fn is_wrapping(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('<') || text.starts_with("# AGENTS.md") || text.starts_with("Caveat:")
}

/// Writes the requests of a session whose providers reported usage, added up; `None` where none did.
fn reported(view: &SessionView, pricing: &Pricing) -> Option<Value> {
    let model = view.model();
    let (mut requests, mut cost, mut prompt, mut cached) = (0_u64, 0.0, 0_u64, 0_u64);
    for message in &view.messages {
        let Some(usage) = message.usage.filter(|usage| usage.prompt_tokens > 0) else { continue };
        let priced = pricing.of(message.model.as_deref().or(model), message.time);
        requests += 1;
        cost += priced.prices.billed(&usage);
        prompt += usage.prompt_tokens;
        cached += usage.cached_tokens;
    }
    let bill = causes(view, pricing);
    (requests > 0).then(|| {
        json!({
            "requests": requests, "cost": cost, "prompt_tokens": prompt, "cached_tokens": cached,
            "bill": bill,
        })
    })
}

/// Writes where the reported money went, by row of the bill; cache misses have a row for each cause.
fn causes(view: &SessionView, pricing: &Pricing) -> Value {
    let requests = plimsoll_formats::requests_of(&view.messages);
    let mut bill = RecordedBill::new(pricing, None);
    bill.add(&BilledSession {
        client: "",
        id: "",
        folder: None,
        started: None,
        model: view.model(),
        requests: &requests,
        tools_used: 0,
    });
    let rows = Row::ALL.iter().filter_map(|row| {
        let amount = bill.total.amount(*row);
        let is_miss = serde_json::to_value(row).ok()?.as_str()?.starts_with("again");
        (amount.tokens > 0.0).then(|| {
            json!({"row": row, "tokens": amount.tokens.round(), "cost": amount.dollars, "is_miss": is_miss})
        })
    });
    rows.collect()
}

pub(crate) async fn messages(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let session = summary(asked).await?.session;
    let query = PageQuery::of(&asked.query)?;
    let from = query.number()?;
    let history = &*asked.parts.history;
    let mut records = history.messages(asked.tenant, &session, from, query.limit + 1).await?;
    let has_more = records.len() > query.limit;
    records.truncate(query.limit);
    let next = records.last().filter(|_| has_more).map(|record| record.position.to_string());
    Ok(page(records.iter().map(message), next.as_deref()))
}

/// Writes a stored message with the beginning of its text.
pub(crate) fn message(record: &MessageRecord) -> Value {
    let text = record.message.shown();
    let shown = head(&text, Limit::Characters(SHOWN));
    json!({
        "session": record.session,
        "position": record.position,
        "turn": record.turn,
        "role": record.message.role.as_str(),
        "model": record.message.model,
        "time": record.message.time,
        "tokens": record.tokens,
        "ref": Ref::message(record.hash).to_string(),
        "text": shown,
        "characters": text.chars().count(),
    })
}

pub(crate) async fn receipts(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let session = summary(asked).await?.session;
    let query = PageQuery::of(&asked.query)?;
    let all = asked.parts.history.receipts(asked.tenant, &session).await?;
    let key = |one: &plimsoll_engine::ReceiptRecord| format!("{}:{}", one.turn, one.strategy);
    let (receipts, next) = query.take(all, key)?;
    let items = receipts.iter().map(|one| {
        json!({
            "turn": one.turn,
            "strategy": one.strategy,
            "full_messages": one.full_history_size,
            "messages": one.context_size,
            "changed_messages": one.masked_count,
            "tokens_saved": one.tokens_saved,
            "bill": one.bill,
            "recorded_at": one.recorded_at,
            "receipt": serde_json::from_str::<Value>(&one.receipt).unwrap_or_default(),
        })
    });
    Ok(page(items, next.as_deref()))
}

pub(crate) async fn metrics(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let by = match asked.query.get("by") {
        None | Some("session") => Gathering::Session,
        Some("cascade") => Gathering::Cascade,
        Some(other) => return Err(ApiError::Invalid(format!("`by` is not `{other}`"))),
    };
    let query = PageQuery::of(&asked.query)?;
    let all = asked.parts.history.efficiency(asked.tenant, by).await?;
    let key = |one: &Efficiency| {
        let session = one.session.as_ref().map(ToString::to_string);
        session.or_else(|| one.cascade_id.clone()).unwrap_or_else(|| "-".to_owned())
    };
    let (found, next) = query.take(all, key)?;
    let items = found.iter().map(|one| serde_json::to_value(one).unwrap_or_default());
    Ok(page(items, next.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_client_are_no_titles() {
        for text in
            ["<environment_context>x", "# AGENTS.md instructions for /a", " <b>", "Caveat: x"]
        {
            assert!(is_wrapping(text), "{text}");
        }
        for text in ["Fix the test.", "# Plan", "a < b"] {
            assert!(!is_wrapping(text), "{text}");
        }
    }
}
