//! Need: measures what each recorded step took from earlier messages, and whether the context still showed it.
//!
//! A step needs the names that it copies, the passages of eight words, the lines around a text that it replaces in a file, and
//! every result that just arrived. A symbol or a number counts as shown only in a line of an original; a list of names shows
//! none. Whatever was needed and hidden is fetched: the context is read once more, and the original is written and read on.
//! `work` is the cost of the input with all fetches. The rules and constants are those of the judge in use, so the figures can
//! be compared with it.

mod features;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use serde::Serialize;

use crate::cost::Prices;
use crate::message::{Message, Role};
use crate::names::{self, Key, KeyHasher, KeySet};
use crate::plan::{Context, Sent};
use crate::terms::Terms;
use crate::text::one_line;
use crate::transcript::{Position, Transcript};

pub(crate) use features::edited_texts;
use features::{Features, plain_lines};

/// Tokens of output of the call that fetches an original.
const CALL: f64 = 100.0;
/// Calls that read a fetched original.
const READ_AGAIN: f64 = 8.0;
/// A new result of at most this many characters is needed whole: the judge's 10,000 tokens of 3.3 characters, less 4 for the
/// message.
const FIRST: usize = 32_986;
/// Lines before and after a replaced text that are needed with it.
const AROUND: usize = 5;
/// Lines of at most this many characters are no place and no part of a new result worth a fetch.
const SHORT_PLACE: usize = 8;
const SHORT_LINE: usize = 3;

/// Returns the cost of fetching an original of `tokens` into a context, in plain input tokens.
pub(crate) fn fetch_price(prices: &Prices, context: f64, tokens: f64) -> f64 {
    context * prices.cache_read
        + tokens * (prices.cache_write + READ_AGAIN * prices.cache_read)
        + CALL * prices.output_ratio()
}

/// Needs of one kind, and those of them that the context showed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NeedCount {
    pub needed: u64,
    pub shown: u64,
}

impl NeedCount {
    /// Returns the share that was shown, 1 where nothing was needed.
    pub fn share(&self) -> f64 {
        if self.needed == 0 { 1.0 } else { self.shown as f64 / self.needed as f64 }
    }

    fn add(&mut self, other: Self) {
        self.needed += other.needed;
        self.shown += other.shown;
    }
}

/// Sums over the turns of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Score {
    pub turns: u32,
    /// Cost of the input and of all fetches, in plain input tokens.
    pub work: f64,
    /// Paths, symbols, numbers, URLs and hashes.
    pub names: NeedCount,
    /// Runs of eight words.
    pub passages: NeedCount,
    /// Lines around replaced texts.
    pub places: NeedCount,
    /// Turns at which something was needed and hidden.
    pub blind: u32,
    /// Originals that had to be fetched.
    pub fetches: u32,
}

impl Score {
    /// Adds the sums of another session.
    pub fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.work += other.work;
        self.names.add(other.names);
        self.passages.add(other.passages);
        self.places.add(other.places);
        self.blind += other.blind;
        self.fetches += other.fetches;
    }

    /// Returns the share of turns at which something was needed and hidden.
    pub fn blind_share(&self) -> f64 {
        if self.turns == 0 { 0.0 } else { f64::from(self.blind) / f64::from(self.turns) }
    }
}

/// A message with content that a step needed and the context hid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissedContent {
    /// The turn that needed it, counted from 0 as the contexts are.
    pub turn: u32,
    /// The message that has it.
    pub position: Position,
    /// The names that were needed, as the next step wrote them.
    pub names: Vec<String>,
    /// The words that were copied, one text for each stretch.
    pub copied: Vec<String>,
    /// Lines around a replaced text, as the original has them.
    pub places: Vec<String>,
    /// Whether it had just arrived.
    pub first: bool,
    /// The cost of the fetch, in plain input tokens.
    pub cost: f64,
}

type Counts = HashMap<Key, u32, BuildHasherDefault<KeyHasher>>;

/// How often the context shows each key.
#[derive(Debug, Default)]
struct ShownKeys {
    texts: Counts,
    /// Names in lines of originals, and in any line.
    names: Counts,
    names_anywhere: Counts,
    passages: Counts,
    lines: Counts,
}

/// The keys that a step needs, by kind.
#[derive(Debug, Default)]
struct Needed {
    names: KeySet,
    passages: KeySet,
    lines: KeySet,
}

impl Needed {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.passages.is_empty() && self.lines.is_empty()
    }

    fn count(&self) -> [u64; 3] {
        [self.names.len() as u64, self.passages.len() as u64, self.lines.len() as u64]
    }

    /// Returns how many of the keys `features` has.
    fn covered(&self, features: &Features) -> usize {
        let names = self.names.iter().filter(|key| features.has_name(**key)).count();
        let passages = self.passages.iter().filter(|key| features.has_passage(**key)).count();
        names + passages + self.lines.iter().filter(|key| features.has_line(**key)).count()
    }

    /// Takes out the keys that `features` has.
    fn take(&mut self, features: &Features) -> Self {
        let taken = |keys: &mut KeySet, has: &dyn Fn(Key) -> bool| {
            let taken: KeySet = keys.iter().copied().filter(|key| has(*key)).collect();
            keys.retain(|key| !taken.contains(key));
            taken
        };
        Self {
            names: taken(&mut self.names, &|key| features.has_name(key)),
            passages: taken(&mut self.passages, &|key| features.has_passage(key)),
            lines: taken(&mut self.lines, &|key| features.has_line(key)),
        }
    }
}

