//! Warnings about models that the table of prices does not list, each once.

use std::collections::BTreeSet;

use super::pricing::{ModelPrice, PriceMatch};
use crate::text::shortened;

/// The most characters of a model's name in a warning; the name comes from a request.
const MOST_CHARACTERS: usize = 80;

/// The most names that are remembered, each of which was warned of; chosen, above what any provider lists.
const MOST_NAMES: usize = 1000;

/// The models without a price that were met, by the names that requests gave them.
#[derive(Debug, Clone, Default)]
pub struct UnlistedModels(BTreeSet<String>);

impl UnlistedModels {
    /// Returns the warning for `model` when it is met first; `None` later, and for models that are listed or not named.
    ///
    /// After a thousand names no further one is warned of, for a client may send any.
    pub fn met(&mut self, model: Option<&str>, priced: &ModelPrice<'_>) -> Option<String> {
        let model = model.filter(|_| priced.found == PriceMatch::Estimate)?;
        let model = plain(model);
        if self.0.len() >= MOST_NAMES || !self.0.insert(model.clone()) {
            return None;
        }
        let like = match priced.name {
            "" => "nothing but input of one dollar for a million tokens",
            name => name,
        };
        Some(format!(
            "no price is known for `{model}`: it is priced as {like}, and its figures are estimates; \
             a price in `pricing.toml` of Plimsoll's configuration folder is used instead (`plimsoll models prices --import` writes one)"
        ))
    }
}

/// Returns a name on one line, without characters that move a cursor.
fn plain(name: &str) -> String {
    let short = shortened(name, MOST_CHARACTERS);
    short.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Pricing;

    #[test]
    fn each_unlisted_model_is_warned_of_once() {
        let pricing = Pricing::shipped();
        let mut unlisted = UnlistedModels::default();
        let mut met = |model: Option<&str>| unlisted.met(model, &pricing.of(model, None));
        assert_eq!(met(None), None);
        assert_eq!(met(Some("claude-sonnet-4-6")), None);
        let warning = met(Some("claude-novel-9")).expect("a warning");
        let expected = "no price is known for `claude-novel-9`: it is priced as claude-sonnet-5-5, and its figures are estimates; ";
        assert!(warning.starts_with(expected), "{warning}");
        assert_eq!(met(Some("claude-novel-9")), None, "once");
        assert!(met(Some("claude-other-9")).is_some(), "each by itself");
    }

    #[test]
    fn names_from_requests_are_bounded() {
        let pricing = Pricing::shipped();
        let mut unlisted = UnlistedModels::default();
        let long = format!("\u{1b}[31m{}", "m".repeat(1000));
        let warning = unlisted.met(Some(&long), &pricing.of(Some(&long), None)).expect("a warning");
        assert!(!warning.contains('\u{1b}') && warning.chars().count() < 300, "{warning}");
        let warned = (0..2 * MOST_NAMES).filter(|number| {
            let name = format!("novel-{number}x");
            unlisted.met(Some(&name), &pricing.of(Some(&name), None)).is_some()
        });
        assert_eq!(warned.count(), MOST_NAMES - 1);
    }
}
