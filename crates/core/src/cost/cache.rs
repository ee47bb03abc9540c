//! The model of a provider's cache: the tokens that a request reads from it, writes to it, and pays in full.
//!
//! There are three kinds. With marks (Anthropic) entries end only at marks: a request reads the longest entry that ends at one of
//! its marks or within the twenty blocks up to one, and writes up to its last mark. With ends (OpenAI since GPT-5.6) every
//! request leaves an entry at its end. With steps (others) a request reads its longest prefix that an earlier one had, rounded
//! down. All of Plimsoll uses this one model.

use serde::Serialize;

use super::piece::{Life, Piece, RequestPieces};
use super::prices::{CacheKind, Prices};
use crate::message::{MillisSinceEpoch, Usage};
use crate::names::KeyMap;

/// The blocks up to a mark that Anthropic searches, its own included (its page on prompt caching).
const LOOK_BACK: u32 = 20;
/// The most marks of a request (the same page).
pub const MOST_MARKS: usize = 4;

/// The tokens of one request, by what the cache did with them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Charge {
    /// Tokens read from the cache.
    pub cached: f64,
    /// Tokens written to it.
    pub written: f64,
    /// Of them, for the longer life.
    pub written_long: f64,
    /// Tokens that are neither.
    pub plain: f64,
    /// Messages at the beginning that equal those of the last request.
    pub alike: usize,
    /// Whether the pause since the last request outlived the cache.
    pub cold: bool,
    /// Whether a message of the last request was changed, while the cache was warm.
    pub broken: bool,
}

impl Charge {
    /// Returns all tokens of the prompt.
    pub fn prompt(&self) -> f64 {
        self.cached + self.written + self.plain
    }

    /// Counts tokens that other sessions keep in the cache as read instead of written or plain.
    pub fn share(&mut self, shared: f64) {
        let missing = (shared - self.cached).max(0.0);
        let written = missing.min(self.written);
        let plain = (missing - written).min(self.plain);
        self.cached += written + plain;
        self.written -= written;
        self.written_long = self.written_long.min(self.written);
        self.plain -= plain;
    }

    /// Returns a provider's reported usage as a charge.
    pub fn of(usage: &Usage) -> Self {
        let written = usage.written_tokens.min(usage.prompt_tokens);
        let cached = usage.cached_tokens.min(usage.prompt_tokens - written);
        Self {
            cached: cached as f64,
            written: written as f64,
            written_long: usage.written_long_tokens.min(written) as f64,
            plain: (usage.prompt_tokens - written - cached) as f64,
            ..Self::default()
        }
    }
}

/// An entry: its last use, if times are known, and its life.
#[derive(Debug, Clone, Copy)]
struct CacheEntry {
    used: Option<MillisSinceEpoch>,
    life: Life,
}

/// The state of a provider's cache for one conversation.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    entries: KeyMap<CacheEntry>,
    /// Keys of the last request, and when it was made.
    last: Vec<u64>,
    /// The entries that the last request's prefixes have: the piece at whose end each stands, ascending, and its digest.
    chain: Vec<(usize, u64)>,
    /// In steps, the one entry of every prefix in the chain, so that a request writes only what is new.
    of_chain: Option<CacheEntry>,
    last_used: Option<MillisSinceEpoch>,
}

impl Cache {
    /// Charges a request made at `now`, and remembers it.
    pub fn charge(
        &mut self,
        prices: &Prices,
        pieces: &[Piece],
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        self.charge_request(prices, &RequestPieces::new(pieces.to_vec()), now)
    }

    /// Charges a request made at `now`, and remembers it.
    pub(crate) fn charge_request(
        &mut self,
        prices: &Prices,
        request: &RequestPieces,
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        let RequestPieces { pieces, prefixes } = request;
        let cold = self.is_cold(prices, now);
        let alike = self.alike(pieces);
        let is_steps = prices.cache == CacheKind::Steps;
        self.cut_chain(alike, !is_steps);
        // Behind the common part each prefix is looked up once; before it, the chain has all entries.
        for (at, (prefix, _)) in prefixes.iter().enumerate().skip(alike).filter(|_| !is_steps) {
            if self.entries.contains_key(prefix) {
                self.chain.push((at, *prefix));
            }
        }
        let mut charge = match prices.cache {
            CacheKind::Marks => self.charge_marks(prices, pieces, prefixes, now),
            CacheKind::Ends | CacheKind::Steps => self.charge_prefix(prices, pieces, prefixes, now),
        };
        charge.alike = alike;
        charge.cold = cold;
        charge.broken = !charge.cold && charge.alike < self.last.len();
        if charge.cold {
            charge.alike = 0;
        }
        self.last.truncate(alike);
        self.last.extend(pieces[alike..].iter().map(|piece| piece.key));
        self.last_used = now.or(self.last_used);
        charge
    }

