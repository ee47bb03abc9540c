//! A conversation: what a client calls one session, with the branches that it took.
//!
//! History only grows, so a client that goes back, edits what it said or compacts goes on in a branch: a session of its own that has
//! the messages which both have, and every decision on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_core::cost::Pricing;
use plimsoll_core::pins::PinnedText;
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};

use super::rebuild::load;
use super::{Bounded, CacheRead, LiveSession, Note, RequestPins, SessionRequest};
use crate::error::StoreError;
use crate::history::{Appended, Bill, HistoryBatch, HistoryStore};
use crate::id::{SessionId, TenantId};

/// Branches that are looked at and kept in memory: the first, from which most others left, and the newest (chosen: who goes back,
/// goes back to what is new).
const BRANCHES: usize = 16;

/// All branches of a conversation.
#[derive(Debug)]
pub struct Conversation {
    name: SessionId,
    /// The first and the newest ones, by their number.
    branches: BTreeMap<usize, Box<LiveSession>>,
    /// How many there are.
    count: usize,
}

/// Which branch a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchMatch {
    /// It goes on with this one.
    Same(usize),
    /// It left this one behind so many messages.
    Left { branch: usize, agreed: usize },
    /// Nothing of it is known.
    New,
}

/// Returns the name of the conversation that a request belongs to.
///
/// Agents within one session of a client differ in what they were first told, so a digest of that stands behind the name that the
/// client gave. What can be no id is digested too.
pub fn session_name(named: Option<&str>, own: &str, messages: &[Arc<Message>]) -> String {
    let Some(named) = named else { return own.to_owned() };
    let first = messages.iter().find(|message| message.role != Role::System);
    let first = first.map_or_else(String::new, |message| ContentHash::of(message).short());
    let readable = SessionId::new(named).is_ok() && named.len() <= 96;
    let name =
        if readable { named.to_owned() } else { crate::digest(named.as_bytes())[..32].to_owned() };
    format!("{name}:{}", first.get(..8).unwrap_or_default())
}

impl Conversation {
    /// Makes a conversation of which nothing is known.
    pub fn new(name: SessionId) -> Self {
        Self { name, branches: BTreeMap::new(), count: 0 }
    }

    /// Reads a conversation from the store; nothing is decided anew until a request needs it.
    pub async fn load(
        history: &dyn HistoryStore,
        tenant: &TenantId,
        name: SessionId,
    ) -> Result<Self, StoreError> {
        let mut conversation = Self::new(name);
        let count = conversation.counted(history, tenant).await?;
        let newest = count.saturating_sub(BRANCHES - 1).max(1)..count;
        for number in (0..count.min(1)).chain(newest) {
            let Ok(id) = conversation.id(number) else { break };
            if let Some(session) = load(history, tenant, id).await? {
                conversation.branches.insert(number, Box::new(session));
            }
        }
        conversation.count = count;
        Ok(conversation)
    }

    /// Counts the branches in the store: they have the numbers up to the first that is not there.
    async fn counted(
        &self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
    ) -> Result<usize, StoreError> {
        let is_there = async |number: usize| match self.id(number) {
            Ok(id) => Ok::<_, StoreError>(!history.messages(tenant, &id, 0, 1).await?.is_empty()),
            Err(_) => Ok(false),
        };
        // Doubled until one is not there, then halved between: most have one, and some have hundreds.
        let (mut there, mut beyond) = (0, 1);
        while is_there(beyond - 1).await? {
            (there, beyond) = (beyond, beyond * 2);
        }
        while there + 1 < beyond {
            let middle = usize::midpoint(there, beyond);
            if is_there(middle - 1).await? {
                there = middle;
            } else {
                beyond = middle;
            }
        }
        Ok(there)
    }

    fn id(&self, branch: usize) -> Result<SessionId, crate::id::InvalidId> {
        match branch {
            0 => Ok(self.name.clone()),
            number => SessionId::new(&format!("{}.{}", self.name, number + 1)),
        }
    }

