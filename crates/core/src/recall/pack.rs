//! Packing: the best messages that fit.

use super::date::written;
use crate::choose::{self, Candidate, Room, Whole};
use crate::message::MillisSinceEpoch;

/// The result of packing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Places in the ranking, in its order.
    pub places: Vec<usize>,
    /// Tokens of all of them, never above the budget.
    pub tokens: u64,
    /// Messages passed over because they did not fit, before the last that did.
    pub passed_over: usize,
}

/// Takes messages in the order of their ranking until the budget is full; one that does not fit is passed over.
///
/// `sizes` are tokens with all that stands around a message. Stops early once not even the smallest would fit.
pub fn pack(sizes: impl IntoIterator<Item = u32>, budget: u64) -> Packed {
    let whole = |(source, tokens)| Whole { source, tokens: u64::from(tokens) };
    let sizes = sizes.into_iter().enumerate();
    let room = Room { least: SMALLEST, ..Room::new(budget) };
    let choice = choose::pack(sizes.map(|size| Candidate::in_order(whole(size))), &room);
    let places: Vec<usize> = choice.picks.iter().map(|pick| pick.candidate.source.source).collect();
    let is_between = |place| places.last().is_some_and(|last| place < *last);
    let skipped = choice.left_out.iter().filter(|(one, _)| is_between(one.source.source));
    Packed { passed_over: skipped.count(), tokens: choice.tokens, places }
}

/// Tokens that a message with its header has at least: brackets, a separator, a colon and a line break.
const SMALLEST: u64 = 5;

/// Writes the header of a message: `[id | time] speaker: `.
pub fn header(id: &str, time: Option<MillisSinceEpoch>, speaker: &str) -> String {
    match time {
        Some(time) => format!("[{id} | {}] {speaker}: ", written(time)),
        None => format!("[{id}] {speaker}: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_passed_over() {
        let packed = pack([40, 80, 30, 30, 20], 100);
        assert_eq!((packed.places, packed.tokens, packed.passed_over), (vec![0, 2, 3], 100, 1));
        assert_eq!(pack([40], 0).places, [0; 0]);
        assert_eq!(pack([], 10).tokens, 0);
    }

    #[test]
    fn headers_tell_id_time_and_speaker() {
        let time = Some(MillisSinceEpoch(1_683_554_160_000));
        assert_eq!(header("D1:3", time, "Ann"), "[D1:3 | 2023-05-08T13:56:00] Ann: ");
        assert_eq!(header("7", None, "user"), "[7] user: ");
    }
}
