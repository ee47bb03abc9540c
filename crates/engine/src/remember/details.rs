//! The fields of a record that only its kind has, as they stand in its `details`.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::{
    CensorLifecycle, DecisionLifecycle, EpisodeLifecycle, FactLifecycle, Lifecycle,
    ProcedureLifecycle, Severity,
};
use plimsoll_core::memory::{MemoryKind, Outcome};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::memory::MemoryRecord;

/// The content of `details`; empty fields are not written, unknown ones stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// The source text of the levels.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Whether the summary was given and is not written anew.
    #[serde(skip_serializing_if = "is_false")]
    pub own_summary: bool,
    /// The refs of all texts that say it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<MillisSinceEpoch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Facts.
    #[serde(skip_serializing_if = "is_none")]
    pub confirmations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_confirmed: Option<MillisSinceEpoch>,
    /// Procedures and censors.
    #[serde(skip_serializing_if = "is_none")]
    pub activations: u32,
    #[serde(skip_serializing_if = "is_none")]
    pub successes: u32,
    #[serde(skip_serializing_if = "is_none")]
    pub false_positives: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<MillisSinceEpoch>,
    /// Episodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened_at: Option<MillisSinceEpoch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_summary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extracted: Option<bool>,
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Details {
    /// Reads the details of a record; damaged ones are none.
    pub fn of(record: &MemoryRecord) -> Self {
        serde_json::from_str(&record.details).unwrap_or_default()
    }

    /// Writes them into a record.
    pub(super) fn put_in(&self, record: &mut MemoryRecord) -> Result<(), StoreError> {
        record.details =
            serde_json::to_string(self).map_err(|error| StoreError::Other(Box::new(error)))?;
        Ok(())
    }

    /// Takes over what an event changed.
    pub(super) fn take(&mut self, life: &Lifecycle) {
        match life {
            Lifecycle::Fact(fact) => {
                self.confirmations = fact.confirmations;
                self.last_confirmed = fact.last_confirmed;
                self.superseded_by.clone_from(&fact.superseded_by);
            }
            Lifecycle::Episode(episode) => {
                self.happened_at = Some(episode.happened_at);
                self.has_summary = Some(episode.has_summary);
                self.extracted = Some(episode.extracted);
            }
            Lifecycle::Procedure(procedure) => {
                self.activations = procedure.activations;
                self.successes = procedure.successes;
                self.superseded_by.clone_from(&procedure.superseded_by);
            }
            Lifecycle::Censor(censor) => {
                self.severity = Some(censor.severity);
                self.activations = censor.activations;
                self.false_positives = censor.false_positives;
                self.superseded_by.clone_from(&censor.superseded_by);
            }
            Lifecycle::Decision(decision) => {
                self.outcome = Some(decision.outcome);
                self.reviewed_at = decision.reviewed_at;
                self.superseded_by.clone_from(&decision.superseded_by);
            }
        }
    }
}

impl From<&MemoryRecord> for Lifecycle {
    /// Reads a record as its lifecycle sees it: the state from the record, the rest from its details.
    fn from(record: &MemoryRecord) -> Self {
        let details = Details::of(record);
        let state = record.state;
        match record.kind {
            MemoryKind::Entity
            | MemoryKind::Task
            | MemoryKind::Metric
            | MemoryKind::Link
            | MemoryKind::Fact => Self::Fact(FactLifecycle {
                state,
                confirmations: details.confirmations,
                last_confirmed: details.last_confirmed,
                superseded_by: details.superseded_by,
            }),
            MemoryKind::Decision => Self::Decision(DecisionLifecycle {
                state,
                outcome: details.outcome.unwrap_or(Outcome::Pending),
                reviewed_at: details.reviewed_at,
                superseded_by: details.superseded_by,
            }),
            MemoryKind::Procedure => Self::Procedure(ProcedureLifecycle {
                state,
                activations: details.activations,
                successes: details.successes,
                superseded_by: details.superseded_by,
            }),
            MemoryKind::Censor => Self::Censor(CensorLifecycle {
                state,
                severity: details.severity.unwrap_or_default(),
                activations: details.activations,
                false_positives: details.false_positives,
                superseded_by: details.superseded_by,
            }),
            MemoryKind::Episode => Self::Episode(EpisodeLifecycle {
                state,
                happened_at: details.happened_at.or(record.event_at).unwrap_or(record.created_at),
                has_summary: details.has_summary.unwrap_or(record.summary.is_some()),
                extracted: details.extracted.unwrap_or(false),
            }),
        }
    }
}
