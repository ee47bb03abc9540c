//! Usage as a provider reports it: the cache is that of [`plimsoll_core::cost::Cache`].

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::cost::{self, CacheKind, Charge, Piece, Prices};
use plimsoll_wire::Wire;
use serde_json::Value;

use super::pieces::{hash, messages};

/// Tokens of one request and its answer, as they are reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// Plain, neither read from the cache nor written to it.
    pub input: u64,
    pub cache_read: u64,
    /// Where the provider says what is written; elsewhere it is plain input.
    pub cache_written: u64,
    /// Of it, for the longer life.
    pub cache_written_long: u64,
    pub output: u64,
}

impl ReportedUsage {
    /// Returns the report of a charge. Providers whose cache has steps take nothing for a write and do not report it.
    pub(crate) fn of(charge: &Charge, cache: CacheKind, output: u64) -> Self {
        // Sums of whole numbers, save what is read in steps, which is whole too.
        let [read, written, long, plain] =
            [charge.cached, charge.written, charge.written_long, charge.plain]
                .map(|tokens| tokens as u64);
        let reported = if cache == CacheKind::Steps { (0, 0) } else { (written, long) };
        Self {
            input: plain + written - reported.0,
            cache_read: read,
            cache_written: reported.0,
            cache_written_long: reported.1,
            output,
        }
    }
}

/// How a request continues the one before it in the same conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Continuity {
    /// Tools, system blocks, messages and their blocks of this request.
    pub segments: usize,
    /// How many the request before had; 0 at the first.
    pub before: usize,
    /// How many of those stand at the beginning, alike.
    pub alike: usize,
}

impl Continuity {
    /// Whether something that was sent before has changed or is gone.
    pub fn is_broken(&self) -> bool {
        self.alike < self.before
    }
}

/// What the provider has read before.
#[derive(Debug, Default)]
pub(crate) struct PromptCaches {
    /// Of all models: the keys of pieces hold the model, so none reads what another has written.
    cache: cost::Cache,
    conversations: HashMap<u64, Vec<u64>>,
}

impl PromptCaches {
    /// Charges a request made at `now` and keeps its prefixes for the next. A time that is not known counts as warm.
    pub(crate) fn charge(
        &mut self,
        prices: &Prices,
        pieces: &[Piece],
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        self.cache.charge(prices, pieces, now)
    }

    /// Says how a request continues the one before it. `sent` are its pieces before the provider takes anything out.
    pub(crate) fn continuity(&self, wire: Wire, body: &Value, sent: &[Piece]) -> Continuity {
        let before = self.conversations.get(&conversation(wire, body));
        let before = before.map(Vec::as_slice).unwrap_or_default();
        let alike = before.iter().zip(sent).take_while(|(before, now)| **before == now.key);
        Continuity { segments: sent.len(), before: before.len(), alike: alike.count() }
    }

    /// Remembers a request that is answered; one that is refused continues nothing.
    pub(crate) fn remember(&mut self, wire: Wire, body: &Value, sent: &[Piece]) {
        let keys = sent.iter().map(|piece| piece.key).collect();
        self.conversations.insert(conversation(wire, body), keys);
    }
}

/// Returns the key of a conversation: its first question, and whether it has tools, since clients ask beside a session too (for
/// its title, say), then without them.
fn conversation(wire: Wire, body: &Value) -> u64 {
    let mut key = DefaultHasher::new();
    body["tools"].is_null().hash(&mut key);
    if let Some(first) = messages(wire, body).iter().find(|item| item["role"] == "user") {
        hash(first, &mut key);
    }
    key.finish()
}