    /// Returns about how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.branches.values().map(|branch| branch.bytes()).sum()
    }

    /// Returns a branch.
    pub fn branch(&self, branch: usize) -> Option<&LiveSession> {
        self.branches.get(&branch).map(|branch| &**branch)
    }

    /// Finds the branch of a request: the newest that it goes on with, else the one with which it has most in common.
    pub fn find(&mut self, messages: &[Arc<Message>]) -> BranchMatch {
        let mut nearest: Option<(usize, usize)> = None;
        for (&number, branch) in self.branches.iter_mut().rev() {
            let agreed = branch.agrees(messages);
            if branch.goes_on(agreed, messages.len()) {
                return BranchMatch::Same(number);
            }
            if nearest.is_none_or(|(_, most)| agreed > most) {
                nearest = Some((number, agreed));
            }
        }
        match nearest {
            // A system prompt alone is nothing in common.
            Some((branch, agreed))
                if messages[..agreed].iter().any(|message| message.role != Role::System) =>
            {
                BranchMatch::Left { branch, agreed }
            }
            _ => BranchMatch::New,
        }
    }

    /// Decides what the model is sent; returns the branch too.
    ///
    /// `None` where a branch can have no name.
    pub fn ask(
        &mut self,
        asked: &SessionRequest<'_>,
        pricing: &Pricing,
    ) -> Option<(usize, Bounded)> {
        let mut before = Vec::new();
        let branch = match self.find(asked.messages) {
            BranchMatch::Same(branch) => branch,
            BranchMatch::Left { branch, agreed } => {
                if asked.pins.is_compacted {
                    before = self.branches.get_mut(&branch)?.pinned_texts(pricing);
                }
                self.leave(branch, agreed)?
            }
            BranchMatch::New => {
                let id = self.id(self.count).ok()?;
                self.add(LiveSession::new(id, asked.model))
            }
        };
        let session = self.branches.get_mut(&branch)?;
        if before.is_empty() {
            return Some((branch, session.ask(asked, pricing)));
        }
        let pins = RequestPins { before, ..asked.pins.clone() };
        Some((branch, session.ask(&SessionRequest { pins, ..asked.clone() }, pricing)))
    }

    /// Returns the ids of the records that stand in the context which these messages go on from.
    pub fn shown_records(&mut self, messages: &[Arc<Message>]) -> BTreeSet<Arc<str>> {
        let (number, agreed) = match self.find(messages) {
            BranchMatch::Same(number) => (number, messages.len()),
            BranchMatch::Left { branch, agreed } => (branch, agreed),
            BranchMatch::New => return BTreeSet::new(),
        };
        let branch = self.branches.get(&number);
        let marks = branch.into_iter().flat_map(|branch| &branch.marks);
        let standing = marks.filter(|mark| mark.position <= agreed);
        standing.flat_map(|mark| mark.note.records.iter().cloned()).collect()
    }

    /// Returns whether nothing was said in it yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the text of the message whose hash begins with `prefix`, if one branch has just one such content.
    pub fn original(&self, prefix: &str) -> Option<String> {
        self.branches.values().rev().find_map(|branch| branch.original(prefix))
    }

    /// Returns the texts of all that is pinned in the newest branch.
    pub fn pinned_texts(&mut self, pricing: &Pricing) -> Vec<PinnedText> {
        let newest = self.branches.values_mut().next_back();
        newest.map_or_else(Vec::new, |branch| branch.pinned_texts(pricing))
    }

    fn leave(&mut self, branch: usize, agreed: usize) -> Option<usize> {
        let id = self.id(self.count).ok()?;
        let left = self.branches.get(&branch)?.branch(id, agreed);
        Some(self.add(left))
    }

    fn add(&mut self, session: LiveSession) -> usize {
        let number = self.count;
        self.count += 1;
        self.branches.insert(number, Box::new(session));
        if self.branches.len() > BRANCHES
            && let Some(oldest) = self.branches.keys().copied().find(|one| *one > 0)
        {
            self.branches.remove(&oldest);
        }
        number
    }

    /// Returns the branch that a request would go on with, without asking; its [`LiveSession::forms`] are those of the request.
    pub fn predict(&mut self, messages: &[Arc<Message>]) -> Option<&LiveSession> {
        let found = self.branches.iter_mut().rev().find_map(|(&number, branch)| {
            let agreed = branch.agrees(messages);
            let position = branch.last_request();
            (agreed >= position && position > 0).then_some(number)
        });
        self.branches.get(&found?).map(Box::as_ref)
    }

    /// Returns a copy that decides about these messages as this one would, for what asks without being a request.
    #[must_use]
    pub fn copy_for(&mut self, messages: &[Arc<Message>]) -> Self {
        let found = match self.find(messages) {
            BranchMatch::Same(branch) | BranchMatch::Left { branch, .. } => Some(branch),
            BranchMatch::New => None,
        };
        let branch = found.and_then(|number| Some((number, self.branches.get(&number)?.clone())));
        let (name, count) = (self.name.clone(), self.count);
        Self { name, branches: branch.into_iter().collect(), count }
    }

    /// Takes in what became of a request, and returns what the store has to have now, with its branch.
    ///
    /// An answer that has no place, for the same was asked twice and answered differently, begins a branch.
    pub fn answered(
        &mut self,
        branch: usize,
        bounded: &Bounded,
        answer: Option<Message>,
        note: &Note,
        now: MillisSinceEpoch,
    ) -> Option<(usize, HistoryBatch)> {
        let session = self.branches.get_mut(&branch)?;
        if session.answered(bounded, answer.clone(), note) {
            return Some((branch, session.unkept(now)));
        }
        let other = self.leave(branch, bounded.position)?;
        let session = self.branches.get_mut(&other)?;
        session.answered(bounded, answer, note);
        Some((other, session.unkept(now)))
    }

    /// Takes note that the provider's cache of a branch was kept warm by a read at `at`; returns what its receipt must say.
    pub fn read_again(
        &mut self,
        branch: usize,
        pricing: &Pricing,
        at: MillisSinceEpoch,
        bill: &Bill,
    ) -> Option<CacheRead> {
        self.branches.get_mut(&branch)?.read_again(pricing, at, bill)
    }

    /// Takes note that the store has a batch of a branch; see [`LiveSession::keep`].
    pub fn keep(&mut self, branch: usize, batch: &HistoryBatch, appended: Option<Appended>) {
        if let Some(session) = self.branches.get_mut(&branch) {
            session.keep(batch, appended);
        }
    }
}
