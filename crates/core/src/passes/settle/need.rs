//! The law of forgetting: how likely it is that an old result is needed again.
//!
//! Measured on recorded sessions of four agents: a result that has not been used for *t* turns is needed at the next with a chance
//! of *h / t*, for all *t* from 1 to 64. The hazard *h* grows with a power of its length and differs by the kind of tool; it
//! differs between sessions too, so each session's own rate is learnt as it goes.

use crate::file_access::{Access, file_access};
use crate::message::{Message, Role, ToolCall};
use crate::names::{self, Key, KeySet};
use crate::policy::Settle;
use crate::said_once::SaidOnce;
use crate::transcript::{Position, Transcript};

use super::holders::{Holder, Holders};

/// Tokens of a typical result, and the power of the length with which needs grow.
///
/// Counts of needs alone fit 0.35 to 0.45. But a need starts the law again, so those of a large document come in clusters, and
/// the sum below counts only the first: with 0.45, one recorded discussion of three documents cost half again as much as the
/// full history as soon as any other figure changed a little. 0.6 was chosen; 0.3 and 0.75 were tried.
const TYPICAL: f64 = 1300.0;
const POWER: f64 = 0.6;
/// Needs that the prior counts for, against those that the session itself has shown. Chosen; 3 and 10 were tried.
const PRIOR: f64 = 6.0;

/// The part of the hazard that is left of a copy of a file that was changed or read again since.
///
/// Measured on 28 recorded sessions of four agents: the hazard of such copies is .15, that of current ones .24.
const SUPERSEDED: f64 = 0.6;

/// The facts about each message.
#[derive(Debug, Clone, Default)]
pub(super) struct Needs {
    messages: Vec<Known>,
    names: Holders,
    runs: Holders,
    /// The newest message that has a line.
    lines: Holders,
    /// Needs that the priors expected so far, and those that there were.
    expected: f64,
    met: f64,
}

#[derive(Debug, Clone)]
struct Known {
    is_result: bool,
    hazard: f64,
    tokens: f64,
    /// The file that it shows.
    file: Option<String>,
    /// The turn in which it came or was last used.
    used: u32,
    /// The keys that its smaller form still shows, once it has one.
    shown: Option<KeySet>,
}

impl Needs {
    pub(super) fn seen(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_hidden(&self, position: Position) -> bool {
        self.messages.get(position).is_some_and(|known| known.shown.is_some())
    }

    pub(super) fn tokens(&self, position: Position) -> f64 {
        self.messages.get(position).map_or(0.0, |known| known.tokens)
    }

    /// Reads a message that is sent with so many tokens; returns the results of which something was needed and hidden.
    pub(super) fn read(
        &mut self,
        transcript: &Transcript,
        position: Position,
        tokens: u32,
        settings: &Settle,
        said: &SaidOnce,
    ) -> Vec<Position> {
        let entry = &transcript.entries()[position];
        let message = &entry.message;
        let shown = message.shown();
        let mut fetched = Vec::new();
        if message.role == Role::Assistant && position > 0 {
            let (names, runs) = (names::names(&shown), names::runs(&shown));
            fetched = self.used(message, &names, &runs, entry.turn, settings);
        }
        let is_result = message.role == Role::Tool;
        let call = transcript.call_answered(position);
        let tokens = f64::from(tokens);
        let hazard =
            settings.need.of(class(call, transcript, position)) * (tokens / TYPICAL).powf(POWER);
        for to in said.points_to(position) {
            let known = &mut self.messages[to];
            // Shown again is needed again.
            if known.counts(entry.turn, settings) {
                self.met += 1.0;
            }
            known.used = entry.turn;
        }
        let access = call.and_then(file_access);
        if let Some((file, Access::Changes | Access::ReadsAll)) = &access {
            for known in self.messages.iter_mut().filter(|known| known.file.as_ref() == Some(file))
            {
                known.hazard *= SUPERSEDED;
                known.file = None;
            }
        }
        let file = access.filter(|(_, access)| *access != Access::Changes).map(|(file, _)| file);
        let used = entry.turn;
        self.messages.push(Known { is_result, hazard, tokens, file, used, shown: None });
        let holder = if is_result { Holder::Result(position) } else { Holder::Safe };
        names::each_name(&shown, |name| self.names.hold(names::key(name), holder));
        names::each_run(&shown, |run, _, _| self.runs.hold(run, holder));
        for line in shown.lines() {
            self.lines.put(line_key(line), holder);
        }
        fetched
    }

    /// Notes the keys that a step of the model used; returns those that were hidden.
    fn used(
        &mut self,
        message: &Message,
        names: &KeySet,
        runs: &KeySet,
        turn: u32,
        settings: &Settle,
    ) -> Vec<Position> {
        let mut used: Vec<Position> = Vec::new();
        let mut fetched: Vec<Position> = Vec::new();
        for (keys, holders) in [(names, &self.names), (runs, &self.runs)] {
            for key in keys {
                let Some(Holder::Result(position)) = holders.get(*key) else { continue };
                used.push(position);
                let shown = self.messages[position].shown.as_ref();
                if shown.is_some_and(|shown| !shown.contains(key)) {
                    fetched.push(position);
                }
            }
        }
        for line in message.calls().filter_map(edited_line) {
            let key = line_key(&line);
            let Some(Holder::Result(position)) = self.lines.get(key) else { continue };
            used.push(position);
            let shown = self.messages[position].shown.as_ref();
            if shown.is_some_and(|shown| !shown.contains(&key)) {
                fetched.push(position);
            }
        }
        used.sort_unstable();
        used.dedup();
        fetched.sort_unstable();
        fetched.dedup();
        for (position, known) in self.messages.iter().enumerate() {
            let age = turn.saturating_sub(known.used);
            if known.counts(turn, settings) {
                self.expected += known.hazard / f64::from(age);
                self.met += f64::from(u8::from(used.binary_search(&position).is_ok()));
            }
        }
        for position in used {
            self.messages[position].used = turn;
        }
        fetched
    }

    /// Returns how often a result is expected to be needed within `further` turns.
    pub(super) fn expected(
        &self,
        position: Position,
        turn: u32,
        further: f64,
        settings: &Settle,
    ) -> f64 {
        let known = &self.messages[position];
        let idle = f64::from(turn.saturating_sub(known.used));
        if idle <= f64::from(settings.young) {
            return f64::INFINITY;
        }
        let rate = (self.met + PRIOR) / (self.expected + PRIOR);
        rate * known.hazard * ((idle + further) / idle).ln()
    }

    /// Returns whether a name stands in another message than the one at `position`: there the model finds it first.
    pub(super) fn stands_elsewhere(&self, name: Key, position: Position) -> bool {
        self.names.get(name).is_some_and(|holder| holder != Holder::Result(position))
    }

    /// Takes note that a message shows no more than `shown`.
    pub(super) fn hide(&mut self, position: Position, shown: &str) {
        let mut keys = names::names(shown);
        keys.extend(names::runs(shown));
        keys.extend(shown.lines().map(line_key));
        if let Some(known) = self.messages.get_mut(position) {
            known.shown = Some(keys);
        }
    }
}

impl Known {
    /// Returns whether a need of it is evidence for the session's rate: a result that was just read is used in any case.
    fn counts(&self, turn: u32, settings: &Settle) -> bool {
        self.is_result
            && self.tokens >= f64::from(settings.least)
            && turn.saturating_sub(self.used) >= 2
    }
}

/// The kind of a tool, as far as it decides how soon its results are needed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Shows a file.
    Reads,
    /// Finds or lists.
    Finds,
    /// Runs a command or changes a file.
    Runs,
    Other,
}