    /// Cuts the chain to the first pieces; what is cut off, or all of it, has entries of its own again.
    fn cut_chain(&mut self, pieces: usize, is_all: bool) {
        let end = self.chain.partition_point(|(at, _)| *at < pieces);
        if let Some(entry) = self.of_chain {
            let own = &self.chain[if is_all { 0 } else { end }..];
            self.entries.extend(own.iter().map(|(_, prefix)| (*prefix, entry)));
            self.of_chain = Some(entry).filter(|_| !is_all);
        }
        self.chain.truncate(end);
    }

    /// Counts the pieces at the beginning that equal those of the last request.
    fn alike(&self, pieces: &[Piece]) -> usize {
        self.last.iter().zip(pieces).take_while(|(last, now)| **last == now.key).count()
    }

    /// Returns whether no entry is left at `now`. Unknown times count as warm.
    pub fn is_cold(&self, prices: &Prices, now: Option<MillisSinceEpoch>) -> bool {
        let of_chain = self.of_chain.iter().filter(|_| !self.chain.is_empty());
        let mut all = of_chain.chain(self.entries.values()).peekable();
        all.peek().is_some() && !all.any(|entry| lives(prices, *entry, now))
    }

    /// Notes that all living entries were read at `at`.
    pub fn read_again(&mut self, prices: &Prices, at: MillisSinceEpoch) {
        let all = self.of_chain.iter_mut().chain(self.entries.values_mut());
        for entry in all.filter(|entry| lives(prices, **entry, Some(at))) {
            entry.used = entry.used.max(Some(at));
        }
        self.last_used = self.last_used.max(Some(at));
    }

    /// Returns the pieces that end a living entry at `now`, where a mark would find it, ascending.
    pub(crate) fn ends(
        &self,
        prices: &Prices,
        request: &RequestPieces,
        now: Option<MillisSinceEpoch>,
    ) -> Vec<usize> {
        let alike = self.alike(&request.pieces);
        let known = self.chain.iter().take_while(|(at, _)| *at < alike).copied();
        let rest = request.prefixes.iter().enumerate().skip(alike);
        let all = known.chain(rest.map(|(at, (prefix, _))| (at, *prefix)));
        all.filter(|(at, prefix)| self.has(prices, *at, *prefix, now)).map(|(at, _)| at).collect()
    }

    /// Returns the last piece that ends a living entry at `now`.
    pub(crate) fn last_end(
        &self,
        prices: &Prices,
        request: &RequestPieces,
        now: Option<MillisSinceEpoch>,
    ) -> Option<usize> {
        self.last_living(prices, &request.prefixes, now)
    }

    fn last_living(
        &self,
        prices: &Prices,
        prefixes: &[(u64, f64)],
        now: Option<MillisSinceEpoch>,
    ) -> Option<usize> {
        (0..prefixes.len()).rfind(|&at| self.has(prices, at, prefixes[at].0, now))
    }

    /// Returns whether a prefix that ends at piece `at` has a living entry.
    fn has(&self, prices: &Prices, at: usize, prefix: u64, now: Option<MillisSinceEpoch>) -> bool {
        // In steps the chain has every piece.
        let of_chain = self.of_chain.filter(|_| self.chain.get(at) == Some(&(at, prefix)));
        let entry = of_chain.or_else(|| self.entries.get(&prefix).copied());
        entry.is_some_and(|entry| lives(prices, entry, now))
    }

