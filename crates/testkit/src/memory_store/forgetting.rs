//! Forgetting a scope or a source with everything that came from it.

use std::collections::HashSet;

use plimsoll_core::Ref;
use plimsoll_engine::{Artefact, ArtefactRef, Forgotten, Scope, SessionId, source_tombstone};

use super::{Arrival, MemoryHistory, Records, remove};

impl Records {
    pub(super) fn forget(&mut self, scope: &Scope) -> Forgotten {
        let memories = self.forget_memories(|memory| scope.covers(&memory.present.scope));
        let Some(session) = scope.session_alone() else {
            return Forgotten { memories, ..Forgotten::default() };
        };
        let messages = self.messages.get(session.as_str()).into_iter().flatten();
        let messages: Vec<String> =
            messages.map(|message| Ref::message(message.hash).to_string()).collect();
        let is_gone = |artefact: &mut Artefact| artefact.session.as_ref() == Some(session);
        let artefacts = self.artefacts.extract_if(.., |_, artefact| is_gone(artefact));
        let artefacts: Vec<String> = artefacts.map(|(_, it)| it.reference.print()).collect();
        let refs: HashSet<&String> = messages.iter().chain(&artefacts).collect();
        let jobs = self.jobs.extract_if(.., |job| job.job.session.as_ref() == Some(session));
        Forgotten {
            artefacts: artefacts.len() as u64,
            memories,
            answers: remove(&mut self.answers, |it| it.used_refs.iter().any(|r| refs.contains(r))),
            jobs: jobs.count() as u64,
            ..self.forget_history(session)
        }
    }

    /// Removes the messages, receipts and cards of a session.
    pub(super) fn forget_history(&mut self, session: &SessionId) -> Forgotten {
        self.receipts.retain(|_, receipt| receipt.session != *session);
        self.arrivals.retain(|arrival| match arrival {
            Arrival::Message(of, _) | Arrival::Receipt(of, _, _) => of != session.as_str(),
        });
        let messages = self.messages.remove(session.as_str()).unwrap_or_default();
        let cards = remove(&mut self.cards, |card| card.session == *session);
        Forgotten { messages: messages.len() as u64, cards, ..Forgotten::default() }
    }

    pub(super) fn forget_source(&mut self, source: &str) -> Forgotten {
        self.tombstones.insert(source_tombstone(source));
        Forgotten {
            memories: self
                .forget_memories(|memory| memory.present.source_ref.as_deref() == Some(source)),
            artefacts: remove(&mut self.artefacts, |artefact| {
                let whole = ArtefactRef { view: None, ..artefact.reference.clone() };
                whole.print() == source || artefact.reference.print() == source
            }),
            answers: remove(&mut self.answers, |it| it.used_refs.iter().any(|r| r == source)),
            ..Forgotten::default()
        }
    }

    pub(super) fn forget_memories(&mut self, is_gone: impl Fn(&MemoryHistory) -> bool) -> u64 {
        let gone = self.memories.values().filter(|memory| is_gone(memory));
        self.tombstones.extend(gone.flat_map(|memory| memory.present.tombstones()));
        let count = remove(&mut self.memories, is_gone);
        self.memory_version.epoch += i64::from(count > 0);
        count
    }
}