/// Tools of agents that run commands, change files or keep lists of tasks.
const RUNS: [&str; 18] = [
    "bash",
    "shell",
    "exec_command",
    "shell_command",
    "local_shell",
    "local_shell_call",
    "write_stdin",
    "run_shell_command",
    "run",
    "exec",
    "bashoutput",
    "edit",
    "write",
    "multiedit",
    "apply_patch",
    "todowrite",
    "update_plan",
    "replace",
];

pub(super) fn class(call: Option<&ToolCall>, transcript: &Transcript, position: Position) -> Class {
    let Some(call) = call else { return Class::Other };
    match file_access(call) {
        Some((_, Access::ReadsAll | Access::ReadsPart)) => return Class::Reads,
        Some((_, Access::Changes)) => return Class::Runs,
        None => {}
    }
    let name = call.name.to_ascii_lowercase();
    match name.as_str() {
        "read" | "view" | "read_file" | "cat" => return Class::Reads,
        "grep" | "glob" | "ls" | "find" | "search" | "list" => return Class::Finds,
        _ => {}
    }
    let words = |text: &str, wanted: &[&str]| {
        text.split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| wanted.contains(&word))
    };
    // Agents without tools write their command into a fence.
    let exchange = transcript.entries()[position].exchange.map(|at| &transcript.exchanges()[at]);
    let said = exchange.map(|exchange| transcript.entries()[exchange.call].message.shown());
    let fenced = said.as_deref().and_then(|said| Some(said.split_once("```")?.1)).unwrap_or("");
    let command: &str = if call.arguments.is_empty() { fenced } else { &call.arguments };
    if words(command, &["cat", "sed", "nl", "head", "tail", "bat", "less"])
        && !command.contains("EOF")
    {
        Class::Reads
    } else if words(command, &["rg", "grep", "find", "ls", "tree", "fd"]) {
        Class::Finds
    } else if RUNS.contains(&name.as_str()) {
        Class::Runs
    } else {
        Class::Other
    }
}

impl crate::policy::Need {
    fn of(&self, class: Class) -> f64 {
        match class {
            Class::Reads => self.reads,
            Class::Finds => self.finds,
            Class::Runs => self.runs,
            Class::Other => self.others,
        }
    }
}

/// Returns the first line of the text that a call replaces in a file.
fn edited_line(call: &ToolCall) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
    let mut open = vec![&arguments];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                let old = ["old_string", "old_str", "oldText", "old_text", "search"];
                let old = old.iter().find_map(|name| fields.get(*name)?.as_str());
                if let Some(line) =
                    old.and_then(|old| old.lines().find(|line| line.trim().len() > 8))
                {
                    return Some(line.to_owned());
                }
                open.extend(fields.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

/// Returns a line's key without its number and blanks.
fn line_key(line: &str) -> Key {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let numbered = digits > 0 && rest.starts_with(['→', '|', ':', '\t']);
    let words = if numbered {
        rest.chars().as_str().trim_start_matches(['→', '|', ':', '\t'])
    } else {
        line
    };
    names::key(words.trim())
}
