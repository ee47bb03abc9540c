//! Memory records: listed, written, corrected, changed and forgotten; and the frames.

use plimsoll_core::memory::lifecycle::Event;
use plimsoll_engine::remember::{Details, Edit, NewMemory, Remember};
use plimsoll_engine::{MemoryId, MemoryKind, MemoryQuery, MemoryRecord, MemoryState, SearchQuery};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::ApiRequest;
use crate::paging::{PageQuery, page};
use crate::problem::ApiError;
use crate::query::body;

/// The origin of records that a caller writes: whoever holds the key is the user, and may not write as the operator.
const ORIGIN: &str = "user";

fn desk<'a>(asked: &'a ApiRequest<'_>) -> Remember<'a> {
    let parts = asked.parts;
    Remember {
        knowledge: &*parts.knowledge,
        embedder: parts.embedder.as_deref(),
        tenant: asked.tenant,
        lifecycles: &parts.memory.lifecycles,
        confidence: &parts.memory.confidence,
        handling: parts.handling,
    }
}

fn id(asked: &ApiRequest<'_>) -> MemoryId {
    MemoryId(asked.query.path("id").to_owned())
}

pub(crate) async fn list(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let paging = PageQuery::of(&asked.query)?;
    let kind: Option<MemoryKind> = asked.query.named("kind")?;
    let state: Option<MemoryState> = asked.query.named("state")?;
    let query = MemoryQuery {
        kinds: kind.into_iter().collect(),
        all_states: state.is_some() || asked.query.get("all") == Some("true"),
        search: SearchQuery {
            text: asked.query.get("query").map(str::to_owned),
            limit: usize::MAX >> 1,
            ..SearchQuery::default()
        },
        ..MemoryQuery::default()
    };
    let hits = asked.parts.knowledge.memories(asked.tenant, &query).await?;
    let records = hits.into_iter().map(|hit| hit.item);
    let records = records.filter(|record| state.is_none_or(|state| record.state == state));
    let (records, next) = paging.take(records, |record| record.id.0.clone())?;
    Ok(page(records.iter().map(written), next.as_deref()))
}

pub(crate) async fn one(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    Ok(written(&asked.parts.knowledge.memory(asked.tenant, &id(asked), None).await?))
}

/// The body of `addMemory`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddBody {
    text: String,
    #[serde(default = "usual_kind")]
    kind: MemoryKind,
    #[serde(default)]
    name: String,
    #[serde(default)]
    points: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    source_ref: Option<String>,
}

fn usual_kind() -> MemoryKind {
    MemoryKind::Fact
}

pub(crate) async fn add(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let AddBody { text, kind, name, points, tags, source_ref } = body(&asked.body)?;
    let origin = ORIGIN.to_owned();
    let new = NewMemory { name, points, tags, source_ref, origin, ..NewMemory::new(kind, text) };
    let (record, novelty) = desk(asked).add(new, asked.parts.clock.now()).await?;
    Ok(json!({"novelty": novelty, "record": written(&record)}))
}

/// The body of `editMemory`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditBody {
    text: Option<String>,
    name: Option<String>,
    points: Option<Vec<String>>,
    tags: Option<Vec<String>>,
}

pub(crate) async fn edit(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let EditBody { text, name, points, tags } = body(&asked.body)?;
    let edit = Edit { text, name, points, tags };
    if edit == Edit::default() {
        return Err(ApiError::Invalid("nothing is to be changed".to_owned()));
    }
    let now = asked.parts.clock.now();
    Ok(written(&desk(asked).edit(&id(asked), &edit, now).await?))
}

pub(crate) async fn forget(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let id = id(asked);
    asked.parts.knowledge.memory(asked.tenant, &id, None).await?;
    let gone = desk(asked).forget(&[id]).await?;
    Ok(json!({"forgotten": gone.memories}))
}

/// The events that a caller may report.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemoryEvent {
    Confirmed,
    Marked,
    Disproved,
    Retired,
    /// The user has read the record and keeps it.
    Reviewed,
}

/// The body of `changeMemory`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    event: MemoryEvent,
}

pub(crate) async fn change(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let ChangeBody { event } = body(&asked.body)?;
    let (desk, id, now) = (desk(asked), id(asked), asked.parts.clock.now());
    let event = match event {
        MemoryEvent::Reviewed => return Ok(written(&desk.keep(&id, now).await?)),
        MemoryEvent::Confirmed => Event::Confirmed,
        MemoryEvent::Marked => Event::Marked,
        MemoryEvent::Disproved => Event::Disproved,
        MemoryEvent::Retired => Event::Retired,
    };
    Ok(written(&desk.change(&id, &event, now).await?))
}

/// Writes a record without its vector.
fn written(record: &MemoryRecord) -> Value {
    json!({
        "id": record.id,
        "kind": record.kind.as_str(),
        "state": record.state.as_str(),
        "micro": record.micro,
        "summary": record.summary,
        "full": record.full,
        "origin": record.origin,
        "confidence": record.confidence,
        "scope": record.scope,
        "source_ref": record.source_ref,
        "tags": record.tags,
        "event_at": record.event_at,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "superseded_by": record.superseded_by,
        "details": Details::of(record),
    })
}

pub(crate) fn frames(asked: &ApiRequest<'_>) -> Value {
    let frames = asked.parts.frames.iter().map(|frame| {
        json!({
            "name": frame.name,
            "description": frame.description,
            "questions": frame.questions,
        })
    });
    json!({"items": frames.collect::<Vec<_>>()})
}
