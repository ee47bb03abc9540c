//! What input costs under prompt caching, and when a change of old messages pays back.
//!
//! Prices are data: the table ships as `pricing.toml` with its date, and a user's own file goes over it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::MillisSinceEpoch;

/// The table that ships with the binary.
pub const SHIPPED_PRICING: &str = include_str!("../pricing.toml");

/// Prices of one model or family; cache prices are multiples of plain input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// US dollars for a million plain input tokens.
    pub input: f64,
    /// US dollars for a million output tokens.
    pub output: f64,
    /// Price of a token read from the cache, plain input = 1.
    pub cache_read: f64,
    /// Price of a token written to the cache, plain input = 1.
    pub cache_write: f64,
    /// How long an unused cache entry lives, in seconds.
    pub cache_seconds: u32,
    /// Prefixes shorter than this are not cached, in tokens.
    pub cache_least: u32,
}

impl Prices {
    /// Returns the price of an output token, plain input = 1.
    pub fn output_ratio(&self) -> f64 {
        if self.input > 0.0 { self.output / self.input } else { 0.0 }
    }

    /// Returns what input of `cached` and `written` tokens costs, in plain input tokens.
    pub fn input_cost(&self, cached: f64, written: f64) -> f64 {
        cached * self.cache_read + written * self.cache_write
    }

    /// Returns US dollars for a cost in plain input tokens.
    pub fn dollars(&self, cost: f64) -> f64 {
        cost * self.input / 1e6
    }

    /// Tells whether a cache last used at `last` is gone at `now`. Unknown times count as warm.
    pub fn is_cold(&self, last: Option<MillisSinceEpoch>, now: Option<MillisSinceEpoch>) -> bool {
        match (last, now) {
            (Some(last), Some(now)) => {
                now.0.saturating_sub(last.0) > i64::from(self.cache_seconds) * 1000
            }
            _ => false,
        }
    }

    /// Returns the further calls after which removing `removed` tokens pays, with `standing` tokens behind the edit that
    /// were in the cache: `(write − read) / read · standing / removed − 1` (`DESIGN` 3).
    pub fn calls_to_pay_back(&self, removed: f64, standing: f64) -> f64 {
        if removed <= 0.0 {
            return f64::INFINITY;
        }
        if self.cache_read <= 0.0 {
            return if standing > 0.0 { f64::INFINITY } else { -1.0 };
        }
        (self.cache_write - self.cache_read) / self.cache_read * standing / removed - 1.0
    }
}

/// Prices by model family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pricing {
    /// The day on which the figures were read, `YYYY-MM-DD`.
    pub date: String,
    /// The family that is used where the model is not known.
    pub fallback: String,
    /// Prices by the beginning of a model's name, the longest that fits wins.
    pub model: BTreeMap<String, Prices>,
}

/// What is wrong with a pricing file.
#[derive(Debug, thiserror::Error)]
pub enum PricingError {
    #[error("the pricing table cannot be read")]
    Syntax(#[source] Box<toml::de::Error>),
    #[error("the pricing table's fallback `{0}` is not one of its models")]
    Fallback(String),
    #[error("price of `{0}` is negative or no number")]
    Number(String),
}

impl Pricing {
    /// Returns the table that ships with the binary.
    pub fn shipped() -> Self {
        Self::parse(SHIPPED_PRICING).expect("the shipped table is checked by a test")
    }

    /// Reads a table.
    pub fn parse(text: &str) -> Result<Self, PricingError> {
        let pricing: Self =
            toml::from_str(text).map_err(|error| PricingError::Syntax(Box::new(error)))?;
        for (name, prices) in &pricing.model {
            let all = [prices.input, prices.output, prices.cache_read, prices.cache_write];
            if all.iter().any(|price| !price.is_finite() || *price < 0.0) {
                return Err(PricingError::Number(name.clone()));
            }
        }
        if !pricing.model.contains_key(&pricing.fallback) {
            return Err(PricingError::Fallback(pricing.fallback));
        }
        Ok(pricing)
    }

    /// Returns the family's name and prices for `model`, as recorded or as `provider/model`; the fallback's if it is not known.
    pub fn of(&self, model: Option<&str>) -> (&str, Prices) {
        let found = model.and_then(|model| self.known(model));
        let fallback = || self.model.get_key_value(&self.fallback);
        let fallback = || fallback().map(|(family, prices)| (family.as_str(), *prices));
        found.or_else(fallback).unwrap_or(("", FALLBACK))
    }

