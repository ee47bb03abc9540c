//! Artefacts in memory.

use std::cmp::Reverse;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Artefact, ArtefactRef, AskedRef, RefQuery, StoreError, digest};

use super::{Records, StoreResult, not_found};

impl Records {
    /// Stores an artefact; one that is there keeps its content, its counters and its origin.
    pub(super) fn put_artefact(&mut self, artefact: &Artefact) {
        let ArtefactRef { kind, digest, view } = artefact.reference.clone();
        let kept = self.artefacts.entry((kind.0, digest, view)).or_insert_with(|| artefact.clone());
        kept.summary.clone_from(&artefact.summary);
        kept.compressed.clone_from(&artefact.compressed);
        kept.ttl_expires_at = artefact.ttl_expires_at;
        kept.freshness_score = artefact.freshness_score;
        kept.source_meta.clone_from(&artefact.source_meta);
    }

    pub(super) fn read_artefact(
        &mut self,
        asked: &AskedRef,
        now: MillisSinceEpoch,
    ) -> StoreResult<Artefact> {
        let all = self.artefacts.values_mut();
        let mut found: Vec<_> = all.filter(|it| asked.matches(&it.reference)).collect();
        // Whole artefacts come before views; the map has them by kind.
        found.sort_by_key(|artefact| artefact.reference.view.is_some());
        let Some((artefact, others)) = found.split_first_mut() else {
            return not_found(format!("artefact {}", asked.prefix));
        };
        if others.iter().any(|other| other.reference.digest != artefact.reference.digest) {
            let what = format!("several artefacts begin {}", asked.prefix);
            return Err(StoreError::Conflict { what });
        }
        if digest(&artefact.content) != artefact.reference.digest {
            return Err(StoreError::Corrupt { what: artefact.reference.print() });
        }
        artefact.access_count += 1;
        artefact.last_accessed_at = Some(now);
        Ok(artefact.clone())
    }

    /// Returns artefacts without their contents, newest first.
    pub(super) fn list_artefacts(&self, query: &RefQuery) -> Vec<Artefact> {
        let found = self
            .artefacts
            .values()
            .filter(|a| query.kind.as_ref().is_none_or(|kind| a.reference.kind == *kind))
            .filter(|a| query.session.is_none() || a.session == query.session);
        let mut found: Vec<_> =
            found.map(|a| Artefact { content: Vec::new(), ..a.clone() }).collect();
        found.sort_by_key(|a| (Reverse(a.created_at), a.reference.print()));
        found.truncate(query.limit);
        found
    }

    /// Removes the artefacts whose time ended before `before`.
    pub(super) fn collect_artefacts(&mut self, before: MillisSinceEpoch) -> Vec<ArtefactRef> {
        let has_ended = |a: &Artefact| a.ttl_expires_at.is_some_and(|end| end < before);
        let gone = self.artefacts.extract_if(.., |_, artefact| has_ended(artefact));
        let mut gone: Vec<_> = gone.map(|(_, artefact)| artefact.reference).collect();
        gone.sort_by_key(ArtefactRef::print);
        gone
    }
}
