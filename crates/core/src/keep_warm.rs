//! Keeping the provider's cache warm through a pause: whether one more read of an entry is worth its price.
//!
//! A read makes the entry live once more. It pays if the client comes back within that life, for then the entry is read and not
//! written again. So a read is worth its price if that is less than the chance of a return times the extra cost of a write.

use serde::{Deserialize, Serialize};

use crate::cost::{CacheKind, Charge, Life, Prices};

/// The chance that a client comes back within the second five minutes of a pause.
///
/// Measured on 36 recorded sessions of coding agents (8,893 pauses): 72 outlived five minutes, the ends of the sessions among
/// them; 12 were over within ten minutes (0.17), 5 of the other 60 within fifteen (0.08), none of the other 55 within twenty.
const CHANCE_SHORT: f64 = 0.17;
/// The same for a life of an hour: of 45 pauses, 2 were over within two hours (0.04).
const CHANCE_LONG: f64 = 0.04;
/// The factor by which the chance falls with each life that passes; from the same pauses.
const FALLS_BY: f64 = 0.5;

/// The part of a life that is left when the entry is read (chosen: half a minute of five).
const LEFT: f64 = 0.1;

/// Settings for keeping the cache warm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepWarm {
    /// Whether the cache is kept warm at all.
    pub on: bool,
    /// The most reads in one pause.
    pub most_reads: u32,
    /// The most US dollars for the reads of one pause.
    pub most_dollars: f64,
    /// The most sessions that are kept warm at a time; the last request of each is held in memory.
    pub most_sessions: usize,
    /// The chance that a client which was away for one life of the cache comes back within the next; by default as measured.
    pub return_chance: Option<f64>,
}

impl Default for KeepWarm {
    /// Chosen: off; a third read was worth it in no recorded pause; ten cents are two reads of 500,000 tokens.
    fn default() -> Self {
        Self { on: false, most_reads: 2, most_dollars: 0.1, most_sessions: 32, return_chance: None }
    }
}

/// A pause of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pause {
    /// The life of the entry.
    pub life: Life,
    /// Tokens in it.
    pub cached: f64,
    /// Tokens behind it, which every read pays in full.
    pub behind: f64,
    /// Reads since the client's last request.
    pub reads: u32,
    /// The cost of these reads, in US dollars.
    pub spent: f64,
}

/// Returns how many seconds after the start of a request to read its entry again, so that it lives on.
///
/// A life is counted from the start of the request that wrote or read the entry (Anthropic, prompt caching).
pub fn seconds_until_read(prices: &Prices, life: Life) -> u32 {
    (f64::from(prices.seconds(life)) * (1.0 - LEFT)) as u32
}

/// Returns whether one more read of the entry is worth its price.
pub fn is_worth_reading(prices: &Prices, pause: &Pause, settings: &KeepWarm) -> bool {
    let read = Charge { cached: pause.cached, plain: pause.behind, ..Charge::default() };
    let cost = prices.input_cost(&read);
    let (band, _) = prices.band(read.prompt());
    let saved = pause.cached * (prices.write(pause.life) - prices.cache_read) * band;
    settings.on
        // Caches without marks charge nothing for a write.
        && prices.cache == CacheKind::Marks
        && pause.cached >= f64::from(prices.cache_least)
        && pause.reads < settings.most_reads
        && pause.spent + prices.dollars(cost) <= settings.most_dollars
        && chance(pause, settings) * saved > cost
}

