//! Marks of our own, and the places where the provider's cache has an entry.

use crate::cost::{Cache, CacheKind, RequestPieces};
use crate::message::MillisSinceEpoch;
use crate::plan::{Context, Plan};
use crate::terms::Terms;
use crate::transcript::Position;

/// Finds the places of marks of our own, as indexes into `context`, ascending.
///
/// One mark stands before the new messages: the next change happens there or later and finds an entry just before it. A change of this
/// request may leave the longest entry that still fits too far before all marks; then one stands at that entry.
pub(super) fn own_marks(
    terms: &Terms,
    context: &Context,
    fresh: Position,
    (cache, plain): (&Cache, &RequestPieces),
    at: Option<MillisSinceEpoch>,
) -> Vec<usize> {
    let free = terms.around.free_marks;
    if terms.prices.cache != CacheKind::Marks || free == 0 {
        return Vec::new();
    }
    let read = |own: &[usize]| {
        let mut marked = plain.clone();
        for at in own {
            marked.mark(at + 1, terms.around.life());
        }
        cache.read(&terms.prices, &marked, at)
    };
    let before = context.iter().rposition(|sent| sent.position.is_some_and(|at| at < fresh));
    let before: Vec<usize> = before.into_iter().collect();
    // The first piece is the tools and the system prompt.
    let longest = cache.last_end(&terms.prices, plain, at).and_then(|end| end.checked_sub(1));
    let there = longest.map_or(0.0, |end| plain.tokens_to(end + 1));
    let Some(longest) = longest.filter(|_| there > read(&before)) else { return before };
    let mut both = vec![longest];
    if free > 1 {
        both.extend(before.into_iter().filter(|&at| at > longest));
    }
    both
}

/// Returns for each message whether an entry of the provider's cache ends with it now.
pub(super) fn entry_ends(
    terms: &Terms,
    plan: &Plan,
    cache: &Cache,
    at: Option<MillisSinceEpoch>,
) -> Vec<bool> {
    let mut ends = vec![false; plan.decisions().len()];
    let context = plan.sent();
    let pieces = RequestPieces::new(terms.pieces(context.iter().map(|sent| &***sent), &[]));
    for end in cache.ends(&terms.prices, &pieces, at) {
        // The first piece is the tools and the system prompt.
        let sent = end.checked_sub(1).and_then(|at| context.get(at));
        if let Some(position) = sent.and_then(|sent| sent.position) {
            ends[position] = true;
        }
    }
    ends
}
