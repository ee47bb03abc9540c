//! What a context shows: for each name and each run of words, how many messages show it.
//!
//! A name or run is looked up by its key once, when its text is read; from then on it is known by its place in a list,
//! because the counts are asked for whenever a message is weighed again.

use crate::names::{self, Key};
use crate::transcript::Position;

/// The place of a name among names, or of a run among runs.
pub(crate) type Slot = u32;

/// A table from keys to slots; whoever has the slots keeps the keys.
///
/// Most look-ups are of runs that nothing had before, one for each word that is read: here such a one reads eight bytes of
/// a table half the size of a `HashMap`, which was a fifth of the time of bounding a session.
#[derive(Debug, Default)]
struct Slots {
    /// The key's upper half, and the slot's number from 1; 0 is free.
    cells: Vec<u64>,
    used: usize,
}

impl Slots {
    /// Half a kilobyte: a gateway holds thousands of sessions of a few words.
    const LEAST: usize = 1 << 6;

    fn cell(key: Key, slot: Slot) -> u64 {
        (key & !0xFFFF_FFFF) | (u64::from(slot) + 1)
    }

    /// Returns the slot of `key`, or where it would stand.
    fn find(&self, key: Key, key_of: impl Fn(Slot) -> Key) -> Result<Slot, usize> {
        let mask = self.cells.len().wrapping_sub(1);
        let mut at = key as usize & mask;
        loop {
            let Some(&cell) = self.cells.get(at).filter(|cell| **cell != 0) else { return Err(at) };
            let slot = (cell as u32).wrapping_sub(1);
            if (cell ^ key) >> 32 == 0 && key_of(slot) == key {
                return Ok(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the slot of `key`, which is `next` where there was none.
    fn find_or_insert(&mut self, key: Key, next: Slot, key_of: impl Fn(Slot) -> Key) -> Slot {
        if self.used * 2 >= self.cells.len() {
            self.grow(&key_of);
        }
        match self.find(key, key_of) {
            Ok(slot) => slot,
            Err(at) => {
                self.cells[at] = Self::cell(key, next);
                self.used += 1;
                next
            }
        }
    }

    fn grow(&mut self, key_of: impl Fn(Slot) -> Key) {
        self.cells = vec![0; (self.cells.len() * 2).max(Self::LEAST)];
        for slot in 0..self.used as Slot {
            let key = key_of(slot);
            if let Err(at) = self.find(key, &key_of) {
                self.cells[at] = Self::cell(key, slot);
            }
        }
    }
}

/// How often a name is shown, and which text had it last, as its how manieth.
#[derive(Debug, Clone, Copy)]
struct Name {
    key: Key,
    shown: u32,
    text: u32,
    order: u32,
}

/// A name as a text has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) slot: Slot,
    /// How many other names the text had before it first.
    pub(crate) order: u32,
    pub(crate) first: bool,
}

/// How often a run is shown, which text had it last, and which message said it last.
#[derive(Debug, Clone, Copy)]
struct Run {
    key: Key,
    shown: u32,
    text: u32,
    holder: u32,
}

/// Names and runs that the context shows, counted by message.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    name_slots: Slots,
    names: Vec<Name>,
    run_slots: Slots,
    runs: Vec<Run>,
    /// Texts that were read, so that what a text repeats is told from what it has for the first time.
    texts: u32,
    /// Names of the text that was begun.
    found: u32,
}

impl Visible {
    /// Begins a text; what is looked up from here on is new to it once.
    pub(crate) fn begin(&mut self) {
        self.texts += 1;
        self.found = 0;
    }

    /// Looks up a name of the text that was begun.
    pub(crate) fn name(&mut self, name: Key) -> Found {
        let next = self.names.len() as Slot;
        let names = &self.names;
        let slot = self.name_slots.find_or_insert(name, next, |slot| names[slot as usize].key);
        if slot == next {
            self.names.push(Name { key: name, shown: 0, text: 0, order: 0 });
        }
        let known = &mut self.names[slot as usize];
        let first = known.text != self.texts;
        if first {
            known.text = self.texts;
            known.order = self.found;
            self.found += 1;
        }
        Found { slot, order: known.order, first }
    }

    /// Looks up a run of the text that was begun; tells whether the text has it for the first time.
    pub(crate) fn run(&mut self, run: Key) -> (Slot, bool) {
        let next = self.runs.len() as Slot;
        let runs = &self.runs;
        let slot = self.run_slots.find_or_insert(run, next, |slot| runs[slot as usize].key);
        if slot == next {
            self.runs.push(Run { key: run, shown: 0, text: 0, holder: u32::MAX });
        }
        let known = &mut self.runs[slot as usize];
        let first = known.text != self.texts;
        known.text = self.texts;
        (slot, first)
    }

    /// Returns the names and the runs of `text`, each once.
    pub(crate) fn read(&mut self, text: &str) -> (Vec<Slot>, Vec<Slot>) {
        self.begin();
        let (mut found, mut runs) = (Vec::new(), Vec::new());
        names::each_name(text, |name| {
            let name = self.name(names::key(name));
            if name.first {
                found.push(name.slot);
            }
        });
        names::each_run(text, |key, _, _| {
            let (slot, first) = self.run(key);
            if first {
                runs.push(slot);
            }
        });
        (found, runs)
    }

    /// Counts a form's names and runs, each once.
    pub(crate) fn show(&mut self, names: &[Slot], runs: &[Slot]) {
        for &name in names {
            self.names[name as usize].shown += 1;
        }
        for &run in runs {
            self.runs[run as usize].shown += 1;
        }
    }

    /// Takes back what [`Visible::show`] counted.
    pub(crate) fn hide(&mut self, names: &[Slot], runs: &[Slot]) {
        for &name in names {
            let shown = &mut self.names[name as usize].shown;
            *shown = shown.saturating_sub(1);
        }
        for &run in runs {
            let shown = &mut self.runs[run as usize].shown;
            *shown = shown.saturating_sub(1);
        }
    }

    /// Returns how many messages show a name.
    pub(crate) fn shows_name(&self, name: Slot) -> u32 {
        self.names[name as usize].shown
    }

    /// Returns how many messages show a name that is known by its key only.
    pub(crate) fn shows_key(&self, name: Key) -> u32 {
        let found = self.name_slots.find(name, |slot| self.names[slot as usize].key);
        found.map_or(0, |slot| self.shows_name(slot))
    }

    /// Returns how many messages show a run.
    pub(crate) fn shows_run(&self, run: Slot) -> u32 {
        self.runs[run as usize].shown
    }

    /// Returns a run's place, if any text that was read has it.
    pub(crate) fn find_run(&self, run: Key) -> Option<Slot> {
        self.run_slots.find(run, |slot| self.runs[slot as usize].key).ok()
    }

    /// Makes `position` the last message that said these runs; calls `before` with the one that was.
    pub(crate) fn hold(
        &mut self,
        runs: &[Slot],
        position: Position,
        mut before: impl FnMut(Position),
    ) {
        for &run in runs {
            let run = &mut self.runs[run as usize];
            if run.holder != u32::MAX {
                before(run.holder as Position);
            }
            run.holder = position as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn slots_are_those_of_a_map(keys in proptest::collection::vec(0..3000_u64, 0..4000)) {
            let mut visible = Visible::default();
            let mut map = std::collections::HashMap::new();
            visible.begin();
            for key in keys {
                // Keys that differ in their upper half only, or stand side by side.
                let key = ((key % 7) << 32) | (key / 7);
                let next = map.len() as Slot;
                let expected = *map.entry(key).or_insert(next);
                proptest::prop_assert_eq!(visible.run(key), (expected, expected == next));
                proptest::prop_assert_eq!(visible.find_run(key), Some(expected));
                proptest::prop_assert_eq!(visible.find_run(key | (1 << 60)), None);
            }
        }
    }
}