    fn charge_marks(
        &mut self,
        prices: &Prices,
        pieces: &[Piece],
        prefixes: &[(u64, f64)],
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        let total = prefixes.last().map_or(0.0, |last| last.1);
        let marks = || pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, piece.mark?)));
        let Some((last, _)) = marks().next_back() else {
            return Charge { plain: total, ..Charge::default() };
        };
        let least = f64::from(prices.cache_least);
        let found = self.found(prices, pieces, prefixes, now);
        let cached = found.map_or(0.0, |at| prefixes[at].1);
        let end = prefixes[last].1;
        if end < least {
            return Charge { plain: total, ..Charge::default() };
        }
        // Tokens up to the last long-lived mark are written for the long life, the rest for the short one.
        let long = marks().filter(|(_, life)| *life == Life::Long).map(|(at, _)| prefixes[at].1);
        let long = long.fold(0.0, f64::max);
        let written = (end - cached).max(0.0);
        let written_long = (long - cached).clamp(0.0, written);
        // A read also refreshes the shorter entries that begin the one that was read.
        for (_, prefix) in self.chain.iter().take_while(|(at, _)| Some(*at) <= found) {
            if let Some(entry) = self.entries.get_mut(prefix) {
                entry.used = now.or(entry.used);
            }
        }
        for (at, life) in marks().filter(|(at, _)| prefixes[*at].1 >= least) {
            if let Err(place) = self.chain.binary_search_by_key(&at, |(at, _)| *at) {
                self.chain.insert(place, (at, prefixes[at].0));
            }
            let entry = self.entries.entry(prefixes[at].0);
            let entry = entry.or_insert(CacheEntry { used: now, life });
            let longer = entry.life.max(life);
            *entry = CacheEntry { used: now.or(entry.used), life: longer };
        }
        Charge {
            cached,
            written,
            written_long,
            plain: total - cached - written,
            ..Charge::default()
        }
    }

    /// Returns the tokens that a request at `now` would read at its marks, without recording the request.
    pub(crate) fn read(
        &self,
        prices: &Prices,
        request: &RequestPieces,
        now: Option<MillisSinceEpoch>,
    ) -> f64 {
        let RequestPieces { pieces, prefixes } = request;
        self.found(prices, pieces, prefixes, now).map_or(0.0, |at| prefixes[at].1)
    }

    /// Finds the longest entry that a request reads at its marks.
    fn found(
        &self,
        prices: &Prices,
        pieces: &[Piece],
        prefixes: &[(u64, f64)],
        now: Option<MillisSinceEpoch>,
    ) -> Option<usize> {
        let marks = pieces.iter().enumerate().filter(|(_, piece)| piece.mark.is_some());
        let found =
            marks.filter_map(|(mark, _)| self.look_back(prices, pieces, prefixes, mark, now)).max();
        found.filter(|&at| prefixes[at].1 >= f64::from(prices.cache_least))
    }

    /// Finds the entry nearest to a mark, at it or before it.
    fn look_back(
        &self,
        prices: &Prices,
        pieces: &[Piece],
        prefixes: &[(u64, f64)],
        mark: usize,
        now: Option<MillisSinceEpoch>,
    ) -> Option<usize> {
        let mut blocks = 0;
        for at in (0..=mark).rev() {
            if self.has(prices, at, prefixes[at].0, now) {
                return Some(at);
            }
            blocks += pieces[at].blocks.max(1);
            if blocks >= LOOK_BACK {
                return None;
            }
        }
        None
    }

    fn charge_prefix(
        &mut self,
        prices: &Prices,
        pieces: &[Piece],
        prefixes: &[(u64, f64)],
        now: Option<MillisSinceEpoch>,
    ) -> Charge {
        let total = prefixes.last().map_or(0.0, |last| last.1);
        let life = pieces.iter().filter_map(|piece| piece.mark).max().unwrap_or_default();
        let least = f64::from(prices.cache_least);
        let known = self.last_living(prices, prefixes, now);
        let common = known.map_or(0.0, |at| prefixes[at].1);
        let cached = match prices.cache {
            _ if common < least => 0.0,
            CacheKind::Steps => {
                let step = f64::from(prices.cache_step.max(1));
                (common / step).floor() * step * prices.cache_hits
            }
            _ => common,
        };
        if prices.cache == CacheKind::Steps {
            for (at, (prefix, _)) in prefixes.iter().enumerate().skip(self.chain.len()) {
                self.entries.remove(prefix);
                self.chain.push((at, *prefix));
            }
            self.of_chain = Some(CacheEntry { used: now, life });
            return Charge { cached, ..written_by(total - cached, life) };
        }
        for (at, (prefix, _)) in prefixes.iter().enumerate() {
            // A read also refreshes the shorter entries that begin it.
            let known = known.is_some_and(|known| at <= known) && self.entries.contains_key(prefix);
            let ends = at + 1 == prefixes.len() || pieces[at].mark.is_some();
            if ends || known {
                self.entries.insert(*prefix, CacheEntry { used: now, life });
            }
        }
        let entries = &self.entries;
        let all = prefixes.iter().enumerate().map(|(at, (prefix, _))| (at, *prefix));
        self.chain.clear();
        self.chain.extend(all.filter(|(_, prefix)| entries.contains_key(prefix)));
        Charge { cached, ..written_by(total - cached, life) }
    }
}

