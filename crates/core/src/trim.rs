//! Trimming a session: turns of high priority stay as they are, the rest becomes a summary.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use crate::allocation::{ContextBudget, calculate_budgets};
use crate::choose::{Candidate, Reason, Room, Whole, pack};
use crate::compression::{LARGE_RESULT_TOKENS, compress_message};
use crate::message::Message;
use crate::priority::{LAST_TURNS, ScoredTurn, first_turn, score_turns};
use crate::statistics::thinking_tokens;
use crate::summary::{
    HEURISTIC_HEADER, MODEL_HEADER, fit_summary, heuristic_summary, summary_prompt, summary_tokens,
};
use crate::tokens::Tokenizer;
use crate::transcript::{Position, Transcript};

/// Turns of at least this priority are kept where there is room (`context-window.md`, step 4).
pub const KEPT_PRIORITY: u8 = 70;

/// A model is asked for a summary of more turns than this (`context-window.md`, step 4).
const MODEL_TURNS: usize = 5;

/// The author of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryBy {
    Heuristic,
    /// A model, where there is enough to summarise; until it has answered, the heuristic.
    Model,
}

/// The size of a trimmed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimSettings {
    /// Tokens of the summary at most.
    pub summary_budget: u64,
    /// Tokens of the kept turns at most.
    pub recent_budget: u64,
    pub summary_by: SummaryBy,
}

impl From<&ContextBudget> for TrimSettings {
    fn from(budget: &ContextBudget) -> Self {
        let budgets = calculate_budgets(budget);
        Self {
            summary_budget: budgets.session_summary,
            recent_budget: budgets.session_recent,
            summary_by: if budget.use_llm_summarization {
                SummaryBy::Model
            } else {
                SummaryBy::Heuristic
            },
        }
    }
}

/// A turn of a trimmed session.
#[derive(Debug, Clone, Serialize)]
pub struct KeptTurn {
    pub position: Position,
    pub reason: Reason,
    pub priority: u8,
    /// Tokens of `message`, thinking and overhead included.
    pub tokens: u64,
    /// Whether a large tool result in it was compressed.
    pub compressed: bool,
    #[serde(skip)]
    pub message: Arc<Message>,
}

/// A trimmed session.
#[derive(Debug, Clone, Serialize)]
pub struct TrimmedSession {
    /// In the order of the transcript.
    pub kept: Vec<KeptTurn>,
    /// The summary of the other turns; empty if there is nothing to say or no room.
    pub summary: String,
    /// The index in `kept` before which the summary stands: behind the first turn, and never inside an exchange.
    pub summary_at: usize,
    /// Tokens of the summary as a message.
    pub summary_tokens: u64,
    /// The most tokens of the summary: its budget, less the part that kept turns need, and never more than the turns that it replaces.
    pub summary_room: u64,
    /// The turns that the summary stands for, in order.
    pub summarized: Vec<Position>,
    /// Whether the settings want a model to summarise these turns ([`TrimmedSession::with_model_summary`]).
    pub wants_model_summary: bool,
    pub total_original_tokens: u64,
    pub total_trimmed_tokens: u64,
    /// The part of the tokens that is gone, 0 to 1.
    pub compression_ratio: f64,
    /// Tokens by which the turns that are always kept exceed both budgets together; otherwise 0.
    pub over_ceiling: u64,
}