/// Scores a session turn by turn, oldest first.
#[derive(Debug, Default)]
pub struct Scorer {
    score: Score,
    originals: Vec<Arc<Features>>,
    /// The keys of the originals so far; lines and the beginnings of long lines together.
    history: Needed,
    /// Names that stand in a line by themselves, paths, URLs and hashes: they count wherever they stand.
    plain: KeySet,
    /// Features of the last context's messages.
    context: Vec<(Arc<Sent>, Arc<Features>)>,
    shown: ShownKeys,
}

impl Scorer {
    /// Returns the sums so far.
    pub fn score(&self) -> Score {
        self.score
    }

    /// Scores the context that was sent for the assistant message at `position` at the given cost; returns the content that it
    /// missed.
    pub fn turn(
        &mut self,
        transcript: &Transcript,
        position: Position,
        context: &Context,
        terms: &Terms,
        cost: f64,
    ) -> Vec<MissedContent> {
        self.remember(transcript, position);
        self.show(transcript, context);
        let message = &transcript.entries()[position].message;
        let step = Features::of(&message.shown());
        let needed = self.needed(&step, message);
        let mut missing = Needed {
            names: needed.names.iter().copied().filter(|key| !self.shows_name(*key)).collect(),
            passages: hidden(&needed.passages, &self.shown.passages),
            lines: hidden(&needed.lines, &self.shown.lines),
        };
        let firsts = self.hidden_firsts(transcript, position, context);
        let size = request_tokens(context, terms);
        let prices = terms.effective_prices();
        let mut fetched = KeySet::default();
        let mut missed = Vec::new();
        let mut work = cost;
        let mut fetch = |at: Position, missing: &mut Needed, fetched: &mut KeySet, first| {
            let original = &self.originals[at];
            let tokens = f64::from(transcript.entries()[at].tokens);
            let cost = fetch_price(&prices, size, tokens);
            work += cost;
            fetched.insert(original.text);
            let got = missing.take(original);
            let (names, copied) = in_words(&message.shown(), &got);
            let entry = &transcript.entries()[at];
            let places = plain_lines(&entry.message.shown())
                .filter(|line| got.lines.contains(&names::key(line)))
                .collect();
            let turn = self.score.turns;
            missed.push(MissedContent { turn, position: at, names, copied, places, first, cost });
        };
        let mut counts = needed.count();
        for first in firsts {
            if !fetched.contains(&self.originals[first].text) {
                fetch(first, &mut missing, &mut fetched, true);
            }
        }
        let shown = missing.count();
        for (needed, missing) in counts.iter_mut().zip(shown) {
            *needed -= missing;
        }
        while !missing.is_empty() {
            let best = (0..position)
                .filter(|&at| {
                    let text = self.originals[at].text;
                    !self.shown.texts.contains_key(&text) && !fetched.contains(&text)
                })
                .map(|at| (missing.covered(&self.originals[at]), at))
                .max();
            match best {
                Some((found, at)) if found > 0 => fetch(at, &mut missing, &mut fetched, false),
                _ => break,
            }
        }
        let kinds = needed.count().into_iter().zip(counts);
        let sums = [&mut self.score.names, &mut self.score.passages, &mut self.score.places];
        for (sum, (needed, shown)) in sums.into_iter().zip(kinds) {
            sum.add(NeedCount { needed, shown });
        }
        self.score.turns += 1;
        self.score.work += work;
        self.score.blind += u32::from(!missed.is_empty());
        self.score.fetches += missed.len() as u32;
        missed
    }

    /// Returns what a step took from earlier messages.
    fn needed(&self, step: &Features, message: &Message) -> Needed {
        let known = |keys: &[Key], history: &KeySet| {
            keys.iter().copied().filter(|key| history.contains(key)).collect()
        };
        let mut lines = KeySet::default();
        for call in message.calls() {
            for text in edited_texts(&call.arguments) {
                self.add_place(text, &mut lines);
            }
        }
        Needed {
            names: known(&step.names, &self.history.names),
            passages: known(&step.passages, &self.history.passages),
            lines,
        }
    }

