//! Counts needs: which results a step copied names or runs of words from, by tool, kind, age and size.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::ResultKind;
use crate::message::Role;
use crate::names::{self, Key, KeySet};
use crate::replay::Stretch;
use crate::transcript::{Position, Transcript};

/// The first turn of each class of age, as powers of two; the law is measured from 2 turns on, for what was just read is used
/// in any case.
pub const AGES: [u32; 7] = [2, 3, 5, 9, 17, 33, 65];
/// The first token of each class of size; smaller results are left alone.
const SIZES: [u32; 5] = [150, 500, 1500, 5000, 15_000];
/// A typical result and the power of the length, as settling has them.
const TYPICAL: f64 = 1300.0;
const POWER: f64 = 0.6;

/// The needs of one class of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct NeedCell {
    /// Turns at which a result of this class could have been needed.
    pub turns: u64,
    pub needs: u64,
    /// The needs that the law expects for a hazard of 1.
    pub expected: f64,
}

impl NeedCell {
    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.needs += other.needs;
        self.expected += other.expected;
    }

    /// Returns the hazard that explains the needs; 0 where none could be.
    pub fn hazard(&self) -> f64 {
        if self.expected > 0.0 { self.needs as f64 / self.expected } else { 0.0 }
    }
}

/// The needs of sessions, by the classes of their results.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NeedTable {
    pub by_kind: BTreeMap<ResultKind, NeedCell>,
    pub by_tool: BTreeMap<Arc<str>, NeedCell>,
    /// By kind and the first turn of the age's class.
    #[serde(serialize_with = "as_rows")]
    pub by_age: BTreeMap<(ResultKind, u32), NeedCell>,
    /// By the first token of the size's class.
    pub by_size: BTreeMap<u32, NeedCell>,
    /// The sessions that have results of a kind.
    pub sessions: BTreeMap<ResultKind, usize>,
}

fn as_rows<S: serde::Serializer>(
    cells: &BTreeMap<(ResultKind, u32), NeedCell>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(|((kind, age), cell)| (kind, age, cell)))
}

impl NeedTable {
    /// Adds the needs of other sessions.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.by_kind, &other.by_kind);
        add(&mut self.by_tool, &other.by_tool);
        add(&mut self.by_age, &other.by_age);
        add(&mut self.by_size, &other.by_size);
        for (kind, sessions) in &other.sessions {
            *self.sessions.entry(*kind).or_default() += sessions;
        }
    }

    /// Returns the power of the length with which needs grow: the slope of the needs a turn over the classes of size.
    ///
    /// The expected needs of a class hold the present power already, so the slope of what is left corrects it. `None` with fewer
    /// than two classes that have needs.
    pub fn power(&self) -> Option<f64> {
        let points: Vec<(f64, f64, f64)> = self
            .by_size
            .iter()
            .filter(|(_, cell)| cell.needs > 0)
            .map(|(size, cell)| (f64::from(*size).ln(), cell.hazard().ln(), cell.needs as f64))
            .collect();
        let weight: f64 = points.iter().map(|point| point.2).sum();
        let mean = |value: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| value(point) * point.2).sum::<f64>() / weight
        };
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| point.2 * (point.0 - x).powi(2)).sum();
        let both: f64 = points.iter().map(|point| point.2 * (point.0 - x) * (point.1 - y)).sum();
        (points.len() > 1 && spread > 0.0).then(|| POWER + both / spread)
    }
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, NeedCell>, from: &BTreeMap<K, NeedCell>) {
    for (key, cell) in from {
        to.entry(key.clone()).or_default().add(cell);
    }
}

/// A result that may be needed again.
#[derive(Debug)]
struct Held {
    kind: ResultKind,
    tool: Arc<str>,
    tokens: u32,
    /// The turn in which it came or was last used.
    used: u32,
}

/// Measures a session: at each step, which older results it needed, and which it could have.
pub fn measure<'a>(stretches: impl IntoIterator<Item = Stretch<'a>>) -> NeedTable {
    let mut table = NeedTable::default();
    for stretch in stretches {
        measure_stretch(stretch.transcript, stretch.known, &mut table);
    }
    table.sessions = table.by_kind.keys().map(|kind| (*kind, 1)).collect();
    table
}

