//! Pins and drops: which messages stay whole and which may go first, by whose wish.
//!
//! The user, the agent and the settings wish; passes follow. A pinned message is protected in every policy and gives way only
//! where the ceiling cannot be met otherwise. A dropped one goes as soon as that costs nothing or pays.

mod again;
mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::choose::Reason;
use crate::hash::Ref;
use crate::message::Role;
use crate::plan::{Plan, members};
use crate::policy::PinSettings;
use crate::transcript::{Position, Transcript};

pub use again::{PinnedText, missing, written};

use standing::Standing;

/// The kind of a wish for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WishKind {
    /// It stays whole.
    Pin,
    /// It may go first.
    Drop,
    /// Earlier wishes for it are taken back.
    Undo,
}

impl WishKind {
    /// Returns the kind's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Drop => "drop",
            Self::Undo => "undo",
        }
    }
}

/// The one who wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WishedBy {
    User,
    Agent,
}

/// A wish for a message; the last one for it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The number in the log of its session; a wish that came with a request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    pub kind: WishKind,
    /// The first hex digits of the message's hash.
    #[serde(rename = "ref")]
    pub prefix: String,
    pub by: WishedBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

impl Wish {
    /// Makes a wish of the user; `None` where `reference` is no ref and no 8 or more hex digits of one.
    pub fn of_user(kind: WishKind, reference: &str) -> Option<Self> {
        let prefix = Ref::prefix(reference.trim())?;
        Some(Self { number: None, kind, prefix, by: WishedBy::User, why: None })
    }
}

/// The wishes of a session, and the messages that the settings pin in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins {
    wishes: Vec<Wish>,
    standing: Standing,
    /// Messages that stand in whole behind a message of the user.
    shown_again: BTreeSet<Position>,
    /// Pinned texts that wait for a message of the user to stand behind.
    again: Vec<PinnedText>,
    /// Those that found one.
    placed: Vec<PinnedText>,
}

/// The messages of a request by what is wished for them.
#[derive(Debug, Default)]
pub(crate) struct SortedPins {
    pub(crate) pinned: BTreeMap<Position, Reason>,
    pub(crate) dropped: BTreeSet<Position>,
}

/// A pinned or dropped message in a receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PinRecord {
    pub position: Position,
    #[serde(rename = "ref")]
    pub original: Ref,
    #[serde(serialize_with = "crate::choose::tagged")]
    pub reason: Reason,
    /// The reason that the agent gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
}

/// Pins and drops of a request, as its receipt has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PinReceipt {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinRecord>,
    /// Dropped messages, those that have not gone yet too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<PinRecord>,
    /// Refs of pinned texts that stand behind a message of the user, since the client left their messages out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<String>,
}

impl PinReceipt {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Pins {
    pub(crate) fn wish(&mut self, wishes: impl IntoIterator<Item = Wish>) {
        self.wishes.extend(wishes);
    }

    /// Takes texts that the client left out, to stand behind the next message of the user.
    pub(crate) fn show_again(&mut self, texts: impl IntoIterator<Item = PinnedText>) {
        self.again.extend(texts);
    }

    /// Returns the text that is to stand behind a message of the user from this request on.
    ///
    /// `locked` are pinned messages that are not whole, and may not be made whole where they stand.
    pub(crate) fn place(
        &mut self,
        transcript: &Transcript,
        locked: impl IntoIterator<Item = Position>,
    ) -> Option<String> {
        for position in locked {
            if self.shown_again.insert(position) {
                self.again.extend(PinnedText::of(transcript, position, None));
            }
        }
        if self.again.is_empty() {
            return None;
        }
        let text = written(&self.again);
        self.placed.append(&mut self.again);
        Some(text)
    }