/// Trims the session to `settings`, whether or not that is due ([`ContextBudget::trimming_due`]).
///
/// Shape: the kept turns are a subsequence of the transcript; each position is either kept or summarized.
/// Units: tokens of the transcript's tokenizer, thinking and overhead included.
/// Kept turns and summary never exceed the two budgets together, unless the turns that are always kept do so alone; then there
/// is no summary and `over_ceiling` says by how much. The result never has more tokens than the session.
///
/// Decisions on points that the document leaves open or contradicts:
/// - The first turn is always kept, as its text and tests demand; its code only scores it 90.
/// - A call and its results are kept or dropped together, so that the result is a valid conversation. The exchange is worth as
///   much as its best message.
/// - A turn is taken only if it fits; the document's loop takes one that exceeds the budget. A turn worth keeping that
///   does not fit is summarised, where the document's code loses it; smaller ones behind it may still fit.
/// - Of equal priorities the newer is taken: it may supersede the older.
/// - Large results are compressed (step 5) before the choice, because their compressed size decides whether they fit.
///
/// Source: `context-window.md`, steps 4 and 5.
pub fn trim(transcript: &Transcript, settings: &TrimSettings) -> TrimmedSession {
    let tokenizer = transcript.tokenizer();
    let scores = score_turns(transcript);
    let turns = compressed_turns(transcript, &scores);
    let units = units(transcript);

    let mut reasons = always_kept(transcript, &units);
    let mut kept_tokens: u64 = turns
        .iter()
        .zip(&reasons)
        .filter(|(_, why)| why.is_some())
        .map(|(turn, _)| turn.tokens)
        .sum();
    let ceiling = settings.recent_budget.saturating_add(settings.summary_budget);
    let over_ceiling = kept_tokens.saturating_sub(ceiling);

    let worth =
        |unit: &Vec<Position>| unit.iter().map(|at| scores[*at].priority).max().unwrap_or(0);
    let mut open: Vec<&Vec<Position>> = units
        .iter()
        .filter(|unit| reasons[unit[0]].is_none() && worth(unit) >= KEPT_PRIORITY)
        .collect();
    open.sort_by_key(|unit| (Reverse(worth(unit)), Reverse(unit[0])));
    let tokens = |unit: &[Position]| unit.iter().map(|at| turns[*at].tokens).sum();
    let whole = |unit: &'_ Vec<Position>| Whole { tokens: tokens(unit), source: unit.clone() };
    let room = Room::new(settings.recent_budget.saturating_sub(kept_tokens));
    let choice = pack(open.into_iter().map(|unit| Candidate::in_order(whole(unit))), &room);
    kept_tokens += choice.tokens;
    for at in choice.picks.iter().flat_map(|pick| &pick.candidate.source.source) {
        reasons[*at] = Some(Reason::Priority);
    }

    let (mut kept, mut summarized) = (Vec::new(), Vec::new());
    for (turn, reason) in turns.into_iter().zip(&reasons) {
        match reason {
            Some(reason) => kept.push(KeptTurn { reason: *reason, ..turn }),
            None => summarized.push(turn.position),
        }
    }
    let replaced: u64 = summarized.iter().map(|at| scores[*at].tokens).sum();
    let summary_room =
        settings.summary_budget.min(ceiling.saturating_sub(kept_tokens)).min(replaced);
    let mut session = TrimmedSession {
        summary_at: summary_place(&kept, &units, first_turn(transcript)),
        kept,
        summary: String::new(),
        summary_tokens: 0,
        summary_room,
        wants_model_summary: settings.summary_by == SummaryBy::Model
            && summarized.len() > MODEL_TURNS,
        summarized,
        total_original_tokens: scores.iter().map(|turn| turn.tokens).sum(),
        total_trimmed_tokens: 0,
        compression_ratio: 0.0,
        over_ceiling,
    };
    let summary = heuristic_summary(session.summarized.iter().map(|at| &scores[*at]));
    session.set_summary(&summary, HEURISTIC_HEADER, tokenizer);
    session
}

impl TrimmedSession {
    /// Returns the prompt that asks a model for the summary; `None` where the settings want none.
    ///
    /// `transcript` is the one that was trimmed.
    pub fn summary_prompt(&self, transcript: &Transcript) -> Option<String> {
        let scores = self.wants_model_summary.then(|| score_turns(transcript))?;
        let turns: Vec<&ScoredTurn> =
            self.summarized.iter().filter_map(|at| scores.get(*at)).collect();
        Some(summary_prompt(&turns, self.summary_room))
    }

