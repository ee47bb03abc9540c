//! What settings would have saved on recorded requests: estimates with a range, each on what the ones before it left.

use serde::Serialize;

use crate::cost::{CacheKind, Charge, Life};

use super::{Cause, Request, Split, SplitTokens, rate};

/// A setting that may save money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Saving {
    /// Send names of tools, and a schema when it is asked for.
    LazyTools,
    /// Leave out lines of results that stand in the conversation already.
    SaidOnce,
    /// After a pause that outlived the cache, send old content shortened: it is written anew anyway.
    PruneWhenCold,
    /// Ask for entries that live an hour instead of five minutes.
    LongerLife,
    /// Ask for entries that live five minutes instead of an hour.
    ShorterLife,
    /// Keep prompts below the size at which the price jumps.
    BelowCliff,
}

impl Saving {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 6] = [
        Self::LazyTools,
        Self::SaidOnce,
        Self::PruneWhenCold,
        Self::LongerLife,
        Self::ShorterLife,
        Self::BelowCliff,
    ];
}

/// US dollars that would have been saved; less than nothing where it would have cost more.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Estimate {
    pub low: f64,
    pub likely: f64,
    pub high: f64,
}

/// What an estimate says of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SavingVerdict {
    /// The setting does not touch these sessions.
    Nothing,
    WorthIt,
    /// The range of the estimate holds zero.
    WithinError,
    NotWorthIt,
}

impl Estimate {
    /// Judges the estimate; `billed` is what everything cost.
    pub fn verdict(&self, billed: f64) -> SavingVerdict {
        // A thousandth of the bill is below what any of these figures can tell.
        if self.high.abs().max(self.low.abs()) < billed * 0.001 {
            SavingVerdict::Nothing
        } else if self.low > 0.0 {
            SavingVerdict::WorthIt
        } else if self.high < 0.0 {
            SavingVerdict::NotWorthIt
        } else {
            SavingVerdict::WithinError
        }
    }
}

/// An estimate for each of [`Saving::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Savings([Estimate; Saving::ALL.len()]);

impl Savings {
    /// Returns the estimate for a setting.
    pub fn of(&self, saving: Saving) -> Estimate {
        self.0[saving as usize]
    }

    /// Adds another one's estimates.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.low += other.low;
            own.likely += other.likely;
            own.high += other.high;
        }
    }
}

/// What is assumed where nothing recorded tells it.
#[derive(Debug, Clone, Copy)]
struct Assumptions {
    /// The share of system prompt and tools that lazy tools leave out (chosen: tools are 40 to 70 % of it, and 60 to 80 % of
    /// them are never asked for).
    lazy: f64,
    /// Which repeated runs count: 0 those of at least eight lines, 1 those of at least three.
    short_runs: f64,
    /// The share of old visible content that goes when the cache is cold (chosen: half of what `replay` settles, to all of it).
    pruned: f64,
    /// Look-ups of left-out content for each ten requests after it was left out.
    lookups: f64,
}

const LOW: Assumptions = Assumptions { lazy: 0.24, short_runs: 0.0, pruned: 0.2, lookups: 1.0 };
const LIKELY: Assumptions = Assumptions { lazy: 0.4, short_runs: 0.5, pruned: 0.35, lookups: 0.5 };
const HIGH: Assumptions = Assumptions { lazy: 0.56, short_runs: 1.0, pruned: 0.5, lookups: 0.0 };

/// A smaller system prompt holds few tools: nothing is assumed of it (chosen: a handful of schemas beside instructions).
const LEAST_SYSTEM: f64 = 5000.0;
/// Output of a look-up: a call with a short argument.
const LOOKUP_OUTPUT: f64 = 100.0;
/// The newest so many requests' content is left as it is when the cache is cold.
const FRESH_REQUESTS: usize = 5;
/// To which share of the cliff a conversation is cut when it would pass it.
const CUT_TO: f64 = 0.7;

/// Estimates what each setting would have saved on the requests of one session.
///
/// `counted` says which requests are billed to it; `tools_used` is how many different tools were called.
pub fn savings(
    requests: &[Request],
    splits: &[Split],
    counted: &[bool],
    tools_used: usize,
) -> Savings {
    let mut savings = Savings::default();
    let [low, likely, high] = [LOW, LIKELY, HIGH].map(|assumed| {
        SavingsEstimator::new(requests, splits, counted).run(assumed, tools_used as f64)
    });
    for (index, own) in savings.0.iter_mut().enumerate() {
        let all = [low[index], likely[index], high[index]];
        own.low = all.into_iter().fold(f64::INFINITY, f64::min);
        own.likely = likely[index];
        own.high = all.into_iter().fold(f64::NEG_INFINITY, f64::max);
    }
    savings
}

