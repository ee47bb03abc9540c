//! What a context shows: for each name and each run of words, how many messages show it.
//!
//! A name or run is looked up by its key once, when its text is read; from then on it is known by its place in a list,
//! because the counts are asked for whenever a message is weighed again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::names::{self, Key, KeyHasher};
use crate::transcript::Position;

/// The place of a name among names, or of a run among runs.
pub(crate) type Slot = u32;

type Table = HashMap<Key, Slot, BuildHasherDefault<KeyHasher>>;

/// How often a name is shown, and which text had it last, as its how manieth.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
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
    shown: u32,
    text: u32,
    holder: u32,
}

/// Names and runs that the context shows, counted by message.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    name_slots: Table,
    names: Vec<Name>,
    run_slots: Table,
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
        let slot = *self.name_slots.entry(name).or_insert(next);
        if slot == next {
            self.names.push(Name::default());
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
        let slot = *self.run_slots.entry(run).or_insert(next);
        if slot == next {
            self.runs.push(Run { shown: 0, text: 0, holder: u32::MAX });
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
        self.name_slots.get(&name).map_or(0, |&slot| self.shows_name(slot))
    }

    /// Returns how many messages show a run.
    pub(crate) fn shows_run(&self, run: Slot) -> u32 {
        self.runs[run as usize].shown
    }

    /// Returns a run's place, if any text that was read has it.
    pub(crate) fn find_run(&self, run: Key) -> Option<Slot> {
        self.run_slots.get(&run).copied()
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
