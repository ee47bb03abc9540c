//! A record as it is made, confirmed and changed by an event.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::extract::normalised;
use plimsoll_core::memory::lifecycle::{Event, Lifecycle};
use plimsoll_core::memory::score::{OPERATOR, first_state};
use plimsoll_core::memory::write::{Levels, Statement, levels};
use plimsoll_core::memory::{MemoryKind, MemoryState, Outcome};

use super::{Details, MemoryError, NewMemory, Novelty, Remember};
use crate::memory::{MemoryId, MemoryRecord};

impl Remember<'_> {
    /// Makes the record of something new.
    pub(super) fn record(
        &self,
        new: NewMemory,
        id: MemoryId,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let confidence = new.confidence.unwrap_or_else(|| self.confidence.of(&new.origin));
        let details = Details {
            text: new.text,
            name: new.name,
            points: new.points,
            sources: new.source_ref.iter().cloned().collect(),
            own_summary: new.summary.is_some(),
            expires_at: new.expires_at,
            severity: (new.kind == MemoryKind::Censor).then_some(new.severity),
            happened_at: (new.kind == MemoryKind::Episode).then(|| new.event_at.unwrap_or(now)),
            has_summary: (new.kind == MemoryKind::Episode)
                .then_some(new.summary.is_some() || new.full.is_some()),
            ..Details::default()
        };
        let mut record = MemoryRecord {
            tenant: self.tenant.clone(),
            id,
            kind: new.kind,
            state: first_state(new.kind),
            scope: new.scope,
            micro: String::new(),
            summary: new.summary,
            full: new.full,
            origin: new.origin,
            confidence,
            source_ref: new.source_ref,
            tags: new.tags,
            event_at: new.event_at,
            created_at: now,
            updated_at: now,
            superseded_by: None,
            embedding: None,
            details: String::new(),
        };
        details.put_in(&mut record)?;
        write_levels(&mut record);
        if let Some(outcome) = new.outcome.filter(|outcome| *outcome != Outcome::Pending) {
            record = self.changed(&record, &Event::WorkDone, now)?;
            record = self.changed(&record, &Event::Reviewed(outcome), now)?;
        }
        Ok(record)
    }

    /// Confirms a record that was met again.
    pub(super) fn again(
        &self,
        mut known: MemoryRecord,
        new: &NewMemory,
        now: MillisSinceEpoch,
    ) -> Result<(MemoryRecord, Novelty), MemoryError> {
        let mut details = Details::of(&known);
        let same = normalised(&details.text) == normalised(&new.text)
            && normalised(&details.name) == normalised(&new.name);
        if !same || known.kind != new.kind {
            // An id that follows from the text is taken by another text only if that is a correction.
            return match &new.id {
                Some(_) => Err(MemoryError::Taken { id: known.id }),
                None => Ok((known, Novelty::Known)),
            };
        }
        let source = new.source_ref.as_ref();
        // Without a source nobody can tell a repetition from a confirmation.
        let is_new_source = source.is_some_and(|source| !details.sources.contains(source));
        let is_fact = matches!(Lifecycle::from(&known), Lifecycle::Fact(_));
        let counts =
            matches!(known.state, MemoryState::New | MemoryState::Confirmed | MemoryState::Core);
        // What the operator says again is the operator's from then on; nobody else takes a record over.
        let is_raised = new.origin == OPERATOR && known.origin != OPERATOR;
        if !(is_raised || is_new_source && is_fact && counts) {
            return Ok((known, Novelty::Known));
        }
        if is_raised {
            known.origin.clone_from(&new.origin);
            known.confidence = known.confidence.max(self.confidence.operator);
        }
        details.sources.extend(source.filter(|_| is_new_source).cloned());
        details.put_in(&mut known)?;
        let known = if is_new_source && is_fact && counts {
            self.changed(&known, &Event::Confirmed, now)?
        } else {
            known.updated_at = later(&known, now);
            known
        };
        Ok((known, Novelty::Confirmed))
    }

    /// Returns a record as an event leaves it.
    pub(super) fn changed(
        &self,
        record: &MemoryRecord,
        event: &Event,
        now: MillisSinceEpoch,
    ) -> Result<MemoryRecord, MemoryError> {
        let life = Lifecycle::from(record).after(event, now, self.lifecycles)?;
        let mut changed = record.clone();
        changed.state = life.state();
        let mut details = Details::of(record);
        details.take(&life);
        details.put_in(&mut changed)?;
        write_levels(&mut changed);
        if changed != *record {
            changed.updated_at = later(record, now);
        }
        Ok(changed)
    }
}

/// Writes what a context may show of a record.
pub(super) fn write_levels(record: &mut MemoryRecord) {
    let details = Details::of(record);
    let said = Statement {
        text: &details.text,
        name: &details.name,
        points: &details.points,
        result: &details.result,
        outcome: details.outcome,
        confidence: f64::from(record.confidence),
    };
    // A record that somebody else stored has no text of its own to write from.
    if details.text.is_empty() && details.name.is_empty() {
        return;
    }
    let Levels { micro, summary } = levels(record.kind, &said);
    record.micro = micro;
    if !details.own_summary {
        record.summary = summary;
    }
}

/// Returns the time of a change: after the one before, so that both can be asked for.
pub(super) fn later(record: &MemoryRecord, now: MillisSinceEpoch) -> MillisSinceEpoch {
    now.max(MillisSinceEpoch(record.updated_at.0.saturating_add(1)))
}
