//! The choice of turns: by a seed, spread over sessions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::hash::ContentHash;

/// A turn of a recorded session, with the sizes of both contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSize {
    pub session: String,
    pub turn: u32,
    pub full_tokens: u64,
    pub tokens: u64,
    /// Whether the bounded context is the full one, so that both lead to the same step.
    pub is_same: bool,
}

/// The chosen turns, as indices in the order of the sessions, and counts of turns that were not eligible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SampledTurns {
    #[serde(skip)]
    pub chosen: Vec<usize>,
    pub eligible: usize,
    /// Turns whose contexts are the same.
    pub same: usize,
    /// Turns whose full context is longer than the limit.
    pub too_long: usize,
}

/// Chooses at most `number` turns whose contexts differ and whose full context has at most `most_tokens`.
///
/// Each session gives one turn before any gives a second, so that a long session does not decide alone. The same turns and
/// seed give the same choice, and a greater number keeps the turns of a smaller one.
pub fn sample(turns: &[TurnSize], number: usize, seed: u64, most_tokens: u64) -> SampledTurns {
    let mut sampled = SampledTurns::default();
    let seed = seed.to_string();
    let mut sessions: BTreeMap<&str, Vec<(u64, usize)>> = BTreeMap::new();
    for (index, turn) in turns.iter().enumerate() {
        if turn.is_same {
            sampled.same += 1;
        } else if turn.full_tokens > most_tokens {
            sampled.too_long += 1;
        } else {
            sampled.eligible += 1;
            let rank = ContentHash::of_texts(&[&seed, &turn.session, &turn.turn.to_string()]);
            sessions.entry(&turn.session).or_default().push((rank.key(), index));
        }
    }
    let mut ranked: Vec<(usize, u64, usize)> = Vec::new();
    for turns in sessions.values_mut() {
        turns.sort_unstable();
        ranked
            .extend(turns.iter().enumerate().map(|(round, (rank, index))| (round, *rank, *index)));
    }
    ranked.sort_unstable();
    sampled.chosen = ranked.into_iter().take(number).map(|(.., index)| index).collect();
    sampled.chosen.sort_unstable();
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Vec<TurnSize> {
        let turn = |(session, turn): (&str, u32)| TurnSize {
            session: session.to_owned(),
            turn,
            full_tokens: u64::from(turn) * 100,
            tokens: 50,
            is_same: turn < 2,
        };
        let long = (0..30).map(|at| ("long", at));
        long.chain((0..4).map(|at| ("short", at))).map(turn).collect()
    }

    #[test]
    fn a_seed_chooses_the_same_turns_and_more_keep_the_fewer() {
        let turns = turns();
        let few = sample(&turns, 4, 7, u64::MAX);
        assert_eq!(few, sample(&turns, 4, 7, u64::MAX));
        assert_ne!(few.chosen, sample(&turns, 4, 8, u64::MAX).chosen);
        let more = sample(&turns, 9, 7, u64::MAX);
        assert!(few.chosen.iter().all(|index| more.chosen.contains(index)));
    }

    #[test]
    fn each_session_has_its_share() {
        let turns = turns();
        let found = sample(&turns, 4, 1, u64::MAX);
        let short = found.chosen.iter().filter(|index| turns[**index].session == "short").count();
        assert_eq!((found.chosen.len(), short), (4, 2));
    }

    #[test]
    fn turns_that_tell_nothing_or_do_not_fit_are_counted() {
        let found = sample(&turns(), 100, 1, 1000);
        assert_eq!((found.same, found.too_long, found.eligible), (4, 19, 11));
        assert_eq!(found.chosen.len(), 11);
    }
}
