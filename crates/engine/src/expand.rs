//! Expansion: the message or artefact behind a ref, whole or in part.

mod part;
mod path;

use plimsoll_core::{MillisSinceEpoch, Ref};

use crate::error::StoreError;
use crate::history::HistoryStore;
use crate::id::TenantId;
use crate::knowledge::KnowledgeStore;
use crate::memory::{MemoryId, Scope};

pub use part::{ContentPart, ExpandOptions, Expansion, Unit, expand_text};

/// The stores that hold the contents behind a tenant's refs.
#[derive(Debug, Clone, Copy)]
pub struct Originals<'a> {
    pub history: &'a dyn HistoryStore,
    /// Without it only messages are found.
    pub knowledge: Option<&'a dyn KnowledgeStore>,
    pub tenant: &'a TenantId,
    /// Who asks for records of memory; without it none is found.
    pub asker: Option<&'a Scope>,
}

/// Why nothing was expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// Nothing, or more than one content, is behind the ref, or the store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the content is not text but {bytes} bytes")]
    NotText { bytes: usize },
    #[error("the content is not JSON, so it has no fields")]
    NotJson,
    #[error("`{path}` is not a path such as items[0].title")]
    InvalidPath { path: String },
    #[error("none of the fields is there: {}", paths.join(", "))]
    NoField { paths: Vec<String> },
}

/// The beginning of a record's ref.
const MEMORY: &str = "ref:memory:";

/// Returns the part of a message, an artefact or a record of memory that `options` ask for.
///
/// `ref:message:…` and bare digits name a message; an artefact is looked for under any other ref, and where there is no such
/// message. `ref:memory:ID` names a record: its full text if there is one, else its summary, else its line. Shape: one field gives its value, several give an object from path to value. A slice of a list is a list.
pub async fn expand(
    originals: &Originals<'_>,
    reference: &str,
    options: &ExpandOptions,
    now: MillisSinceEpoch,
) -> Result<Expansion, ExpandError> {
    let Originals { history, knowledge, tenant, .. } = *originals;
    if let Some(id) = reference.strip_prefix(MEMORY) {
        return expand_text(&memory(originals, id, now).await?, options);
    }
    let mut unknown = StoreError::NotFound { what: reference.to_owned() };
    let may_be_message = reference.starts_with("ref:message:") || !reference.starts_with("ref:");
    if let Some(prefix) = Ref::prefix(reference).filter(|_| may_be_message) {
        match history.message_by_hash(tenant, &prefix).await {
            Ok(record) => return expand_text(&record.message.shown(), options),
            Err(error @ StoreError::NotFound { .. }) => unknown = error,
            Err(error) => return Err(error.into()),
        }
    }
    let Some(knowledge) = knowledge else { return Err(unknown.into()) };
    let artefact = knowledge.artefact(tenant, reference, now).await?;
    let bytes = artefact.content.len();
    let content =
        std::str::from_utf8(&artefact.content).map_err(|_| ExpandError::NotText { bytes })?;
    let mut expansion = expand_text(content, options)?;
    expansion.is_stale = artefact.is_stale(now);
    Ok(expansion)
}

/// Returns all there is of a record that the asker may see.
async fn memory(
    originals: &Originals<'_>,
    id: &str,
    now: MillisSinceEpoch,
) -> Result<String, StoreError> {
    let missing = || StoreError::NotFound { what: format!("memory {id:?}") };
    let (knowledge, asker) = originals.knowledge.zip(originals.asker).ok_or_else(missing)?;
    let record = knowledge.memory(originals.tenant, &MemoryId(id.to_owned()), None).await?;
    if !record.is_shown_to(asker, now) {
        return Err(missing());
    }
    let texts = [record.full, record.summary].into_iter().flatten();
    Ok(texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or(record.micro))
}