/// A request as it would have been.
#[derive(Debug, Clone, Copy)]
struct Projection {
    tokens: SplitTokens,
    fresh_price: f64,
}

struct SavingsEstimator<'a> {
    requests: &'a [Request],
    splits: &'a [Split],
    counted: &'a [bool],
    would: Vec<Projection>,
}

impl<'a> SavingsEstimator<'a> {
    fn new(requests: &'a [Request], splits: &'a [Split], counted: &'a [bool]) -> Self {
        let would = splits
            .iter()
            .map(|split| Projection { tokens: split.tokens, fresh_price: split.fresh_price })
            .collect();
        Self { requests, splits, counted, would }
    }

    fn run(mut self, assumed: Assumptions, tools_used: f64) -> [f64; Saving::ALL.len()] {
        Saving::ALL.map(|saving| {
            let before = self.cost();
            let kept = self.would.clone();
            let overhead = match saving {
                Saving::LazyTools => self.lazy_tools(assumed, tools_used),
                Saving::SaidOnce => self.said_once(assumed),
                Saving::PruneWhenCold => self.prune_when_cold(assumed),
                Saving::LongerLife => self.other_life(false),
                Saving::ShorterLife => self.other_life(true),
                Saving::BelowCliff => self.below_cliff(assumed),
            };
            let saved = before - self.cost() - overhead;
            // Nobody keeps a setting that costs more, so the next ones go on without it.
            if saved <= 0.0 {
                self.would = kept;
            }
            saved
        })
    }

    fn cost(&self) -> f64 {
        let all = self.would.iter().zip(self.splits).zip(self.counted);
        all.filter(|(_, counted)| **counted).map(|((would, split), _)| cost(would, split)).sum()
    }

    /// Returns US dollars for `lookups` further requests like this one.
    fn lookup(&self, at: usize, lookups: f64) -> f64 {
        if !self.counted[at] {
            return 0.0;
        }
        let prices = &self.splits[at].prices;
        let read = self.would[at].tokens.prompt() * prices.cache_read;
        lookups * (prices.dollars(read) + LOOKUP_OUTPUT * prices.output / 1e6)
    }

    fn lazy_tools(&mut self, assumed: Assumptions, tools_used: f64) -> f64 {
        let (mut least, mut first) = (f64::INFINITY, None);
        for (index, would) in self.would.iter_mut().enumerate() {
            let tokens = &mut would.tokens;
            let system = tokens.system_first + tokens.system_read + tokens.system_again;
            if system < LEAST_SYSTEM {
                continue;
            }
            least = least.min(system);
            first = first.or(Some(index));
            let left = 1.0 - assumed.lazy;
            tokens.system_first *= left;
            tokens.system_read *= left;
            tokens.system_again *= left;
        }
        // Each tool that is used is asked for once.
        first.map_or(0.0, |first| self.lookup(first, tools_used))
    }

    fn said_once(&mut self, assumed: Assumptions) -> f64 {
        let rate = rate(self.requests).tokens_per_character;
        let mut repeated: Vec<f64> = Vec::with_capacity(self.would.len());
        for (index, (request, would)) in self.requests.iter().zip(&mut self.would).enumerate() {
            let said = &request.said;
            let short = said.repeated.saturating_sub(said.repeated_long) as f64;
            let own = (said.repeated_long as f64 + short * assumed.short_runs) * rate;
            let before = request.continues.filter(|_| !request.compacted);
            let before = before.and_then(|before| repeated.get(before).copied()).unwrap_or(0.0);
            repeated.push(before + own);
            let share = (before / self.splits[index].shown.max(1.0)).clamp(0.0, 1.0);
            let tokens = &mut would.tokens;
            tokens.visible_read *= 1.0 - share;
            tokens.visible_again *= 1.0 - share;
            tokens.new -= own.min(tokens.new);
        }
        0.0
    }

    fn prune_when_cold(&mut self, assumed: Assumptions) -> f64 {
        let mut overhead = 0.0;
        // Tokens that are gone from each request's history.
        let mut gone: Vec<f64> = Vec::with_capacity(self.would.len());
        for index in 0..self.would.len() {
            let request = &self.requests[index];
            let before = request.continues.filter(|_| !request.compacted);
            let mut own = before.and_then(|before| gone.get(before).copied()).unwrap_or(0.0);
            let visible = {
                let tokens = &self.would[index].tokens;
                tokens.visible_read + tokens.visible_again
            };
            if self.splits[index].cause == Some(Cause::Pause) {
                let old = (visible - self.newest(index)).max(own);
                own = own.max(old * assumed.pruned);
            }
            own = own.min(visible);
            let tokens = &mut self.would[index].tokens;
            let share = if visible > 0.0 { own / visible } else { 0.0 };
            tokens.visible_read *= 1.0 - share;
            tokens.visible_again *= 1.0 - share;
            gone.push(own);
            if own > 0.0 {
                overhead += self.lookup(index, assumed.lookups / 10.0);
            }
        }
        overhead
    }

