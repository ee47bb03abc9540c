//! Compares the cache hits that the model of the cache predicts with the reported ones.

use serde::Serialize;

use crate::cost::{Cache, CacheKind, Life, Piece, Prices};

use super::{Request, rate};

/// Reported and predicted cached tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Prediction {
    /// Requests that continue another one; the first of a conversation may read entries of other conversations.
    pub requests: u64,
    pub prompt: f64,
    pub reported: f64,
    pub predicted: f64,
    /// The sum of the absolute differences.
    pub error: f64,
    /// Requests that read less than predicted by at least a tenth of their prompt.
    pub misses: u64,
}

impl Prediction {
    /// Adds the sums of another prediction.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.prompt += other.prompt;
        self.reported += other.reported;
        self.predicted += other.predicted;
        self.error += other.error;
        self.misses += other.misses;
    }
}

/// Plays a session's requests through the model of the cache and compares.
///
/// Sizes come from the reported prompts: each request adds a piece to those of the request that it continues. If a prompt
/// shrank, pieces are removed from the end until the rest fits.
pub fn predict(requests: &[Request], prices: &[Prices]) -> Prediction {
    let rate = rate(requests).tokens_per_character;
    let mut sum = Prediction::default();
    let mut cache = Cache::default();
    // The piece that each request added, and all pieces of the last one, which the next request nearly always continues.
    let mut added: Vec<Piece> = Vec::with_capacity(requests.len());
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, (request, prices)) in requests.iter().zip(prices).enumerate() {
        let prompt = request.usage.prompt_tokens as f64;
        let life = if request.usage.written_long_tokens > 0 { Life::Long } else { Life::Short };
        let earlier = request.continues.filter(|earlier| *earlier < index);
        match earlier {
            None => {
                let shown = request.added.visible() as f64 * rate;
                let system = Piece {
                    key: !(index as u64),
                    tokens: (prompt - shown).max(0.0),
                    blocks: 1,
                    mark: Some(life),
                };
                pieces = vec![system];
            }
            Some(earlier) if earlier + 1 == index => {}
            Some(earlier) => pieces = chain(requests, &added, pieces.first().copied(), earlier),
        }
        if request.compacted {
            pieces.truncate(1);
        }
        for piece in pieces.iter_mut().skip(1) {
            piece.mark = None;
        }
        let mut known: f64 = pieces.iter().map(|piece| piece.tokens).sum();
        while known > prompt && pieces.len() > 1 {
            known -= pieces.pop().map_or(0.0, |last| last.tokens);
        }
        let piece = Piece {
            key: index as u64 + 1,
            tokens: (prompt - known).max(0.0),
            blocks: request.added.blocks.max(1),
            mark: Some(life),
        };
        added.push(piece);
        pieces.push(piece);
        // A request that neither wrote nor read had no marks.
        let is_marked = request.usage.written_tokens + request.usage.cached_tokens > 0;
        if prices.cache == CacheKind::Marks && !is_marked {
            continue;
        }
        let charge = cache.charge(prices, &pieces, request.sent);
        if earlier.is_some() {
            let reported = request.usage.cached_tokens as f64;
            sum.requests += 1;
            sum.prompt += prompt;
            sum.reported += reported;
            sum.predicted += charge.cached;
            sum.error += (charge.cached - reported).abs();
            sum.misses += u64::from(charge.cached - reported > prompt / 10.0);
        }
    }
    sum
}

/// Returns the pieces of an earlier request, from the pieces that it and its predecessors added.
fn chain(requests: &[Request], added: &[Piece], system: Option<Piece>, from: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = Some(from);
    while let Some(index) = at {
        pieces.extend(added.get(index));
        at = requests[index].continues.filter(|earlier| *earlier < index);
    }
    pieces.extend(system);
    pieces.reverse();
    pieces
}