    /// Returns the family's name and prices for `model` if the table has its family.
    pub fn known(&self, model: &str) -> Option<(&str, Prices)> {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let fitting = self.model.iter().filter(|(family, _)| name.starts_with(family.as_str()));
        let found = fitting.max_by_key(|(family, _)| family.len());
        found.map(|(family, prices)| (family.as_str(), *prices))
    }
}

/// Used only if a table were empty, which [`Pricing::parse`] refuses.
const FALLBACK: Prices = Prices {
    input: 3.0,
    output: 15.0,
    cache_read: 0.1,
    cache_write: 1.25,
    cache_seconds: 300,
    cache_least: 1024,
};

/// The provider's prefix cache, as far as a bill shows it: the last request's messages.
///
/// A request reads the longest run of whole messages with which it begins like the one before, and writes the rest.
#[derive(Debug, Clone, Default)]
pub struct PrefixCache {
    last: Vec<u64>,
}

/// One request as the cache saw it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Charge {
    /// Tokens read from the cache.
    pub cached: f64,
    /// Tokens written to it.
    pub written: f64,
    /// Messages at the beginning that were alike.
    pub alike: usize,
    /// Whether the pause since the last request outlived the cache.
    pub cold: bool,
    /// Whether a message of the last request was changed, while the cache was warm.
    pub broken: bool,
}

impl PrefixCache {
    /// Charges a request of messages, each `(content key, tokens)`, sent at `now` after one at `last`.
    pub fn charge(
        &mut self,
        prices: &Prices,
        messages: impl Iterator<Item = (u64, f64)>,
        last: Option<MillisSinceEpoch>,
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        let cold = prices.is_cold(last, now);
        let mut charge = Charge { cold, ..Charge::default() };
        let mut keys = Vec::with_capacity(self.last.len() + 4);
        let mut alike = !cold;
        for (key, tokens) in messages {
            alike = alike && self.last.get(keys.len()) == Some(&key);
            if alike {
                charge.alike += 1;
                charge.cached += tokens;
            } else {
                charge.written += tokens;
            }
            keys.push(key);
        }
        charge.broken = !cold && charge.alike < self.last.len();
        if charge.cached < f64::from(prices.cache_least) {
            charge.written += charge.cached;
            charge.cached = 0.0;
        }
        self.last = keys;
        charge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_sound() {
        let pricing = Pricing::parse(SHIPPED_PRICING).expect("sound");
        assert_eq!(pricing.of(Some("anthropic/claude-opus-4-5-20251101")).0, "claude-opus-4-5");
        assert_eq!(pricing.of(Some("gpt-5.1-codex")).0, "gpt-5");
        assert_eq!(pricing.of(None).0, pricing.fallback);
        assert_eq!(pricing.of(Some("nobody-knows")).0, pricing.fallback);
        assert!(pricing.known("nobody-knows").is_none());
    }

    #[test]
    fn pay_back_is_that_of_the_design() {
        let (_, prices) = Pricing::shipped().of(Some("claude-sonnet-4-5"));
        // 11.5 · T / R − 1 for a cache that reads at 0.1 and writes at 1.25.
        assert!((prices.calls_to_pay_back(1000.0, 2000.0) - 22.0).abs() < 1e-9);
        assert!(prices.calls_to_pay_back(0.0, 1.0).is_infinite());
    }

    #[test]
    fn a_prefix_is_charged_by_whole_messages() {
        let prices = Prices { cache_least: 0, ..FALLBACK };
        let mut cache = PrefixCache::default();
        let at = |seconds: i64| Some(MillisSinceEpoch(seconds * 1000));
        let first = cache.charge(&prices, [(1, 10.0), (2, 20.0)].into_iter(), None, at(0));
        assert_eq!((first.cached, first.written, first.broken), (0.0, 30.0, false));
        let grown =
            cache.charge(&prices, [(1, 10.0), (2, 20.0), (3, 5.0)].into_iter(), at(0), at(10));
        assert_eq!((grown.cached, grown.written, grown.broken), (30.0, 5.0, false));
        let changed =
            cache.charge(&prices, [(1, 10.0), (9, 1.0), (3, 5.0)].into_iter(), at(10), at(20));
        assert_eq!((changed.cached, changed.written, changed.broken), (10.0, 6.0, true));
        let late =
            cache.charge(&prices, [(1, 10.0), (9, 1.0), (3, 5.0)].into_iter(), at(20), at(400));
        assert_eq!((late.cached, late.cold, late.broken), (0.0, true, false));
    }

    #[test]
    fn bad_tables_are_refused() {
        assert!(matches!(Pricing::parse("date = 1"), Err(PricingError::Syntax(_))));
        let negative = SHIPPED_PRICING.replacen("input = ", "input = -", 1);
        assert!(matches!(Pricing::parse(&negative), Err(PricingError::Number(_))));
    }
}
