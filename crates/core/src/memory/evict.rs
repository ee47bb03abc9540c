//! Evicting: making an assembled context smaller with the least change to it.

use crate::choose::{Reason, shrink};
use crate::memory::assemble::{MemoryContext, MemoryTooLarge, MemoryWarning};
use crate::memory::layers::Layer;
use crate::tokens::Tokenizer;

/// The layers that lose what need not stand after the records, first to last.
const LAST_RESORT: [Layer; 2] = [Layer::Calibration, Layer::Censors];

impl MemoryContext {
    /// Returns the same with the least relevant records taken out, until it has at most `room` tokens.
    ///
    /// Identity, blocking constraints, frame and focus stay, and nothing that stays changes its text or its place. Of equal scores the
    /// one that stands later goes first, so that more of the prefix stays alike. If the fixed parts are larger than
    /// `room`, that is a warning.
    #[must_use]
    pub fn evicted(&self, room: u64, tokenizer: Tokenizer) -> Self {
        let mut context = self.clone();
        let over = context.fit(room, tokenizer);
        if over > 0 && !context.warnings.contains(&MemoryWarning::OverRoom) {
            context.warnings.push(MemoryWarning::OverRoom);
        }
        context
    }

    /// Returns the same without the records that `is_gone` names; nothing else changes its text or its place.
    #[must_use]
    pub fn without(&self, is_gone: impl Fn(&str) -> bool, tokenizer: Tokenizer) -> Self {
        let mut context = self.clone();
        for section in &mut context.sections {
            section.items.retain(|item| item.id.is_empty() || !is_gone(&item.id));
        }
        context.sections.retain(|section| !section.items.is_empty());
        context.left_out.retain(|(id, _)| !is_gone(id));
        context.measure(tokenizer);
        context
    }

    /// Enforces the limit on the whole text: the layers count parts, and the provider bills the whole.
    pub(super) fn enforce(&mut self, tokenizer: Tokenizer) -> Result<(), MemoryTooLarge> {
        let over = self.fit(self.limit, tokenizer);
        if over > 0 { Err(MemoryTooLarge { needed: self.used, limit: self.limit }) } else { Ok(()) }
    }

    /// Takes out records, then what else need not stand, until the text has at most `room` tokens; returns the rest above it.
    fn fit(&mut self, room: u64, tokenizer: Tokenizer) -> u64 {
        self.measure(tokenizer);
        shrink(
            self,
            room,
            |context| context.used,
            |context| {
                let has_less = context.evict_least() || context.pop();
                context.measure(tokenizer);
                has_less
            },
        )
    }

    fn measure(&mut self, tokenizer: Tokenizer) {
        self.used = u64::from(tokenizer.count(&self.text()));
    }

    /// Takes out the record with the lowest score; false if there is none.
    fn evict_least(&mut self) -> bool {
        let records = self.sections.iter().enumerate().flat_map(|(section, found)| {
            let flexible = found.layer.is_flexible();
            let items = found.items.iter().enumerate().filter(move |_| flexible);
            items.map(move |(item, found)| (section, item, found.score))
        });
        // The last of the lowest.
        let least = records.reduce(
            |least, next| {
                if next.2.total_cmp(&least.2).is_le() { next } else { least }
            },
        );
        least.is_some_and(|(section, item, _)| self.take(section, item))
    }

    /// Takes out the last item that need not stand; false if there is none.
    fn pop(&mut self) -> bool {
        let found = LAST_RESORT.iter().find_map(|layer| {
            let section = self.sections.iter().rposition(|section| section.layer == *layer)?;
            let item = self.sections[section].items.iter().rposition(|item| !item.required)?;
            Some((section, item, *layer))
        });
        found.is_some_and(|(section, item, layer)| {
            if !self.warnings.contains(&MemoryWarning::Cut(layer)) {
                self.warnings.push(MemoryWarning::Cut(layer));
            }
            self.take(section, item)
        })
    }

    fn take(&mut self, section: usize, item: usize) -> bool {
        let item = self.sections[section].items.remove(item);
        if !item.id.is_empty() {
            self.left_out.push((item.id, Reason::OverBudget));
            self.left_out.sort();
        }
        if self.sections[section].items.is_empty() {
            self.sections.remove(section);
        }
        true
    }
}
