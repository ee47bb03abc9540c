//! Prints the events of a run while it goes on, and its account at the end.

use std::sync::{Mutex, PoisonError};

use plimsoll_cascade::run::{Observer, Purpose, RunEvent};
use plimsoll_engine::SessionId;

use super::table::Table;
use crate::error::CommandError;
use crate::output::{self, BAD, DIM, GOOD, RESET};

/// Prints events as lines to read, or as JSON.
#[derive(Debug)]
pub(super) struct Watch {
    is_json: bool,
    table: Mutex<Table>,
}

impl Watch {
    pub(super) fn new(is_json: bool) -> Self {
        Self { is_json, table: Mutex::default() }
    }

    /// Prints the account of the run.
    pub(super) fn finish(&self, session: &SessionId) -> Result<(), CommandError> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_json {
            return output::data(&format!("{}\n", table.json(session)));
        }
        for line in table.lines(session) {
            output::progress(&line);
        }
        Ok(())
    }
}

impl Observer for Watch {
    fn tell(&self, event: &RunEvent) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).add(event);
        if self.is_json {
            if let Ok(line) = serde_json::to_string(event) {
                // A reader that went away does not stop the run.
                let _ = output::data(&format!("{line}\n"));
            }
        } else if let Some(line) = line(event) {
            output::progress(&line);
        }
    }
}

/// Returns the line for an event; names and reasons come from outside and are cleaned.
fn line(event: &RunEvent) -> Option<String> {
    let clean = |text: &str| output::line(text, 120);
    Some(match event {
        RunEvent::RunBegan { session, cascade, is_resumed } => {
            let word = if *is_resumed { "goes on" } else { "begins" };
            format!("{} {word} {DIM}({session}){RESET}", clean(cascade))
        }
        RunEvent::PhaseBegan { phase, visit, context_messages, context_tokens } => {
            let again = if *visit > 1 { format!(", visit {visit}") } else { String::new() };
            format!(
                "{}{again} {DIM}sees {context_messages} messages, {context_tokens} tokens{RESET}",
                clean(phase)
            )
        }
        RunEvent::Turn {
            purpose,
            sent_tokens,
            full_tokens,
            output_tokens,
            cost,
            estimate,
            calls,
            is_recorded,
            ..
        } => {
            let cost = crate::figures::cost(*cost, *estimate);
            let calls = if calls.is_empty() {
                String::new()
            } else {
                format!(" → {}", clean(&calls.join(", ")))
            };
            let purpose = match purpose {
                Purpose::Turn => String::new(),
                other => format!("{}: ", other.as_str().replace('_', " ")),
            };
            let kept = if *is_recorded { " (recorded)" } else { "" };
            format!(
                "  {purpose}{sent_tokens} of {full_tokens} tokens, {output_tokens} out, {cost}{calls}{DIM}{kept}{RESET}"
            )
        }
        RunEvent::ToolEnded { tool, is_error, characters, .. } => {
            let mark =
                if *is_error { format!("{BAD}failed{RESET}") } else { format!("{GOOD}ok{RESET}") };
            format!("  {DIM}{}{RESET} {mark} {DIM}{characters} characters{RESET}", clean(tool))
        }
        RunEvent::Validated { validator, attempt, valid, reason, .. } => {
            let mark = if *valid {
                format!("{GOOD}valid{RESET}")
            } else {
                format!("{BAD}not valid{RESET}: {}", output::line(reason, 80))
            };
            format!("  {} of attempt {attempt}: {mark}", clean(validator))
        }
        RunEvent::SoundingsEvaluated { winner, of, reason, .. } => {
            format!("  attempt {winner} of {of} is taken: {}", output::line(reason, 80))
        }
        RunEvent::ContextSelected { strategy, anchored, selected, .. } => {
            let (anchors, chosen) = (anchored.len(), selected.len());
            format!("  {anchors} anchors, and {chosen} messages that `{strategy}` chose")
        }
        RunEvent::Noted { phase, note } => format!("  {}: {}", clean(phase), clean(note)),
        RunEvent::PhaseEnded { .. } | RunEvent::RunEnded { .. } => return None,
    })
}