    /// Returns the session with a model's summary of the summarized turns, marked as such and cut to `summary_room`.
    ///
    /// `tokenizer` is that of the transcript.
    #[must_use]
    pub fn with_model_summary(mut self, written: &str, tokenizer: Tokenizer) -> Self {
        let summary = format!("{MODEL_HEADER}\n{}", written.trim());
        self.set_summary(&summary, MODEL_HEADER, tokenizer);
        self.wants_model_summary = false;
        self
    }

    fn set_summary(&mut self, summary: &str, header: &str, tokenizer: Tokenizer) {
        fit_summary(summary, header, tokenizer, self.summary_room).clone_into(&mut self.summary);
        self.summary_tokens = summary_tokens(&self.summary, tokenizer);
        let kept: u64 = self.kept.iter().map(|turn| turn.tokens).sum();
        self.total_trimmed_tokens = kept + self.summary_tokens;
        self.compression_ratio = match self.total_original_tokens {
            0 => 0.0,
            original => 1.0 - self.total_trimmed_tokens as f64 / original as f64,
        };
    }
}

/// Returns each message as it would be kept: its large results compressed.
fn compressed_turns(transcript: &Transcript, scores: &[ScoredTurn]) -> Vec<KeptTurn> {
    let tokenizer = transcript.tokenizer();
    let turn = |(entry, score): (&crate::transcript::Entry, &ScoredTurn)| {
        let mut turn = KeptTurn {
            position: score.position,
            reason: Reason::Priority,
            priority: score.priority,
            tokens: score.tokens,
            compressed: false,
            message: entry.message.clone(),
        };
        // A message below the limit has no result above it, and counting every result again is dear.
        if entry.tokens > LARGE_RESULT_TOKENS
            && let Some(message) = compress_message(&entry.message, tokenizer)
        {
            let tokens =
                u64::from(tokenizer.count_message(&message)) + thinking_tokens(tokenizer, &message);
            // Of several results in one message, each is smaller; only their joints might count one more.
            if tokens < turn.tokens {
                turn.tokens = tokens;
                turn.compressed = true;
                turn.message = Arc::new(message);
            }
        }
        turn
    };
    transcript.entries().iter().zip(scores).map(turn).collect()
}

/// Returns for each position why it is kept whatever the budgets are, if it is.
fn always_kept(transcript: &Transcript, units: &[Vec<Position>]) -> Vec<Option<Reason>> {
    let total = transcript.entries().len();
    let first = first_turn(transcript);
    let own = |at: Position| {
        if at <= first {
            Some(Reason::First)
        } else {
            (at + LAST_TURNS >= total).then_some(Reason::Last)
        }
    };
    let mut reasons = vec![None; total];
    for unit in units {
        if unit.iter().any(|at| own(*at).is_some()) {
            for at in unit {
                reasons[*at] = own(*at).or(Some(Reason::Exchange));
            }
        }
    }
    reasons
}

/// Returns the first index behind the turn `first` at which no unit is open.
fn summary_place(kept: &[KeptTurn], units: &[Vec<Position>], first: Position) -> usize {
    let ends: HashMap<Position, Position> = units
        .iter()
        .filter_map(|unit| unit.last().map(|end| unit.iter().map(|at| (*at, *end))))
        .flatten()
        .collect();
    let mut reach = first;
    kept.iter()
        .position(|turn| {
            let free = turn.position > reach;
            reach = reach.max(ends[&turn.position]);
            free
        })
        .unwrap_or(kept.len())
}