    /// Returns the messages before `end` by what is wished for them.
    pub(crate) fn sort(
        &mut self,
        transcript: &Transcript,
        end: Position,
        settings: Option<&PinSettings>,
    ) -> SortedPins {
        self.standing.read(transcript, end, settings);
        let mut sorted = SortedPins::default();
        for (position, reason) in self.standing.pinned() {
            sorted.pinned.insert(position, reason);
        }
        let mut wished: BTreeMap<Position, WishKind> = BTreeMap::new();
        for wish in &self.wishes {
            for position in asked_for(transcript, end, wish) {
                wished.insert(position, wish.kind);
            }
        }
        for (position, kind) in wished {
            match kind {
                WishKind::Pin => drop(sorted.pinned.insert(position, Reason::Pinned)),
                WishKind::Drop => {
                    sorted.pinned.remove(&position);
                    sorted.dropped.insert(position);
                }
                WishKind::Undo => {}
            }
        }
        sorted
    }

    pub(crate) fn receipt(&self, transcript: &Transcript, sorted: &SortedPins) -> PinReceipt {
        let entries = transcript.entries();
        let record = |position: Position, reason: Reason| PinRecord {
            position,
            original: Ref::message(entries[position].hash),
            reason,
            why: self.why(transcript, position),
        };
        PinReceipt {
            pinned: sorted.pinned.iter().map(|(&at, &reason)| record(at, reason)).collect(),
            dropped: sorted.dropped.iter().map(|&at| record(at, Reason::Dropped)).collect(),
            again: self.placed.iter().map(|text| text.reference.clone()).collect(),
        }
    }

    fn why(&self, transcript: &Transcript, position: Position) -> Option<Arc<str>> {
        let hash = transcript.entries()[position].hash.full();
        let last = self.wishes.iter().rev().find(|wish| hash.starts_with(&wish.prefix));
        last.and_then(|wish| wish.why.clone())
    }

    /// Returns the texts of all that is pinned, for a conversation that goes on without these messages.
    pub(crate) fn texts(
        &mut self,
        transcript: &Transcript,
        settings: Option<&PinSettings>,
    ) -> Vec<PinnedText> {
        let sorted = self.sort(transcript, transcript.entries().len(), settings);
        let mut texts = self.placed.clone();
        texts.extend(self.again.iter().cloned());
        for &position in sorted.pinned.keys() {
            let title = self.standing.title(position);
            let new = PinnedText::of(transcript, position, title);
            texts.extend(new.filter(|new| texts.iter().all(|one| one.reference != new.reference)));
        }
        texts
    }
}

/// Returns the messages before `end` that a wish names; a dropped call takes its results with it.
fn asked_for(transcript: &Transcript, end: Position, wish: &Wish) -> Vec<Position> {
    let entries = &transcript.entries()[..end];
    let Some(first) = transcript.find(&wish.prefix) else { return Vec::new() };
    let hash = transcript.entries()[first].hash;
    let alike = entries.iter().enumerate().filter(|(_, entry)| entry.hash == hash);
    let mut positions: Vec<Position> = alike.map(|(position, _)| position).collect();
    if wish.kind != WishKind::Pin {
        let calls = positions.clone().into_iter();
        let calls = calls.filter(|at| entries[*at].message.role == Role::Assistant);
        positions.extend(calls.flat_map(|call| members(transcript, call, end)));
    }
    positions
}

impl SortedPins {
    /// Protects what is pinned, from every later pass.
    pub(crate) fn protect(&self, plan: &mut Plan) {
        for (&position, &reason) in &self.pinned {
            plan.protect(position, reason);
        }
    }

    /// Protects what is pinned together with the rest of its exchanges, from a pass that leaves out single messages.
    pub(crate) fn protect_exchanges(&self, transcript: &Transcript, plan: &mut Plan) {
        let end = plan.decisions().len();
        for (&position, &reason) in &self.pinned {
            for member in members(transcript, position, end) {
                plan.protect(member, reason);
            }
        }
    }
}

#[cfg(test)]
mod tests;