    /// Adds the lines around a replaced text where it was last seen.
    fn add_place(&self, text: &str, lines: &mut KeySet) {
        let old: Vec<String> =
            plain_lines(text).filter(|line| line.chars().count() > SHORT_PLACE).collect();
        let Some(first) = old.first().map(|line| names::key(line)) else { return };
        let Some(original) = self.originals.iter().rev().find(|one| one.has_line(first)) else {
            return;
        };
        let at = original.lines.iter().position(|line| line.key == first).unwrap_or(0);
        let end = (at + old.len() + AROUND).min(original.lines.len());
        let around = original.lines[at.saturating_sub(AROUND)..end].iter();
        lines.extend(around.filter(|line| line.characters > SHORT_PLACE).map(|line| line.key));
    }

    fn shows_name(&self, key: Key) -> bool {
        self.shown.names.contains_key(&key)
            || (self.shown.names_anywhere.contains_key(&key) && self.plain.contains(&key))
    }

    /// Returns the results that just arrived and are not shown whole, the newest first.
    fn hidden_firsts(
        &self,
        transcript: &Transcript,
        position: Position,
        context: &Context,
    ) -> Vec<Position> {
        let mut found = Vec::new();
        for at in (0..position).rev() {
            let entry = &transcript.entries()[at];
            if entry.message.role != Role::Tool {
                break;
            }
            let features = &self.originals[at];
            let text = entry.message.shown();
            if self.shown.texts.contains_key(&features.text) || text.chars().count() > FIRST {
                continue;
            }
            let plain = one_line(&text);
            let last = context.len().saturating_sub(position - at + 4);
            let stands = |sent: &Arc<Sent>| one_line(&sent.message.shown()).contains(&plain);
            let is_hidden = features.lines.iter().any(|line| {
                line.characters > SHORT_LINE && !self.shown.lines.contains_key(&line.key)
            });
            if is_hidden && !context[last..].iter().any(stands) {
                found.push(at);
            }
        }
        found
    }

    /// Reads the messages before `end` that it has not read yet.
    fn remember(&mut self, transcript: &Transcript, end: Position) {
        for entry in &transcript.entries()[self.originals.len()..end] {
            let features = Features::of(&entry.message.shown());
            self.history.names.extend(&features.names);
            self.history.passages.extend(&features.passages);
            self.history.lines.extend(
                features.lines.iter().flat_map(|line| [Some(line.key), line.beginning]).flatten(),
            );
            self.plain.extend(&features.anywhere);
            self.originals.push(Arc::new(features));
        }
    }

    /// Replaces the last context by `context`.
    fn show(&mut self, transcript: &Transcript, context: &Context) {
        let alike = self
            .context
            .iter()
            .zip(context)
            .take_while(|((last, _), now)| Arc::ptr_eq(last, now) || last.hash == now.hash)
            .count();
        for (_, features) in self.context.drain(alike..) {
            self.shown.count(&features, false);
        }
        for sent in &context[alike..] {
            let whole = sent.position.filter(|&at| transcript.entries()[at].hash == sent.hash);
            let features = if let Some(at) = whole {
                self.originals[at].clone()
            } else {
                let mut features = Features::of(&sent.message.shown());
                features.keep_originals(|key| self.history.lines.contains(&key));
                Arc::new(features)
            };
            self.shown.count(&features, true);
            self.context.push((sent.clone(), features));
        }
    }
}

impl ShownKeys {
    /// Adds the keys of a message, or takes them away.
    fn count(&mut self, features: &Features, is_added: bool) {
        let change = |counts: &mut Counts, key: Key| {
            if is_added {
                *counts.entry(key).or_insert(0) += 1;
            } else if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        };
        change(&mut self.texts, features.text);
        for &key in features.exact.as_ref().unwrap_or(&features.names) {
            change(&mut self.names, key);
        }
        for &key in &features.names {
            change(&mut self.names_anywhere, key);
        }
        for &key in &features.passages {
            change(&mut self.passages, key);
        }
        for &key in &features.line_keys {
            change(&mut self.lines, key);
        }
    }
}

fn hidden(needed: &KeySet, shown: &Counts) -> KeySet {
    needed.iter().copied().filter(|key| !shown.contains_key(key)).collect()
}

fn request_tokens(context: &Context, terms: &Terms) -> f64 {
    let sizes = context.iter().map(|sent| {
        let is_answer = sent.message.role == Role::Assistant;
        f64::from(sent.tokens) + if is_answer { terms.around.unseen } else { 0.0 }
    });
    sizes.sum()
}

/// Lists names and passages in the words of the step that needed them.
fn in_words(step: &str, got: &Needed) -> (Vec<String>, Vec<String>) {
    let mut seen = KeySet::default();
    let mut needed = Vec::new();
    names::each_name(step, |name| {
        let key = names::key(name);
        if got.names.contains(&key) && seen.insert(key) {
            needed.push(name.to_owned());
        }
    });
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    names::each_run(step, |key, start, end| {
        if got.passages.contains(&key) {
            match stretches.last_mut() {
                Some(last) if start <= last.1 => last.1 = end,
                _ => stretches.push((start, end)),
            }
        }
    });
    let copied = stretches.into_iter().map(|(start, end)| step[start..end].to_owned()).collect();
    (needed, copied)
}

#[cfg(test)]
mod tests;