/// Returns the positions that are kept or dropped together, each unit and the list of them in order.
///
/// Exchanges, joined where one message answers calls of several, and with further results of a call that was answered already,
/// which no exchange has: alone, such a result would answer a call that is not there.
fn units(transcript: &Transcript) -> Vec<Vec<Position>> {
    fn root(parents: &mut [Position], mut at: Position) -> Position {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
    let total = transcript.entries().len();
    let mut parents: Vec<Position> = (0..total).collect();
    let mut join = |a, b| {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        // The earlier is the root, so that units are found in order.
        parents[a.max(b)] = a.min(b);
    };
    for exchange in transcript.exchanges() {
        for result in &exchange.results {
            join(exchange.call, *result);
        }
    }
    let mut calls: HashMap<&str, Position> = HashMap::new();
    for (at, entry) in transcript.entries().iter().enumerate() {
        calls.extend(entry.message.calls().map(|call| (&*call.id, at)));
        for result in entry.message.results() {
            if let Some(call) = calls.get(&*result.call_id) {
                join(*call, at);
            }
        }
    }
    let mut units: BTreeMap<Position, Vec<Position>> = BTreeMap::new();
    for at in 0..total {
        units.entry(root(&mut parents, at)).or_default().push(at);
    }
    units.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Block, Role, ToolCall};

    const SETTINGS: TrimSettings =
        TrimSettings { summary_budget: 200, recent_budget: 300, summary_by: SummaryBy::Heuristic };

    fn call(ids: &[&str]) -> Message {
        let call = |id: &&str| {
            Block::ToolCall(ToolCall {
                id: (*id).into(),
                name: "read".into(),
                arguments: "{}".into(),
            })
        };
        Message::new(Role::Assistant, ids.iter().map(call).collect())
    }

    fn session(messages: impl IntoIterator<Item = Message>) -> Transcript {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for message in messages {
            transcript.push(message);
        }
        transcript
    }

    fn chat(count: usize) -> Vec<Message> {
        let say = |n| {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            Message::text(role, format!("Turn {n:02} goes on about things. And more of the same."))
        };
        (0..count).map(say).collect()
    }

    fn positions(trimmed: &TrimmedSession) -> Vec<Position> {
        trimmed.kept.iter().map(|turn| turn.position).collect()
    }

    fn check(messages: Vec<Message>, settings: &TrimSettings, expected: &[Position]) {
        let trimmed = trim(&session(messages), settings);
        assert_eq!(positions(&trimmed), expected, "{trimmed:#?}");
    }

    #[test]
    fn a_trimmed_session_reads_like_this() {
        let trimmed = trim(&session(chat(20)), &SETTINGS);
        let record = serde_json::to_value(&trimmed).expect("plain data");
        let mut lines: Vec<String> = Vec::new();
        for (name, value) in record.as_object().expect("a record") {
            match value.as_array().filter(|_| name == "kept") {
                Some(kept) => lines.extend(kept.iter().map(ToString::to_string)),
                None => lines.push(format!("{name}: {value}")),
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"position":0,"reason":"first","priority":90,"tokens":17,"compressed":false}
        {"position":4,"reason":"priority","priority":71,"tokens":17,"compressed":false}
        {"position":6,"reason":"priority","priority":74,"tokens":17,"compressed":false}
        {"position":8,"reason":"priority","priority":77,"tokens":17,"compressed":false}
        {"position":10,"reason":"priority","priority":80,"tokens":17,"compressed":false}
        {"position":12,"reason":"priority","priority":83,"tokens":17,"compressed":false}
        {"position":14,"reason":"priority","priority":86,"tokens":17,"compressed":false}
        {"position":15,"reason":"last","priority":85,"tokens":17,"compressed":false}
        {"position":16,"reason":"last","priority":89,"tokens":17,"compressed":false}
        {"position":17,"reason":"last","priority":85,"tokens":17,"compressed":false}
        {"position":18,"reason":"last","priority":92,"tokens":17,"compressed":false}
        {"position":19,"reason":"last","priority":85,"tokens":17,"compressed":false}
        summary: "[Earlier conversation summary — compressed to save context]\n[Agent] Turn 01 goes on about things.\n[User] Turn 02 goes on about things.\n[Agent] Turn 03 goes on about things.\n[Agent] Turn 05 goes on about things.\n[Agent] Turn 07 goes on about things.\n[Agent] Turn 09 goes on about things.\n[Agent] Turn 11 goes on about things.\n[Agent] Turn 13 goes on about things."
        summary_at: 1
        summary_tokens: 95
        summary_room: 136
        summarized: [1,2,3,5,7,9,11,13]
        wants_model_summary: false
        total_original_tokens: 340
        total_trimmed_tokens: 299
        compression_ratio: 0.12058823529411766
        over_ceiling: 0
        "#);
    }

    #[test]
    fn first_and_last_five_stay_whatever_the_budget() {
        let none = TrimSettings { summary_budget: 0, recent_budget: 0, ..SETTINGS };
        check(chat(20), &none, &[0, 15, 16, 17, 18, 19]);
        check(chat(3), &none, &[0, 1, 2]);
        check(vec![], &none, &[]);
        let with_system = [vec![Message::text(Role::System, "rules")], chat(20)].concat();
        check(with_system, &none, &[0, 1, 16, 17, 18, 19, 20]);

        let trimmed = trim(&session(chat(20)), &none);
        assert_eq!(trimmed.over_ceiling, trimmed.total_trimmed_tokens);
        assert_eq!(trimmed.summary, "");
    }

    #[test]
    fn earlier_turns_fill_the_budget_newest_first_among_equals() {
        // Each turn costs 17; users of position 4 and later reach 70, others never.
        let recent = |turns: u64| TrimSettings { recent_budget: turns * 17, ..SETTINGS };
        check(chat(20), &recent(6), &[0, 15, 16, 17, 18, 19]);
        check(chat(20), &recent(7), &[0, 14, 15, 16, 17, 18, 19]);
        check(chat(20), &recent(8), &[0, 12, 14, 15, 16, 17, 18, 19]);
        check(chat(20), &recent(99), &[0, 4, 6, 8, 10, 12, 14, 15, 16, 17, 18, 19]);

        // Instructions of a user with a conclusion reach the cap of 100 from position 10 on.
        let mut equal = chat(20);
        for at in [10, 12] {
            equal[at] = Message::text(Role::User, "Fix it, the result counts, and so on and on");
        }
        let scores = score_turns(&session(equal.clone()));
        assert_eq!((scores[10].priority, scores[12].priority), (100, 100));
        check(equal, &recent(7), &[0, 12, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn what_does_not_fit_is_passed_over_and_summarized() {
        let mut messages = chat(20);
        messages[14] = Message::text(Role::User, "A very long turn. ".repeat(100));
        let trimmed = trim(&session(messages), &SETTINGS);
        assert!(!positions(&trimmed).contains(&14));
        assert!(positions(&trimmed).contains(&12));
        assert!(trimmed.summarized.contains(&14));
        assert!(trimmed.summary.contains("[User] A very long turn."));
    }

    #[test]
    fn exchanges_stay_or_go_together() {
        let none = TrimSettings { summary_budget: 0, recent_budget: 0, ..SETTINGS };
        let mut messages = chat(10);
        messages.push(call(&["a", "b", "c", "d", "e", "f"]));
        messages.extend(["a", "b", "c", "d", "e", "f"].map(|id| Message::result(id, "found")));
        check(messages.clone(), &none, &[0, 10, 11, 12, 13, 14, 15, 16]);
        let trimmed = trim(&session(messages), &none);
        assert_eq!(trimmed.kept[1].reason, Reason::Exchange);
        assert_eq!(trimmed.kept[7].reason, Reason::Last);

        // A second answer to the same call, and one message that answers two calls, belong to both.
        let mut messages = vec![call(&["a"]), call(&["b"]), Message::result("a", "1")];
        messages[2].blocks.extend(Message::result("b", "2").blocks);
        messages.extend(chat(4));
        messages.push(Message::result("a", "again"));
        messages.extend(chat(4));
        check([chat(2), messages].concat(), &none, &[0, 2, 3, 4, 9, 10, 11, 12, 13]);

        // Late in the session a result is worth 70 by its age alone, and takes its call with it.
        let mut messages = chat(30);
        messages.splice(20..22, [call(&["a"]), Message::result("a", "x")]);
        let wide = TrimSettings { recent_budget: 10_000, ..SETTINGS };
        let trimmed = trim(&session(messages), &wide);
        assert!(trimmed.kept.iter().any(|turn| turn.position == 20));
        assert!(trimmed.kept.iter().any(|turn| turn.position == 21));
    }

    #[test]
    fn large_results_are_compressed_and_originals_are_not_touched() {
        let large = "0123456789012345678901234567890123456789\n".repeat(400);
        let mut messages = chat(4);
        messages.push(call(&["a"]));
        messages.push(Message::result("a", large));
        let transcript = session(messages);
        let trimmed = trim(&transcript, &SETTINGS);
        let result = trimmed.kept.iter().find(|turn| turn.compressed).expect("the large result");
        assert_eq!(result.position, 5);
        assert!(result.message.shown().contains("lines compressed ("));
        assert_ne!(result.message, transcript.entries()[5].message);
        let others = trimmed.kept.iter().filter(|turn| !turn.compressed);
        for turn in others {
            assert!(Arc::ptr_eq(&turn.message, &transcript.entries()[turn.position].message));
        }
    }

    #[test]
    fn a_models_summary_is_marked_and_cut() {
        let settings = TrimSettings { summary_by: SummaryBy::Model, ..SETTINGS };
        let transcript = session(chat(30));
        let trimmed = trim(&transcript, &settings);
        assert!(trimmed.wants_model_summary);
        assert!(!trim(&transcript, &SETTINGS).wants_model_summary);
        assert!(!trim(&session(chat(8)), &settings).wants_model_summary, "too few turns");
        let prompt = trimmed.summary_prompt(&transcript).expect("a prompt");
        assert!(prompt.contains(&format!("at most {} words", trimmed.summary_room * 3 / 4)));
        assert_eq!(
            prompt.matches("\n[User] ").count() + prompt.matches("\n[Agent] ").count(),
            trimmed.summarized.len()
        );
        assert_eq!(trim(&transcript, &SETTINGS).summary_prompt(&transcript), None);
        let written = trimmed.clone().with_model_summary(" They talked. ", Tokenizer::Estimate);
        assert_eq!(
            written.summary,
            "[Earlier conversation summary — written by a model]\nThey talked."
        );
        assert!(!written.wants_model_summary);
        assert!(written.total_trimmed_tokens < trimmed.total_trimmed_tokens);
        let long = trimmed.with_model_summary(&"word ".repeat(5000), Tokenizer::Estimate);
        assert!(long.summary_tokens <= long.summary_room);
    }

    #[test]
    fn every_setting_changes_the_outcome() {
        let transcript = session(chat(200));
        let outcome = |change: fn(&mut ContextBudget)| {
            let mut budget = ContextBudget { total_tokens: 4000, ..ContextBudget::default() };
            change(&mut budget);
            let budget = budget.checked().expect("possible settings");
            let due = budget.trimming_due(transcript.tokens());
            let trimmed = due.then(|| trim(&transcript, &TrimSettings::from(&budget)));
            format!("{trimmed:?}")
        };
        let plain = outcome(|_| {});
        assert!(plain.starts_with("Some"));
        assert_ne!(plain, outcome(|budget| budget.total_tokens = 3900));
        assert_ne!(plain, outcome(|budget| budget.allocations.session_recent = 20.0));
        assert_ne!(plain, outcome(|budget| budget.allocations.session_summary = 5.0));
        assert_ne!(plain, outcome(|budget| budget.use_llm_summarization = true));
        assert_ne!(plain, outcome(|budget| budget.compression_threshold = 0.9));
    }
}
