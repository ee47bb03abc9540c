//! `plimsoll memory list` and `show`, and how records are printed.

use std::fmt::Write as _;

use plimsoll_engine::{MemoryId, MemoryQuery, MemoryRecord, SearchQuery};
use serde::Serialize;

use super::{Desk, add, details, refused, scope};
use crate::arguments::{ListArguments, ShowArguments};
use crate::clock;
use crate::error::CommandError;
use crate::output::{self, DIM, RESET};

pub(super) fn run(arguments: &ListArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let query = MemoryQuery {
        kinds: arguments.kinds.clone(),
        scope: scope(&arguments.scope)?,
        tags: arguments.tags.clone(),
        all_states: arguments.all || arguments.state.is_some(),
        search: SearchQuery {
            limit: if arguments.state.is_some() { usize::MAX >> 1 } else { arguments.limit },
            ..SearchQuery::default()
        },
    };
    let hits = desk
        .ask(async |_, knowledge, tenant| knowledge.memories(tenant, &query).await)?
        .map_err(|error| refused(error.into()))?;
    let mut records: Vec<MemoryRecord> = hits.into_iter().map(|hit| hit.item).collect();
    records.retain(|record| arguments.state.is_none_or(|state| record.state == state));
    records.truncate(arguments.limit);
    print_all(&records, arguments.plain.json)
}

pub(super) fn show(arguments: &ShowArguments) -> Result<(), CommandError> {
    let desk = Desk::open_existing(&arguments.plain)?;
    let id = MemoryId(arguments.id.clone());
    let as_of = add::date(arguments.as_of.as_deref())?;
    let record = desk
        .ask(async |_, knowledge, tenant| knowledge.memory(tenant, &id, as_of).await)?
        .map_err(|error| refused(error.into()))?;
    if arguments.plain.json {
        return output::json(&Printed::of(&record, None));
    }
    let source = desk
        .ask(async |history, _, tenant| super::review::source(history, tenant, &record).await)?
        .map_err(|error| refused(error.into()))?;
    let mut page = page(&record);
    if let Some(source) = source {
        let _ = writeln!(page, "{:12} {source}", "message");
    }
    output::page(&page)
}

/// A record as JSON shows it: its vector is a count of numbers, its details are fields.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
    id: &'a str,
    kind: &'static str,
    state: &'static str,
    micro: &'a str,
    summary: Option<&'a str>,
    full: Option<&'a str>,
    origin: &'a str,
    confidence: f32,
    scope: &'a plimsoll_engine::Scope,
    source_ref: Option<&'a str>,
    tags: &'a [String],
    event_at: Option<plimsoll_core::MillisSinceEpoch>,
    created_at: plimsoll_core::MillisSinceEpoch,
    updated_at: plimsoll_core::MillisSinceEpoch,
    superseded_by: Option<&'a str>,
    embedding_model: Option<&'a str>,
    details: plimsoll_engine::remember::Details,
}

impl<'a> Printed<'a> {
    fn of(record: &'a MemoryRecord, similarity: Option<f64>) -> Self {
        Self {
            similarity,
            id: &record.id.0,
            kind: record.kind.as_str(),
            state: record.state.as_str(),
            micro: &record.micro,
            summary: record.summary.as_deref(),
            full: record.full.as_deref(),
            origin: &record.origin,
            confidence: record.confidence,
            scope: &record.scope,
            source_ref: record.source_ref.as_deref(),
            tags: &record.tags,
            event_at: record.event_at,
            created_at: record.created_at,
            updated_at: record.updated_at,
            superseded_by: record.superseded_by.as_ref().map(|id| &*id.0),
            embedding_model: record.embedding.as_ref().map(|embedding| &*embedding.model),
            details: details(record),
        }
    }
}

pub(super) fn print(record: &MemoryRecord, json: bool) -> Result<(), CommandError> {
    if json {
        return output::json(&Printed::of(record, None));
    }
    output::page(&line(record, None))
}

pub(super) fn print_all(records: &[MemoryRecord], json: bool) -> Result<(), CommandError> {
    if json {
        return output::json(
            &records.iter().map(|record| Printed::of(record, None)).collect::<Vec<_>>(),
        );
    }
    if records.is_empty() {
        return output::data("no records\n");
    }
    output::page(&records.iter().map(|record| line(record, None)).collect::<String>())
}

pub(super) fn print_found(found: &[(MemoryRecord, f64)], json: bool) -> Result<(), CommandError> {
    if json {
        let printed = found.iter().map(|(record, like)| Printed::of(record, Some(*like)));
        return output::json(&printed.collect::<Vec<_>>());
    }
    if found.is_empty() {
        return output::data("no record has to do with these words\n");
    }
    output::page(&found.iter().map(|(record, like)| line(record, Some(*like))).collect::<String>())
}

/// Writes a record on two lines: what it is, and what it says.
pub(super) fn line(record: &MemoryRecord, similarity: Option<f64>) -> String {
    let mut out = output::line(&record.id.0, 40);
    if let Some(similarity) = similarity {
        let _ = write!(out, "  {similarity:.2}");
    }
    let _ = write!(
        out,
        "  {DIM}{}, {}, by {}, {:.0} %{RESET}",
        record.kind.as_str(),
        record.state.as_str(),
        output::line(&record.origin, 20),
        f64::from(record.confidence) * 100.0
    );
    if let Some(by) = &record.superseded_by {
        let _ = write!(out, "{DIM}, superseded by {}{RESET}", output::line(&by.0, 40));
    }
    let name = details(record).name;
    let text = match (&*name, &*record.micro) {
        ("", text) | (text, "") => text.to_owned(),
        (name, text) if name == text => text.to_owned(),
        (name, text) => format!("{name}: {text}"),
    };
    let _ = writeln!(out, "\n    {}", output::line(&text, 110));
    out
}

/// Writes all there is of a record.
fn page(record: &MemoryRecord) -> String {
    let mut out = line(record, None);
    let mut field = |name: &str, text: &str| {
        if !text.is_empty() {
            let mut lines = text.lines().map(output::plain);
            let _ = writeln!(out, "{name:12} {}", lines.next().unwrap_or_default());
            for line in lines {
                let _ = writeln!(out, "{:12} {line}", "");
            }
        }
    };
    let details = details(record);
    let scope = &record.scope;
    field("summary", record.summary.as_deref().unwrap_or_default());
    field("full", record.full.as_deref().unwrap_or_default());
    field("tags", &record.tags.join(", "));
    field("workspace", scope.workspace.as_deref().unwrap_or_default());
    field("user", scope.user.as_deref().unwrap_or_default());
    field("session", scope.session.as_ref().map_or("", |session| session.as_str()));
    field("agent", scope.agent.as_deref().unwrap_or_default());
    field("sources", &details.sources.join(", "));
    field("happened", &record.event_at.map(clock::date).unwrap_or_default());
    field("recorded", &clock::date(record.created_at));
    field("changed", &clock::date(record.updated_at));
    field("expires", &details.expires_at.map(clock::date).unwrap_or_default());
    if details.confirmations > 0 {
        field("confirmed", &format!("{} times", details.confirmations));
    }
    if details.activations > 0 {
        let worked = format!("{} times, {} worked", details.activations, details.successes);
        let spoke = format!("{} times, {} wrong", details.activations, details.false_positives);
        let is_censor = record.kind == plimsoll_core::memory::MemoryKind::Censor;
        field("used", if is_censor { &spoke } else { &worked });
    }
    field("outcome", details.outcome.map_or("", |outcome| outcome.as_str()));
    field("result", &details.result);
    out
}
