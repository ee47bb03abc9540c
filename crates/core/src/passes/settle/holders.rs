//! The message that holds a name, a run of words or a line: eight bytes each, for there are as many as a session has words.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::names::Key;
use crate::transcript::Position;

/// The last place of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// In this result, and in results before it only.
    Result(Position),
    /// In something that is never hidden.
    Safe,
}

/// Bits of a slot that hold the place; the others are the highest of the key.
///
/// Of 100,000 keys, one in 170 million others has the same 44 bits as one of them, and counts as that.
const PLACE_BITS: u32 = 20;
/// The place that stands for [`Holder::Safe`], and for results behind the millionth message.
const SAFE: u64 = (1 << PLACE_BITS) - 1;

/// The holder of each key.
#[derive(Debug, Clone, Default)]
pub(super) struct Holders {
    slots: HashTable<u64>,
}

impl Holders {
    pub(super) fn get(&self, key: Key) -> Option<Holder> {
        let slot = self.slots.find(hash(key), |slot| is_of(*slot, key))?;
        Some(match slot & SAFE {
            SAFE => Holder::Safe,
            place => Holder::Result(place as Position),
        })
    }

    /// Puts a holder in the place of the one before.
    pub(super) fn put(&mut self, key: Key, holder: Holder) {
        let new = slot(key, holder);
        match self.entry(key) {
            Entry::Occupied(mut known) => *known.get_mut() = new,
            Entry::Vacant(free) => {
                free.insert(new);
            }
        }
    }

    /// Adds a holder of a key; a key that is safe stays so.
    pub(super) fn hold(&mut self, key: Key, holder: Holder) {
        let new = slot(key, holder);
        match self.entry(key) {
            Entry::Occupied(known) if *known.get() & SAFE == SAFE => {}
            Entry::Occupied(mut known) => *known.get_mut() = new,
            Entry::Vacant(free) => {
                free.insert(new);
            }
        }
    }

    fn entry(&mut self, key: Key) -> Entry<'_, u64> {
        self.slots.entry(hash(key), |slot| is_of(*slot, key), |slot| hash(*slot))
    }
}

fn slot(key: Key, holder: Holder) -> u64 {
    let place = match holder {
        Holder::Result(position) => (position as u64).min(SAFE),
        Holder::Safe => SAFE,
    };
    key & !SAFE | place
}

fn is_of(slot: u64, key: Key) -> bool {
    (slot ^ key) >> PLACE_BITS == 0
}

/// Hashes the part of a key that a slot has, its highest bits: the table takes the lowest bits and the seven highest.
fn hash(key: Key) -> u64 {
    key >> PLACE_BITS | key & !(u64::MAX >> PLACE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn what_is_safe_stays_safe_and_results_follow_each_other() {
        let mut holders = Holders::default();
        let held = [
            ("both", Holder::Safe),
            ("safe", Holder::Safe),
            ("both", Holder::Result(3)),
            ("result", Holder::Result(3)),
            ("result", Holder::Result(4)),
        ];
        for (word, holder) in held {
            holders.hold(names::key(word), holder);
        }
        let get = |word| holders.get(names::key(word));
        assert_eq!(get("both"), Some(Holder::Safe));
        assert_eq!(get("safe"), Some(Holder::Safe));
        assert_eq!(get("result"), Some(Holder::Result(4)));
        assert_eq!(get("other"), None);
        holders.put(names::key("safe"), Holder::Result(5));
        assert_eq!(holders.get(names::key("safe")), Some(Holder::Result(5)));
    }

    #[test]
    fn a_result_behind_the_millionth_message_counts_as_safe() {
        let mut holders = Holders::default();
        for (position, holder) in
            [(SAFE as usize - 1, Holder::Result(SAFE as usize - 1)), (SAFE as usize, Holder::Safe)]
        {
            holders.put(7 << PLACE_BITS, Holder::Result(position));
            assert_eq!(holders.get(7 << PLACE_BITS), Some(holder));
        }
    }

    #[test]
    fn many_keys_keep_their_holders() {
        let mut holders = Holders::default();
        for position in 0..50_000 {
            holders.put(names::key(&position.to_string()), Holder::Result(position));
        }
        for position in 0..50_000 {
            let found = holders.get(names::key(&position.to_string()));
            assert_eq!(found, Some(Holder::Result(position)), "{position}");
        }
    }
}