fn written_by(written: f64, life: Life) -> Charge {
    let written_long = if life == Life::Long { written } else { 0.0 };
    Charge { written, written_long, ..Charge::default() }
}

fn lives(prices: &Prices, entry: CacheEntry, now: Option<MillisSinceEpoch>) -> bool {
    match (entry.used, now) {
        (Some(used), Some(now)) => {
            now.0.saturating_sub(used.0) <= i64::from(prices.seconds(entry.life)) * 1000
        }
        _ => true,
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums and products of whole numbers are exact")]
mod tests {
    use super::super::prices::WriteTier;
    use super::*;

    const MARKS: Prices = Prices {
        cache: CacheKind::Marks,
        cache_least: 0,
        longer: Some(WriteTier { seconds: 3600, price: 2.0 }),
        ..Prices::PLAIN
    };

    #[expect(clippy::unnecessary_wraps, reason = "a time may be unknown")]
    fn at(seconds: i64) -> Option<MillisSinceEpoch> {
        Some(MillisSinceEpoch(seconds * 1000))
    }

    /// Pieces of ten tokens each; a capital letter carries a mark, `L` and `M` one of an hour.
    fn pieces(said: &str) -> Vec<Piece> {
        said.chars()
            .map(|letter| Piece {
                key: letter.to_ascii_lowercase() as u64,
                tokens: 10.0,
                blocks: 1,
                mark: letter.is_ascii_uppercase().then_some(match letter {
                    'L' | 'M' => Life::Long,
                    _ => Life::Short,
                }),
            })
            .collect()
    }

    fn ask(cache: &mut Cache, prices: &Prices, said: &str, seconds: i64) -> (f64, f64, f64) {
        let charge = cache.charge(prices, &pieces(said), at(seconds));
        (charge.cached, charge.written, charge.plain)
    }

    #[test]
    fn entries_stand_at_marks_only() {
        let mut cache = Cache::default();
        assert_eq!(ask(&mut cache, &MARKS, "abCd", 0), (0.0, 30.0, 10.0));
        assert_eq!(ask(&mut cache, &MARKS, "abcdEf", 10), (30.0, 20.0, 10.0));
        // A change before the only mark leaves nothing to read, though `abc` is as it was.
        assert_eq!(ask(&mut cache, &MARKS, "axcdeF", 20), (0.0, 60.0, 0.0));
        // With a mark at the last place that did not change, what stands before it is read.
        assert_eq!(ask(&mut cache, &MARKS, "abCxeF", 30), (30.0, 30.0, 0.0));
    }

    #[test]
    fn a_mark_looks_back_twenty_blocks() {
        let mut cache = Cache::default();
        ask(&mut cache, &MARKS, "A", 0);
        assert_eq!(ask(&mut cache, &MARKS, &format!("a{}B", "-".repeat(18)), 1).0, 10.0);
        let mut cache = Cache::default();
        ask(&mut cache, &MARKS, "A", 0);
        assert_eq!(ask(&mut cache, &MARKS, &format!("a{}B", "-".repeat(19)), 1).0, 0.0);
    }

    #[test]
    fn entries_live_as_long_as_they_asked_for_and_from_their_last_read() {
        let mut cache = Cache::default();
        assert_eq!(cache.charge(&MARKS, &pieces("L"), at(0)).written_long, 10.0);
        ask(&mut cache, &MARKS, "lB", 1);
        let late = cache.charge(&MARKS, &pieces("lbC"), at(1000));
        assert_eq!((late.cached, late.written, late.written_long), (10.0, 20.0, 0.0));
        assert!(!late.cold);
        assert_eq!(ask(&mut cache, &MARKS, "lbcD", 1290).0, 30.0);
        let gone = cache.charge(&MARKS, &pieces("lbcdE"), at(9000));
        assert!(gone.cold && gone.cached == 0.0, "{gone:?}");
    }

    #[test]
    fn short_prefixes_are_silently_plain() {
        let prices = Prices { cache_least: 25, ..MARKS };
        let mut cache = Cache::default();
        assert_eq!(ask(&mut cache, &prices, "aB", 0), (0.0, 0.0, 20.0));
        assert_eq!(ask(&mut cache, &prices, "abC", 1), (0.0, 30.0, 0.0));
        assert_eq!(ask(&mut cache, &prices, "abcD", 2), (30.0, 10.0, 0.0));
    }

    #[test]
    fn steps_read_the_longest_known_prefix() {
        let prices = Prices { cache_least: 1024, ..Prices::PLAIN };
        let piece = |key, tokens| Piece { key, tokens, blocks: 1, mark: None };
        let mut cache = Cache::default();
        let first = [piece(1, 1000.0), piece(2, 200.0), piece(3, 50.0)];
        assert_eq!(cache.charge(&prices, &first, at(0)).written, 1250.0);
        let changed = [piece(1, 1000.0), piece(2, 200.0), piece(4, 10.0)];
        let charge = cache.charge(&prices, &changed, at(1));
        // 1,200 tokens are alike: nine steps of 128.
        assert_eq!((charge.cached, charge.written), (1152.0, 58.0));
        assert!(charge.broken && charge.alike == 2);
        let short = [piece(1, 1000.0)];
        assert_eq!(cache.charge(&prices, &short, at(2)).cached, 0.0);
        assert!(cache.charge(&prices, &first, at(1000)).cold);
    }

    #[test]
    fn a_cache_that_promises_nothing_has_wide_steps_and_loses_a_part() {
        let prices = Prices { cache_least: 2048, cache_step: 2048, ..Prices::PLAIN };
        let piece = |key, tokens| Piece { key, tokens, blocks: 1, mark: None };
        for (cache_hits, read) in [(1.0, 4096.0), (0.5, 2048.0)] {
            let prices = Prices { cache_hits, ..prices };
            let mut cache = Cache::default();
            cache.charge(&prices, &[piece(1, 6000.0)], at(0));
            let charge = cache.charge(&prices, &[piece(1, 6000.0), piece(2, 100.0)], at(1));
            assert_eq!((charge.cached, charge.written), (read, 6100.0 - read));
        }
    }

    #[test]
    fn entries_stand_at_the_ends_of_requests() {
        let prices = Prices { cache: CacheKind::Ends, cache_least: 0, ..Prices::PLAIN };
        let mut cache = Cache::default();
        assert_eq!(ask(&mut cache, &prices, "abc", 0), (0.0, 30.0, 0.0));
        assert_eq!(ask(&mut cache, &prices, "abcde", 1), (30.0, 20.0, 0.0));
        // `abcd` is as it was, but the longest entry that begins so is `abc`.
        assert_eq!(ask(&mut cache, &prices, "abcdx", 2), (30.0, 20.0, 0.0));
        assert_eq!(ask(&mut cache, &prices, "abx", 3), (0.0, 30.0, 0.0));
    }

    #[test]
    fn usage_is_a_charge() {
        let usage = Usage {
            prompt_tokens: 100,
            cached_tokens: 60,
            written_tokens: 30,
            written_long_tokens: 20,
            ..Usage::default()
        };
        let charge = Charge::of(&usage);
        assert_eq!((charge.cached, charge.written, charge.plain), (60.0, 30.0, 10.0));
        assert_eq!(charge.written_long, 20.0);
    }
}
