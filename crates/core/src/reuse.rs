//! Reuse: measures which names each recorded step copied from earlier messages, and whether the context still showed them.
//!
//! `work` is the cost of doing the same work: the cost of the input, plus one expansion for every earlier message that must
//! be fetched back because the context hid something needed. Definitions and constants are those of the scorer in use, so
//! the figures can be compared with it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use serde::Serialize;

use crate::message::{MillisSinceEpoch, Role};
use crate::names::{self, Key, KeyHasher, KeySet};
use crate::plan::{Context, Sent};
use crate::text::one_line;
use crate::tokens::MESSAGE_OVERHEAD;
use crate::transcript::{Position, Transcript};

/// A token read from the cache, plain input = 1.
const READ: f64 = 0.1;
/// A token written to the cache.
const WRITE: f64 = 1.25;
/// A pause that empties the cache, in milliseconds.
const CACHE_LIFE: i64 = 300_000;
/// Output of an expansion: 100 tokens at 5.
const EXPANSION_OUTPUT: f64 = 500.0;
/// A fresh result of at most this many tokens counts as needed whole.
const FRESH: f64 = 4000.0;

/// Sums over the turns of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Score {
    pub turns: u32,
    /// Cost of the input with caching, in plain input tokens.
    pub cost: f64,
    /// Cost of doing the same work.
    pub work: f64,
    /// Input tokens of all turns.
    pub tokens: f64,
    /// Names that the next steps copied from earlier messages.
    pub needed: u64,
    /// Those of them that the context still showed.
    pub kept: u64,
    /// As `needed`, for runs of eight words.
    pub runs_needed: u64,
    pub runs_kept: u64,
    /// Tokens of the largest context.
    pub peak: f64,
    /// Turns at which the prefix broke while the cache was warm.
    pub breaks: u32,
    /// Messages that had to be fetched back.
    pub expansions: u32,
}

impl Score {
    /// Adds the sums of another session.
    pub fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.cost += other.cost;
        self.work += other.work;
        self.tokens += other.tokens;
        self.needed += other.needed;
        self.kept += other.kept;
        self.runs_needed += other.runs_needed;
        self.runs_kept += other.runs_kept;
        self.peak = self.peak.max(other.peak);
        self.breaks += other.breaks;
        self.expansions += other.expansions;
    }

    /// Returns the share of needed names that the context showed, 1 if none was needed.
    pub fn reuse(&self) -> f64 {
        if self.needed == 0 { 1.0 } else { self.kept as f64 / self.needed as f64 }
    }

    /// Returns the share of needed runs that the context showed, 1 if none was needed.
    pub fn run_reuse(&self) -> f64 {
        if self.runs_needed == 0 { 1.0 } else { self.runs_kept as f64 / self.runs_needed as f64 }
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
    /// The cost of the expansion, in plain input tokens.
    pub cost: f64,
}

/// Characters of a token, the same for every session and policy, so that figures can be compared.
const CHARACTERS: f64 = 3.3;

#[derive(Debug)]
struct Features {
    text: Key,
    /// Characters / 3.3, and 4 for the message.
    tokens: f64,
    names: Vec<Key>,
    runs: Vec<Key>,
}

impl Features {
    fn of(text: &str) -> Self {
        Self {
            text: names::key(text),
            tokens: text.chars().count() as f64 / CHARACTERS + f64::from(MESSAGE_OVERHEAD),
            names: sorted(names::names(text)),
            runs: sorted(names::runs(text)),
        }
    }

    fn has(&self, key: Key) -> bool {
        self.names.binary_search(&key).is_ok() || self.runs.binary_search(&key).is_ok()
    }

    fn all(&self) -> impl Iterator<Item = Key> + '_ {
        self.names.iter().chain(&self.runs).copied()
    }
}

fn sorted(keys: KeySet) -> Vec<Key> {
    let mut keys: Vec<Key> = keys.into_iter().collect();
    keys.sort_unstable();
    keys
}

type Counts = HashMap<Key, u32, BuildHasherDefault<KeyHasher>>;

