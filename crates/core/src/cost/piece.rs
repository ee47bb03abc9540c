//! A request in pieces, as a provider's cache reads it.

use serde::{Deserialize, Serialize};

/// The life that a client asks for an entry.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// The provider's shortest life.
    #[default]
    Short,
    /// The longer life, which costs more to write.
    Long,
}

/// A part of a request in the order in which a provider reads it: tools, system prompt, messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// A digest of its content.
    pub key: u64,
    pub tokens: f64,
    /// Content blocks in it; a look-back counts them.
    pub blocks: u32,
    /// The mark at its end.
    pub mark: Option<Life>,
}

/// A request as the cache reads it: its pieces, and for each the digest and the tokens of the prefix up to its end.
///
/// Made once for each request, since it grows with the conversation; marks change no prefix.
#[derive(Debug, Clone)]
pub(crate) struct RequestPieces {
    pub(super) pieces: Vec<Piece>,
    pub(super) prefixes: Vec<(u64, f64)>,
}

impl RequestPieces {
    pub(crate) fn new(pieces: Vec<Piece>) -> Self {
        let prefixes = prefixes(&pieces);
        Self { pieces, prefixes }
    }

    /// Sets a mark at the end of a piece that has none.
    pub(crate) fn mark(&mut self, piece: usize, life: Life) {
        if let Some(piece) = self.pieces.get_mut(piece) {
            piece.mark = piece.mark.or(Some(life));
        }
    }

    /// Returns the keys of the messages; the first piece is the tools and the system prompt.
    pub(crate) fn message_keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.pieces.iter().skip(1).map(|piece| piece.key)
    }

    /// Returns the tokens up to the end of a piece.
    pub(crate) fn tokens_to(&self, piece: usize) -> f64 {
        self.prefixes[piece].1
    }
}

/// Returns for each piece the digest and the tokens of the prefix up to its end.
fn prefixes(pieces: &[Piece]) -> Vec<(u64, f64)> {
    let (mut digest, mut tokens) = (0_u64, 0.0);
    pieces
        .iter()
        .map(|piece| {
            // The finalizer of SplitMix64 over the prefix so far: equal prefixes, equal digests.
            let mut mixed = digest.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ piece.key;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            digest = mixed ^ (mixed >> 31);
            tokens += piece.tokens;
            (digest, tokens)
        })
        .collect()
}
