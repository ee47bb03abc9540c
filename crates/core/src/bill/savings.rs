//! Estimates the savings of settings on recorded requests, with a range; each setting applies to the result of those before it.

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
    /// After a pause that outlived the cache, send old content shortened: it is written again anyway.
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

/// US dollars that a setting would have saved; negative if it would have cost more.
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

    /// Adds other estimates.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.low += other.low;
            own.likely += other.likely;
            own.high += other.high;
        }
    }
}

/// Assumptions about what no record shows.
#[derive(Debug, Clone, Copy)]
struct Assumptions {
    /// The share of system prompt and tools that lazy tools leave out (chosen: tools are 40 to 70 % of it, and 60 to 80 % of
    /// them are never asked for).
    lazy: f64,
    /// Which repeated runs count: 0 is runs of at least eight lines, 1 is runs of at least three.
    short_runs: f64,
    /// The share of old visible content that is removed when the cache is cold (chosen: from half of what `replay` settles to all).
    pruned: f64,
    /// Lookups of removed content for each ten requests after its removal.
    lookups: f64,
}

const LOW: Assumptions = Assumptions { lazy: 0.24, short_runs: 0.0, pruned: 0.2, lookups: 1.0 };
const LIKELY: Assumptions = Assumptions { lazy: 0.4, short_runs: 0.5, pruned: 0.35, lookups: 0.5 };
const HIGH: Assumptions = Assumptions { lazy: 0.56, short_runs: 1.0, pruned: 0.5, lookups: 0.0 };

/// A smaller system prompt holds few tools, and no saving is assumed (chosen: a handful of schemas beside instructions).
const LEAST_SYSTEM: f64 = 5000.0;
/// Output of a lookup: a call with a short argument.
const LOOKUP_OUTPUT: f64 = 100.0;
/// The content of this many newest requests stays when the cache is cold.
const FRESH_REQUESTS: usize = 5;
/// The share of the cliff to which a conversation is cut when it would pass it.
const CUT_TO: f64 = 0.7;

/// Estimates the saving of each setting on the requests of one session.
///
/// `counted` marks the requests that are billed to the session; `tools_used` is how many different tools were called.
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

/// A request as the settings so far would have sent it.
#[derive(Debug, Clone, Copy)]
struct Projection {
    tokens: SplitTokens,
    fresh_price: f64,
}

struct SavingsEstimator<'a> {
    requests: &'a [Request],
    splits: &'a [Split],
    counted: &'a [bool],
    projections: Vec<Projection>,
}

impl<'a> SavingsEstimator<'a> {
    fn new(requests: &'a [Request], splits: &'a [Split], counted: &'a [bool]) -> Self {
        let projections = splits
            .iter()
            .map(|split| Projection { tokens: split.tokens, fresh_price: split.fresh_price })
            .collect();
        Self { requests, splits, counted, projections }
    }

    fn run(mut self, assumed: Assumptions, tools_used: f64) -> [f64; Saving::ALL.len()] {
        Saving::ALL.map(|saving| {
            let before = self.cost();
            let kept = self.projections.clone();
            let overhead = match saving {
                Saving::LazyTools => self.lazy_tools(assumed, tools_used),
                Saving::SaidOnce => self.said_once(assumed),
                Saving::PruneWhenCold => self.prune_when_cold(assumed),
                Saving::LongerLife => self.other_life(false),
                Saving::ShorterLife => self.other_life(true),
                Saving::BelowCliff => self.below_cliff(assumed),
            };
            let saved = before - self.cost() - overhead;
            // Nobody uses a setting that costs more, so the next settings start without it.
            if saved <= 0.0 {
                self.projections = kept;
            }
            saved
        })
    }

    fn cost(&self) -> f64 {
        let all = self.projections.iter().zip(self.splits).zip(self.counted);
        all.filter(|(_, counted)| **counted).map(|((would, split), _)| cost(would, split)).sum()
    }