fn measure_stretch(transcript: &Transcript, known: Position, table: &mut NeedTable) {
    let mut results: BTreeMap<Position, Held> = BTreeMap::new();
    // The newest result that holds a key; `None` where a message that is never hidden holds it.
    let mut holders: HashMap<Key, Option<Position>> = HashMap::new();
    for (position, entry) in transcript.entries().iter().enumerate() {
        let message = &entry.message;
        let shown = message.shown();
        let mut keys: KeySet = names::names(&shown);
        keys.extend(names::runs(&shown));
        if message.role == Role::Assistant && position > 0 {
            let mut used: Vec<Position> =
                keys.iter().filter_map(|key| *holders.get(key)?).collect();
            used.sort_unstable();
            used.dedup();
            if position >= known {
                count(&results, &used, entry.turn, table);
            }
            for position in used {
                if let Some(held) = results.get_mut(&position) {
                    held.used = entry.turn;
                }
            }
        }
        let is_result = message.role == Role::Tool;
        if is_result && entry.tokens >= SIZES[0] {
            let call = transcript.call_answered(position);
            let tool = call.map_or_else(|| "unknown".into(), |call| call.name.clone());
            let kind = ResultKind::of(transcript, position);
            let held = Held { kind, tool, tokens: entry.tokens, used: entry.turn };
            results.insert(position, held);
        }
        for key in keys {
            let holder = is_result.then_some(position);
            let known = holders.entry(key).or_insert(holder);
            if known.is_some() {
                *known = holder;
            }
        }
    }
}

/// Counts a step: a need or none for each result that is old enough.
fn count(results: &BTreeMap<Position, Held>, used: &[Position], turn: u32, table: &mut NeedTable) {
    for (position, held) in results {
        let age = turn.saturating_sub(held.used);
        if age < AGES[0] {
            continue;
        }
        let size = (f64::from(held.tokens) / TYPICAL).powf(POWER);
        let is_needed = used.binary_search(position).is_ok();
        let cell =
            NeedCell { turns: 1, needs: u64::from(is_needed), expected: size / f64::from(age) };
        table.by_kind.entry(held.kind).or_default().add(&cell);
        table.by_tool.entry(held.tool.clone()).or_default().add(&cell);
        table.by_age.entry((held.kind, class_of(&AGES, age))).or_default().add(&cell);
        table.by_size.entry(class_of(&SIZES, held.tokens)).or_default().add(&cell);
    }
}

/// Returns the greatest of the ascending `classes` that is not above `number`.
fn class_of(classes: &[u32], number: u32) -> u32 {
    let above = classes.partition_point(|class| *class <= number);
    classes[above.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Block, Message, ToolCall};
    use crate::tokens::Tokenizer;

    /// A session that reads a file, runs commands for `turns` turns, and copies a name of the file at the turns of `needs`.
    fn session(turns: u32, needs: &[u32]) -> Transcript {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "go"));
        let call = |id: u32, name: &str, arguments: &str| {
            let id = format!("c{id}").into();
            let call = ToolCall { id, name: name.into(), arguments: arguments.into() };
            Message::new(Role::Assistant, vec![Block::ToolCall(call)])
        };
        transcript.push(call(0, "read", r#"{"path":"a.rs"}"#));
        let lines: String = (0..200).map(|at| format!("harbour_quay_{at} = berth\n")).collect();
        transcript.push(Message::result("c0", lines));
        for turn in 2..turns + 2 {
            let what = if needs.contains(&turn) { "harbour_quay_7" } else { "nothing" };
            transcript.push(call(turn, "bash", &format!("{{\"command\":\"echo {what}\"}}")));
            transcript.push(Message::result(format!("c{turn}"), "ok"));
        }
        transcript
    }

    #[test]
    fn a_need_is_counted_at_its_age_and_starts_the_law_again() {
        let transcript = session(10, &[6]);
        let table = measure([Stretch::from(&transcript)]);
        let reads = table.by_kind[&ResultKind::Reads];
        // Turns 3 to 6 after the read in turn 1, and 8 to 11 after the use in turn 6.
        assert_eq!((reads.turns, reads.needs), (8, 1));
        assert_eq!(table.by_age[&(ResultKind::Reads, 5)].needs, 1);
        assert_eq!(table.by_tool.keys().map(|tool| &**tool).collect::<Vec<_>>(), ["read"]);
        assert_eq!(table.sessions[&ResultKind::Reads], 1);
        assert!(!table.by_kind.contains_key(&ResultKind::Runs), "`ok` is too small to be hidden");
    }

    #[test]
    fn names_that_were_said_elsewhere_are_no_needs_of_a_result() {
        let transcript = session(10, &[5, 6, 7, 8]);
        // After the first use the name stands in a call, which is never hidden.
        assert_eq!(measure([Stretch::from(&transcript)]).by_kind[&ResultKind::Reads].needs, 1);
    }

    #[test]
    fn tables_add_up_and_hazards_are_needs_over_expectation() {
        let transcript = session(10, &[6]);
        let one = measure([Stretch::from(&transcript)]);
        let mut both = one.clone();
        both.add(&one);
        assert_eq!(both.sessions[&ResultKind::Reads], 2);
        let hazard = |table: &NeedTable| table.by_kind[&ResultKind::Reads].hazard();
        assert!((hazard(&one) - hazard(&both)).abs() < 1e-12 && hazard(&one) > 0.0);
        assert_eq!(one.power(), None, "one class of size has no slope");
        assert!(NeedCell::default().hazard() < 1e-12);
    }
}