/// Scores a session turn by turn, oldest first.
#[derive(Debug, Default)]
pub struct Scorer {
    score: Score,
    originals: Vec<Arc<Features>>,
    history: KeySet,
    /// Features of the last context's messages, and how often each key stands in them.
    shown: Vec<(Arc<Sent>, Arc<Features>)>,
    counts: Counts,
    /// How often each whole text stands in the last context.
    texts: Counts,
    last_time: Option<MillisSinceEpoch>,
}

impl Scorer {
    /// Returns the sums so far.
    pub fn score(&self) -> Score {
        self.score
    }

    /// Scores the context that was sent for the assistant message at `position`; returns the content that it missed.
    pub fn turn(
        &mut self,
        transcript: &Transcript,
        position: Position,
        context: &Context,
    ) -> Vec<MissedContent> {
        self.remember(transcript, position);
        let entry = &transcript.entries()[position];
        let time = entry.message.time;
        let cold = matches!((self.last_time, time), (Some(last), Some(now)) if now.0.saturating_sub(last.0) > CACHE_LIFE);
        let alike = self.show(transcript, context, cold);
        let sizes = |shown: &[(Arc<Sent>, Arc<Features>)]| -> f64 {
            shown.iter().map(|(_, features)| features.tokens).sum()
        };
        let (size, cached) = (sizes(&self.shown), sizes(&self.shown[..alike]));
        let cost = cached * READ + (size - cached) * WRITE;
        self.last_time = time;

        let text = entry.message.shown();
        let step = Features::of(&text);
        let mut missing = KeySet::default();
        let mut count = |keys: &[Key], needed: &mut u64, kept: &mut u64| {
            for &key in keys.iter().filter(|key| self.history.contains(key)) {
                *needed += 1;
                if self.counts.contains_key(&key) {
                    *kept += 1;
                } else {
                    missing.insert(key);
                }
            }
        };
        count(&step.names, &mut self.score.needed, &mut self.score.kept);
        count(&step.runs, &mut self.score.runs_needed, &mut self.score.runs_kept);

        let mut work = cost;
        let mut missed = Vec::new();
        let shown_now = &self.texts;
        let mut fetched = KeySet::default();
        let mut expand = |found: Position, missing: &mut KeySet, fetched: &mut KeySet| {
            let original = &self.originals[found];
            let price = size * READ + original.tokens * WRITE + EXPANSION_OUTPUT;
            work += price;
            fetched.insert(original.text);
            let got: KeySet = original.all().filter(|key| missing.remove(key)).collect();
            missed.push(describe(self.score.turns, found, price, &text, &got));
        };
        for fresh in (0..position).rev() {
            let candidate = &transcript.entries()[fresh];
            if candidate.message.role != Role::Tool {
                break;
            }
            let features = &self.originals[fresh];
            if features.tokens > FRESH
                || shown_now.contains_key(&features.text)
                || fetched.contains(&features.text)
            {
                continue;
            }
            let last = context.len().saturating_sub(position - fresh + 4);
            let plain = one_line(&candidate.message.shown());
            if !context[last..].iter().any(|sent| one_line(&sent.message.shown()).contains(&plain))
            {
                expand(fresh, &mut missing, &mut fetched);
            }
        }
        while !missing.is_empty() {
            let best = (0..position)
                .filter(|&at| {
                    let text = self.originals[at].text;
                    !shown_now.contains_key(&text) && !fetched.contains(&text)
                })
                .map(|at| (missing.iter().filter(|&&key| self.originals[at].has(key)).count(), at))
                .max();
            match best {
                Some((found, at)) if found > 0 => expand(at, &mut missing, &mut fetched),
                _ => break,
            }
        }

        self.score.turns += 1;
        self.score.cost += cost;
        self.score.work += work;
        self.score.tokens += size;
        self.score.peak = self.score.peak.max(size);
        self.score.expansions += missed.len() as u32;
        missed
    }

    /// Reads the messages before `end` that it has not read yet.
    fn remember(&mut self, transcript: &Transcript, end: Position) {
        for entry in &transcript.entries()[self.originals.len()..end] {
            let features = Arc::new(Features::of(&entry.message.shown()));
            self.history.extend(features.all());
            self.originals.push(features);
        }
    }