    /// Returns US dollars for `lookups` further requests like this one.
    fn lookup(&self, at: usize, lookups: f64) -> f64 {
        if !self.counted[at] {
            return 0.0;
        }
        let prices = &self.splits[at].prices;
        let read = self.projections[at].tokens.prompt() * prices.cache_read;
        lookups * (prices.dollars(read) + LOOKUP_OUTPUT * prices.output / 1e6)
    }

    fn lazy_tools(&mut self, assumed: Assumptions, tools_used: f64) -> f64 {
        let (mut least, mut first) = (f64::INFINITY, None);
        for (index, would) in self.projections.iter_mut().enumerate() {
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
        let mut repeated: Vec<f64> = Vec::with_capacity(self.projections.len());
        for (index, (request, would)) in self.requests.iter().zip(&mut self.projections).enumerate()
        {
            let added = &request.added;
            let short = added.repeated.saturating_sub(added.repeated_long) as f64;
            let own = (added.repeated_long as f64 + short * assumed.short_runs) * rate;
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
        self.remove_history(assumed, SplitTokens::visible_mut, |estimator, index, gone| {
            if estimator.splits[index].cause != Some(Cause::Pause) {
                return gone;
            }
            let tokens = &estimator.projections[index].tokens;
            let old = tokens.visible_read + tokens.visible_again - estimator.newest(index);
            gone.max(old.max(gone) * assumed.pruned)
        })
    }

    /// Takes tokens out of the history of each request, and keeps them out of the requests that continue it.
    ///
    /// `parts` are the parts of the history that shrink. `gone` returns how many of their tokens are gone at a request, given how
    /// many were gone before it. Returns US dollars for looking them up again.
    fn remove_history<const N: usize>(
        &mut self,
        assumed: Assumptions,
        parts: fn(&mut SplitTokens) -> [&mut f64; N],
        mut gone: impl FnMut(&Self, usize, f64) -> f64,
    ) -> f64 {
        let mut overhead = 0.0;
        let mut all_gone: Vec<f64> = Vec::with_capacity(self.projections.len());
        for index in 0..self.projections.len() {
            let request = &self.requests[index];
            let before = request.continues.filter(|_| !request.compacted);
            let before = before.and_then(|before| all_gone.get(before).copied()).unwrap_or(0.0);
            let own = gone(self, index, before);
            let tokens = &mut self.projections[index].tokens;
            let history: f64 = parts(tokens).into_iter().map(|part| *part).sum();
            let own = own.min(history);
            let share = if history > 0.0 { own / history } else { 0.0 };
            for part in parts(tokens) {
                *part *= 1.0 - share;
            }
            all_gone.push(own);
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
            sum += self.projections[at].tokens.new;
        }
        sum
    }

    /// Changes the life of entries: from longer to shorter if `is_long`, else from shorter to longer.
    fn other_life(&mut self, is_long: bool) -> f64 {
        for (would, split) in self.projections.iter_mut().zip(self.splits) {
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
                    // Content that was read would have been written again.
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
        let mut cut = Vec::new();
        let overhead =
            self.remove_history(assumed, SplitTokens::history_mut, |estimator, index, gone| {
                let cliff = estimator.splits[index].prices.bands[0].above;
                let prompt = estimator.projections[index].tokens.prompt();
                if cliff == u64::MAX || prompt - gone <= cliff as f64 {
                    return gone;
                }
                cut.push(index);
                (prompt - cliff as f64 * CUT_TO).max(0.0)
            });
        // A cut breaks the cached prefix: what is left is written again.
        for index in cut {
            let tokens = &mut self.projections[index].tokens;
            tokens.visible_again += std::mem::take(&mut tokens.visible_read);
            tokens.unseen_again += std::mem::take(&mut tokens.unseen_read);
        }
        overhead
    }
}

/// Returns the US dollars of a projected request.
fn cost(projection: &Projection, split: &Split) -> f64 {
    let (tokens, prices) = (&projection.tokens, &split.prices);
    let (input_times, output_times) = prices.band(tokens.prompt());
    let input = tokens.read() * prices.cache_read + tokens.fresh() * projection.fresh_price;
    let output = (tokens.thinking + tokens.output) * prices.output / 1e6;
    prices.dollars(input) * input_times + output * output_times
}