    /// Returns the tokens that the newest requests before this one added.
    fn newest(&self, index: usize) -> f64 {
        let mut at = Some(index);
        let mut sum = 0.0;
        for _ in 0..FRESH_REQUESTS {
            at = at.and_then(|at| self.requests[at].continues.filter(|before| *before < at));
            let Some(at) = at else { break };
            sum += self.would[at].tokens.new;
        }
        sum
    }

    /// Changes to the other life of entries: to the shorter one where the longer was asked for, or the other way round.
    fn other_life(&mut self, is_long: bool) -> f64 {
        for (would, split) in self.would.iter_mut().zip(self.splits) {
            let prices = &split.prices;
            let Some(longer) = prices.longer.filter(|_| prices.cache == CacheKind::Marks) else {
                continue;
            };
            if split.long_life != is_long {
                continue;
            }
            let charge = Charge::of(&split.usage);
            let fresh = (charge.prompt() - charge.cached).max(1.0);
            let between = split.pause.is_some_and(|pause| {
                pause > i64::from(prices.seconds(Life::Short)) * 1000
                    && pause <= i64::from(longer.seconds) * 1000
            });
            let more = longer.price - prices.cache_write;
            let tokens = &mut would.tokens;
            if is_long {
                would.fresh_price -= more * charge.written_long / fresh;
                if between {
                    // What was read would have had to be written again.
                    tokens.system_again += std::mem::take(&mut tokens.system_read);
                    tokens.visible_again += std::mem::take(&mut tokens.visible_read);
                    tokens.unseen_again += std::mem::take(&mut tokens.unseen_read);
                    would.fresh_price = would.fresh_price.max(prices.cache_write);
                }
            } else {
                would.fresh_price += more * (charge.written - charge.written_long) / fresh;
                if between && split.cause == Some(Cause::Pause) {
                    tokens.system_read += std::mem::take(&mut tokens.system_again);
                    tokens.visible_read += std::mem::take(&mut tokens.visible_again);
                    tokens.unseen_read += std::mem::take(&mut tokens.unseen_again);
                }
            }
        }
        0.0
    }

    fn below_cliff(&mut self, assumed: Assumptions) -> f64 {
        let mut overhead = 0.0;
        let mut gone: Vec<f64> = Vec::with_capacity(self.would.len());
        for index in 0..self.would.len() {
            let (request, split) = (&self.requests[index], &self.splits[index]);
            let before = request.continues.filter(|_| !request.compacted);
            let mut own = before.and_then(|before| gone.get(before).copied()).unwrap_or(0.0);
            let tokens = &mut self.would[index].tokens;
            let history = tokens.visible_read
                + tokens.unseen_read
                + tokens.visible_again
                + tokens.unseen_again;
            let cliff = split.prices.bands[0].above;
            let mut is_cut = false;
            if cliff != u64::MAX && tokens.prompt() - own > cliff as f64 {
                own = (tokens.prompt() - cliff as f64 * CUT_TO).max(0.0);
                is_cut = true;
            }
            own = own.min(history);
            let share = if history > 0.0 { own / history } else { 0.0 };
            for part in [
                &mut tokens.visible_read,
                &mut tokens.unseen_read,
                &mut tokens.visible_again,
                &mut tokens.unseen_again,
            ] {
                *part *= 1.0 - share;
            }
            if is_cut {
                // The cut breaks the cached prefix: what is left is written again.
                tokens.visible_again += std::mem::take(&mut tokens.visible_read);
                tokens.unseen_again += std::mem::take(&mut tokens.unseen_read);
            }
            gone.push(own);
            if own > 0.0 {
                overhead += self.lookup(index, assumed.lookups / 10.0);
            }
        }
        overhead
    }
}

/// Returns US dollars for a request as it would have been.
fn cost(would: &Projection, split: &Split) -> f64 {
    let (tokens, prices) = (&would.tokens, &split.prices);
    let (input_times, output_times) = prices.band(tokens.prompt());
    let input = tokens.read() * prices.cache_read + tokens.fresh() * would.fresh_price;
    let output = (tokens.thinking + tokens.output) * prices.output / 1e6;
    prices.dollars(input) * input_times + output * output_times
}
