//! What a context shows: for each name and each run of words, how many messages show it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::names::{Key, KeyHasher};
use crate::transcript::Position;

type Table<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// How often a run is shown, and which message said it last.
#[derive(Debug, Clone, Copy)]
struct Run {
    shown: u32,
    holder: u32,
}

/// Names and runs that the context shows, counted by message.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    names: Table<u32>,
    runs: Table<Run>,
}

impl Visible {
    /// Counts a form's names and runs, each once.
    pub(crate) fn show(&mut self, names: &[Key], runs: &[Key]) {
        for &name in names {
            *self.names.entry(name).or_insert(0) += 1;
        }
        for &run in runs {
            self.runs.entry(run).or_insert(Run { shown: 0, holder: u32::MAX }).shown += 1;
        }
    }

    /// Takes back what [`Visible::show`] counted.
    pub(crate) fn hide(&mut self, names: &[Key], runs: &[Key]) {
        for name in names {
            if let Some(count) = self.names.get_mut(name) {
                *count = count.saturating_sub(1);
            }
        }
        for run in runs {
            if let Some(run) = self.runs.get_mut(run) {
                run.shown = run.shown.saturating_sub(1);
            }
        }
    }

    /// Returns how many messages show a name.
    pub(crate) fn name(&self, name: Key) -> u32 {
        self.names.get(&name).copied().unwrap_or(0)
    }

    /// Returns how many messages show a run.
    pub(crate) fn run(&self, run: Key) -> u32 {
        self.runs.get(&run).map_or(0, |run| run.shown)
    }

    /// Makes `position` the last message that said these runs; calls `before` with the one that was.
    pub(crate) fn hold(
        &mut self,
        runs: &[Key],
        position: Position,
        mut before: impl FnMut(Position),
    ) {
        for run in runs {
            if let Some(run) = self.runs.get_mut(run) {
                if run.holder != u32::MAX {
                    before(run.holder as Position);
                }
                run.holder = position as u32;
            }
        }
    }
}
