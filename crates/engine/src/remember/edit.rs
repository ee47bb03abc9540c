//! Correcting what a record says.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::score::OPERATOR;
use plimsoll_core::safety::{Handling, redact};

use super::record::{later, write_levels};
use super::{Details, MemoryError, Remember};
use crate::memory::MemoryRecord;

/// A correction of a record; fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    pub text: Option<String>,
    pub name: Option<String>,
    /// Why a decision was taken; the steps of a procedure.
    pub points: Option<Vec<String>>,
    pub tags: Option<Vec<String>>,
}

impl Edit {
    pub(super) fn redacted(mut self, handling: Handling) -> Self {
        let clean = |text: &mut String| *text = redact(text, handling).0.into_owned();
        self.text.iter_mut().for_each(clean);
        self.name.iter_mut().for_each(clean);
        self.points.iter_mut().flatten().for_each(clean);
        self.tags.iter_mut().flatten().for_each(clean);
        self
    }
}

impl Remember<'_> {
    /// Returns a record as an edit leaves it.
    pub(super) fn edited(
        &self,
        record: MemoryRecord,
        edit: &Edit,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let mut changed = record.clone();
        let mut details = Details::of(&record);
        // A record that somebody else stored has no text of its own to write from.
        if details.text.is_empty() && details.name.is_empty() {
            details.text.clone_from(&record.micro);
        }
        details.text = edit.text.clone().unwrap_or(details.text);
        details.name = edit.name.clone().unwrap_or(details.name);
        details.points = edit.points.clone().unwrap_or(details.points);
        // The levels are written anew from what it says now.
        details.own_summary = false;
        details.put_in(&mut changed)?;
        changed.tags = edit.tags.clone().unwrap_or(changed.tags);
        if changed.details == record.details && changed.tags == record.tags {
            return Ok(record);
        }
        changed.summary = None;
        changed.full = None;
        write_levels(&mut changed);
        OPERATOR.clone_into(&mut changed.origin);
        changed.confidence = self.confidence.operator;
        changed.embedding = None;
        changed.updated_at = later(&record, now);
        Ok(changed)
    }
}
