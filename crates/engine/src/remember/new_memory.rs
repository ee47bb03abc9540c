//! A record that a caller wants remembered.

use std::borrow::Cow;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::extract::normalised;
use plimsoll_core::memory::lifecycle::Severity;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::memory::{MemoryKind, Outcome};
use plimsoll_core::safety::{Handling, redact};
use serde::{Deserialize, Serialize};

use super::{Details, MemoryError};
use crate::memory::{MemoryId, MemoryRecord, Scope};
use crate::valid::digest;

/// Something to be remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    /// Without one it follows from kind, scope and text.
    #[serde(default)]
    pub id: Option<MemoryId>,
    pub kind: MemoryKind,
    #[serde(default)]
    pub scope: Scope,
    /// One sentence: what was decided, is so, is to be done, happened; of a censor why, of a procedure what it is for.
    #[serde(default)]
    pub text: String,
    /// The name of a procedure, the pattern of a censor.
    #[serde(default)]
    pub name: String,
    /// Why a decision was taken; the steps of a procedure.
    #[serde(default)]
    pub points: Vec<String>,
    /// In the place of the written one.
    #[serde(default)]
    pub summary: Option<String>,
    /// All there is; only asked for by id.
    #[serde(default)]
    pub full: Option<String>,
    #[serde(default = "operator")]
    pub origin: String,
    #[serde(default)]
    pub confidence: Option<f32>,
    /// The ref of the text that it was taken from.
    #[serde(default)]
    pub source_ref: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub event_at: Option<MillisSinceEpoch>,
    /// After this it is shown no more.
    #[serde(default)]
    pub expires_at: Option<MillisSinceEpoch>,
    /// Censors only.
    #[serde(default)]
    pub severity: Severity,
    /// Decisions only.
    #[serde(default)]
    pub outcome: Option<Outcome>,
}

fn operator() -> String {
    OPERATOR.to_owned()
}

impl NewMemory {
    /// Makes a record of `kind` by the operator that says `text` and nothing else.
    pub fn new(kind: MemoryKind, text: impl Into<String>) -> Self {
        Self {
            id: None,
            kind,
            scope: Scope::default(),
            text: text.into(),
            name: String::new(),
            points: Vec::new(),
            summary: None,
            full: None,
            origin: operator(),
            confidence: None,
            source_ref: None,
            tags: Vec::new(),
            event_at: None,
            expires_at: None,
            severity: Severity::Warn,
            outcome: None,
        }
    }

    /// Returns the id that follows from what is said and for whom, whatever the case, spacing and session.
    pub(super) fn own_id(&self) -> MemoryId {
        id_of(self.kind, &self.scope, &self.name, &self.text, &self.points)
    }

    pub(super) fn redacted(mut self, handling: Handling) -> Self {
        let clean = |text: &mut String| {
            if let (Cow::Owned(without), _) = redact(text, handling) {
                *text = without;
            }
        };
        clean(&mut self.text);
        clean(&mut self.name);
        self.points.iter_mut().for_each(clean);
        self.summary.iter_mut().for_each(clean);
        self.full.iter_mut().for_each(clean);
        self.tags.iter_mut().for_each(clean);
        self
    }
}

/// Returns the id that follows from what a record says now, which may be another than it has.
pub(crate) fn content_id(record: &MemoryRecord) -> MemoryId {
    let details = Details::of(record);
    let text = if details.text.is_empty() && details.name.is_empty() {
        &record.micro
    } else {
        &details.text
    };
    id_of(record.kind, &record.scope, &details.name, text, &details.points)
}

fn id_of(kind: MemoryKind, scope: &Scope, name: &str, text: &str, points: &[String]) -> MemoryId {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let parts = [
        kind.as_str().to_owned(),
        part(&scope.workspace),
        part(&scope.user),
        part(&scope.agent),
        normalised(name),
        normalised(text),
        points.iter().map(|point| normalised(point)).collect::<Vec<_>>().join("\u{1e}"),
    ];
    MemoryId(digest(parts.join("\u{1f}").as_bytes())[..16].to_owned())
}

/// Checks that a record says what its kind needs.
pub(super) fn complete(new: &NewMemory) -> Result<(), MemoryError> {
    let kind = new.kind;
    let incomplete = |what| Err(MemoryError::Incomplete { kind, what });
    let is_empty = |text: &str| text.trim().is_empty();
    match kind {
        MemoryKind::Procedure if is_empty(&new.name) => incomplete("a name"),
        MemoryKind::Procedure if is_empty(&new.text) && new.points.iter().all(|p| is_empty(p)) => {
            incomplete("a text or steps")
        }
        MemoryKind::Censor if is_empty(&new.name) && is_empty(&new.text) => {
            incomplete("a pattern or a reason")
        }
        MemoryKind::Procedure | MemoryKind::Censor => Ok(()),
        _ if is_empty(&new.text) => incomplete("a text"),
        _ => Ok(()),
    }
}
