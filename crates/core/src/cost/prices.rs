//! The prices of one model, and the costs that follow from them.

use serde::{Deserialize, Serialize};

use super::cache::Charge;
use super::piece::Life;
use crate::message::{MillisSinceEpoch, Usage};

/// How a provider finds cached prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// The longest common prefix, counted in steps, without being asked (`OpenAI`, Gemini, `DeepSeek`).
    #[default]
    Steps,
    /// Entries only where a request carries a mark (Anthropic).
    Marks,
    /// Entries at the end of every request, and at marks (OpenAI since GPT-5.6).
    Ends,
}

/// The price of writing cache entries of one life.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteTier {
    /// Seconds that an unread entry lives.
    pub seconds: u32,
    /// Price of a written token, plain input = 1.
    pub price: f64,
}

/// Prices of requests above a size; they hold for the whole request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// It holds above this many tokens of prompt, cached ones included.
    pub above: u64,
    /// The factor for input, plain or cached.
    pub input: f64,
    /// The factor for output.
    pub output: f64,
}

/// No band: no prompt is above it.
const NO_BAND: Band = Band { above: u64::MAX, input: 1.0, output: 1.0 };

/// Prices of one model on one day; those of the cache are multiples of plain input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// US dollars for a million plain input tokens.
    pub input: f64,
    /// US dollars for a million output tokens.
    pub output: f64,
    /// Price of a token read from the cache, plain input = 1.
    pub cache_read: f64,
    /// Price of a token written to the cache, plain input = 1, for a life of `cache_seconds`.
    pub cache_write: f64,
    /// How long an unused cache entry lives, in seconds.
    pub cache_seconds: u32,
    /// The longer life that a client can ask for, if there is one.
    pub longer: Option<WriteTier>,
    /// Prefixes shorter than this are not cached, in tokens.
    pub cache_least: u32,
    /// Reads are counted in steps of this many tokens, if the cache has steps.
    pub cache_step: u32,
    /// The mean part of the cached tokens that a request reads; 1 if none are lost by chance.
    pub cache_hits: f64,
    pub cache: CacheKind,
    /// In ascending order.
    pub bands: [Band; 2],
    /// The most tokens of prompt and answer; 0 if unknown.
    pub window: u32,
    /// Whether thinking is bound to all messages before it, so that none of them may change.
    pub bound_thinking: bool,
}

impl Prices {
    /// Prices without bands, tiers and window, for an unknown model.
    pub const PLAIN: Self = Self {
        input: 1.0,
        output: 5.0,
        cache_read: 0.1,
        cache_write: 1.25,
        cache_seconds: 300,
        longer: None,
        cache_least: 1024,
        cache_step: 128,
        cache_hits: 1.0,
        cache: CacheKind::Steps,
        bands: [NO_BAND; 2],
        window: 0,
        bound_thinking: false,
    };

    /// Returns the price of an output token, plain input = 1.
    pub fn output_ratio(&self) -> f64 {
        if self.input > 0.0 { self.output / self.input } else { 0.0 }
    }

    /// Returns the price of a token that is written for a life.
    pub fn write(&self, life: Life) -> f64 {
        match (life, self.longer) {
            (Life::Long, Some(tier)) => tier.price,
            _ => self.cache_write,
        }
    }

    /// Returns how many seconds an entry of a life stays.
    pub fn seconds(&self, life: Life) -> u32 {
        match (life, self.longer) {
            (Life::Long, Some(tier)) => tier.seconds,
            _ => self.cache_seconds,
        }
    }

    /// Returns these prices with the write price and the seconds of `life`.
    #[must_use]
    pub fn living(self, life: Life) -> Self {
        Self { cache_write: self.write(life), cache_seconds: self.seconds(life), ..self }
    }

    /// Returns the factors for input and output of a request of `prompt` tokens.
    pub fn band(&self, prompt: f64) -> (f64, f64) {
        let above = self.bands.iter().rev().find(|band| prompt > band.above as f64);
        above.map_or((1.0, 1.0), |band| (band.input, band.output))
    }

    /// Returns the cost of a request's input, in plain input tokens.
    pub fn input_cost(&self, charge: &Charge) -> f64 {
        let long = charge.written_long.min(charge.written);
        let sum = charge.cached * self.cache_read
            + (charge.written - long) * self.cache_write
            + long * self.write(Life::Long)
            + charge.plain;
        sum * self.band(charge.prompt()).0
    }

    /// Returns the US dollars for reported usage.
    pub fn billed(&self, usage: &Usage) -> f64 {
        let charge = Charge::of(usage);
        let output = usage.output_tokens as f64 * self.output / 1e6 * self.band(charge.prompt()).1;
        self.dollars(self.input_cost(&charge)) + output
    }

    /// Returns the US dollars for a cost in plain input tokens.
    pub fn dollars(&self, cost: f64) -> f64 {
        cost * self.input / 1e6
    }

    /// Returns the most tokens of prompt before the price jumps or the window is full; `None` if both are unknown.
    pub fn cliff(&self) -> Option<u64> {
        let band = Some(self.bands[0].above).filter(|&above| above != u64::MAX);
        let window = Some(u64::from(self.window)).filter(|&window| window > 0);
        match (band, window) {
            (Some(band), Some(window)) => Some(band.min(window)),
            (one, other) => one.or(other),
        }
    }

    /// Returns whether a cache last used at `last` is gone at `now`. Unknown times count as warm.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pay_back_is_that_of_the_design() {
        // 11.5 · T / R − 1 for a cache that reads at 0.1 and writes at 1.25.
        assert!((Prices::PLAIN.calls_to_pay_back(1000.0, 2000.0) - 22.0).abs() < 1e-9);
        assert!(Prices::PLAIN.calls_to_pay_back(0.0, 1.0).is_infinite());
    }

    #[test]
    fn a_band_holds_for_the_whole_request() {
        let cliff = Band { above: 100_000, input: 5.0, output: 5.0 };
        let prices = Prices { bands: [cliff, NO_BAND], input: 0.1, output: 0.5, ..Prices::PLAIN };
        let usage = |cached_tokens| Usage {
            prompt_tokens: cached_tokens + 1000,
            cached_tokens,
            output_tokens: 100,
            ..Usage::default()
        };
        let below = prices.billed(&usage(99_000));
        assert!((below - (99_000.0 * 0.1 + 1000.0 + 500.0) * 0.1 / 1e6).abs() < 1e-12);
        let above = prices.billed(&usage(99_001));
        assert!((above / below - 5.0).abs() < 0.001, "{above} {below}");
        assert_eq!(prices.cliff(), Some(100_000));
    }

    #[test]
    fn a_longer_life_costs_more_to_write() {
        let longer = Some(WriteTier { seconds: 3600, price: 2.0 });
        let prices = Prices { longer, ..Prices::PLAIN };
        let charge = Charge { written: 100.0, written_long: 40.0, ..Charge::default() };
        assert!((prices.input_cost(&charge) - (60.0 * 1.25 + 80.0)).abs() < 1e-9);
        let hour = prices.living(Life::Long);
        assert_eq!((hour.cache_write, hour.cache_seconds), (2.0, 3600));
        assert_eq!(Prices::PLAIN.living(Life::Long), Prices::PLAIN);
    }
}