/// Returns the chance that the client comes back within the next life.
fn chance(pause: &Pause, settings: &KeepWarm) -> f64 {
    let measured = match pause.life {
        Life::Short => CHANCE_SHORT,
        Life::Long => CHANCE_LONG,
    };
    let first = settings.return_chance.unwrap_or(measured).clamp(0.0, 1.0);
    first * FALLS_BY.powi(i32::try_from(pause.reads).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Pricing;

    const PAUSE: Pause =
        Pause { life: Life::Short, cached: 50_000.0, behind: 100.0, reads: 0, spent: 0.0 };

    fn prices(model: &str) -> Prices {
        Pricing::shipped().of(Some(model), None).prices
    }

    fn on() -> KeepWarm {
        KeepWarm { on: true, most_reads: 9, most_dollars: 9.0, ..KeepWarm::default() }
    }

    fn reads(model: &str, pause: Pause, settings: &KeepWarm) -> u32 {
        let prices = prices(model);
        let worth =
            |reads: &u32| is_worth_reading(&prices, &Pause { reads: *reads, ..pause }, settings);
        (0..20).take_while(worth).count() as u32
    }

    #[test]
    fn a_read_is_held_against_the_chance_that_the_client_comes_back() {
        // A read at 0.1 pays from a chance of 0.1 / 1.15 = 0.087 on, one at 0.05 from
        // 0.05 / 1.2 = 0.042 on, and a little more for what stands behind the entry. The chances are 0.17, 0.085, 0.0425.
        assert_eq!(reads("claude-sonnet-4-6", PAUSE, &on()), 1);
        assert_eq!(reads("claude-opus-5-5", PAUSE, &on()), 2);
        let certain = KeepWarm { return_chance: Some(1.0), ..on() };
        assert_eq!(reads("claude-sonnet-4-6", PAUSE, &certain), 4);
        let never = KeepWarm { return_chance: Some(0.0), ..on() };
        assert_eq!(reads("claude-sonnet-4-6", PAUSE, &never), 0);
        // Within the second hour fewer come back: a read at 0.1 against a write at 2 needs 0.053.
        let long = Pause { life: Life::Long, ..PAUSE };
        assert_eq!(reads("claude-sonnet-4-6", long, &on()), 0);
        let likely = KeepWarm { return_chance: Some(0.1), ..on() };
        assert_eq!(reads("claude-sonnet-4-6", long, &likely), 1);
    }

    #[test]
    fn what_stands_behind_the_entry_is_paid_in_full() {
        let behind = Pause { behind: 10_000.0, ..PAUSE };
        assert_eq!(reads("claude-sonnet-4-6", behind, &on()), 0);
    }

    #[test]
    fn both_bounds_hold() {
        let certain = KeepWarm { return_chance: Some(1.0), ..on() };
        assert_eq!(
            reads("claude-sonnet-4-6", PAUSE, &KeepWarm { most_reads: 2, ..certain.clone() }),
            2
        );
        // A read costs 50,000 × 0.1 + 100 tokens at 3 dollars a million: 0.0153.
        let cheap = KeepWarm { most_dollars: 0.02, ..certain };
        assert_eq!(reads("claude-sonnet-4-6", PAUSE, &cheap), 4);
        let spent = Pause { spent: 0.0153, ..PAUSE };
        assert_eq!(reads("claude-sonnet-4-6", spent, &cheap), 0);
    }

    #[test]
    fn nothing_is_read_where_it_is_off_or_nothing_is_lost() {
        let certain = KeepWarm { return_chance: Some(1.0), ..on() };
        assert_eq!(
            reads("claude-sonnet-4-6", PAUSE, &KeepWarm { on: false, ..certain.clone() }),
            0
        );
        for model in ["gpt-5.4", "gemini-2.5-pro"] {
            assert_eq!(reads(model, PAUSE, &certain), 0, "{model}");
        }
        let small = Pause { cached: 500.0, behind: 0.0, ..PAUSE };
        assert_eq!(reads("claude-sonnet-4-6", small, &certain), 0, "too short to be cached");
        let broken = Pause { cached: f64::NAN, ..PAUSE };
        assert_eq!(reads("claude-sonnet-4-6", broken, &certain), 0);
    }

    #[test]
    fn an_entry_is_read_before_its_life_ends() {
        let prices = prices("claude-sonnet-4-6");
        assert_eq!(seconds_until_read(&prices, Life::Short), 270);
        assert_eq!(seconds_until_read(&prices, Life::Long), 3240);
    }
}