    /// Replaces the last context by `context`; returns how many messages at its beginning come from the cache.
    fn show(&mut self, transcript: &Transcript, context: &Context, cold: bool) -> usize {
        let alike = self
            .shown
            .iter()
            .zip(context)
            .take_while(|((last, _), now)| Arc::ptr_eq(last, now) || last.hash == now.hash)
            .count();
        if alike < self.shown.len() && !cold {
            self.score.breaks += 1;
        }
        for (_, features) in self.shown.drain(alike..) {
            for key in features.all() {
                uncount(&mut self.counts, key);
            }
            uncount(&mut self.texts, features.text);
        }
        for sent in &context[alike..] {
            let whole = sent.position.filter(|&at| transcript.entries()[at].hash == sent.hash);
            let features = match whole {
                Some(at) => self.originals[at].clone(),
                None => Arc::new(Features::of(&sent.message.shown())),
            };
            for key in features.all() {
                *self.counts.entry(key).or_insert(0) += 1;
            }
            *self.texts.entry(features.text).or_insert(0) += 1;
            self.shown.push((sent.clone(), features));
        }
        if cold { 0 } else { alike }
    }
}

/// Counts a key once less.
fn uncount(counts: &mut Counts, key: Key) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// Lists the names and runs that an expansion gave back, in the words of the step that needed them.
fn describe(turn: u32, position: Position, cost: f64, step: &str, got: &KeySet) -> MissedContent {
    let mut seen = KeySet::default();
    let mut needed = Vec::new();
    names::each_name(step, |name| {
        let key = names::key(name);
        if got.contains(&key) && seen.insert(key) {
            needed.push(name.to_owned());
        }
    });
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    names::each_run(step, |key, start, end| {
        if got.contains(&key) {
            match stretches.last_mut() {
                Some(last) if start <= last.1 => last.1 = end,
                _ => stretches.push((start, end)),
            }
        }
    });
    let copied = stretches.into_iter().map(|(start, end)| step[start..end].to_owned()).collect();
    MissedContent { turn, position, names: needed, copied, cost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::plan::Plan;
    use crate::tokens::Tokenizer;

    fn session() -> Transcript {
        let mut transcript = Transcript::new(Tokenizer::Characters { per_token: 3.3 });
        transcript
            .push(Message::text(Role::User, "please look at src/main.rs for the failing test"));
        transcript.push(Message::text(Role::Assistant, "I will look"));
        transcript
            .push(Message::result("1", "in src/main.rs the function parse_header is on line 1234"));
        transcript.push(Message::text(Role::Assistant, "parse_header it is"));
        transcript.push(Message::text(Role::User, "go on"));
        transcript.push(Message::text(Role::Assistant, "changed parse_header at 1234"));
        transcript
    }

    #[test]
    fn full_history_misses_nothing() {
        let transcript = session();
        let (mut scorer, mut plan) = (Scorer::default(), Plan::default());
        for position in transcript.requests().collect::<Vec<_>>() {
            plan.extend(&transcript, position);
            assert!(scorer.turn(&transcript, position, &plan.render()).is_empty());
        }
        let score = scorer.score();
        assert_eq!((score.turns, score.needed, score.kept), (3, 3, 3));
        assert!((score.work - score.cost).abs() < 1e-9);
        assert_eq!(score.breaks, 0);
    }

    #[test]
    fn what_was_hidden_is_named_with_its_message() {
        let transcript = session();
        let mut scorer = Scorer::default();
        let mut missed = Vec::new();
        for position in transcript.requests().collect::<Vec<_>>() {
            let mut plan = Plan::default();
            plan.extend(&transcript, position);
            let mut context = plan.render();
            if position == 5 {
                context.remove(2);
            }
            missed.extend(scorer.turn(&transcript, position, &context));
        }
        assert_eq!(missed.len(), 1);
        assert_eq!((missed[0].turn, missed[0].position), (2, 2));
        assert_eq!(missed[0].names, ["1234"]);
        assert_eq!(scorer.score().expansions, 1);
        assert_eq!(scorer.score().breaks, 1);
    }
}
