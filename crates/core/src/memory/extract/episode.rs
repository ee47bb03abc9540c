//! Episodes and open tasks: what a session was about, what came of it, and what is left to do.

use std::fmt::Write as _;

use serde_json::Value;

use crate::memory::MemoryKind;
use crate::memory::quote::line;
use crate::message::{Block, Message, Role};
use crate::text::shortened;

use super::own_words::own_words;
use super::run::{Runs, quoted};
use super::sentence::sentences;
use super::{ExtractedRecord, SESSION, pattern};

/// Characters of the goal and of the outcome (chosen: a sentence or two).
const SAID: usize = 220;
/// Messages of the shortest session that is an episode (chosen: a question with its answer is none).
const LEAST: usize = 6;
/// Answers at the end of a session that may say what came of it (chosen).
const LAST: usize = 4;
/// Files and tasks that are named.
const NAMED: usize = 6;

patterns! {
    ANNOUNCES r"(?i)^\W*(?:let me|now|i['’]ll|i will|let['’]s|next|first|perfect|great|good|excellent|done|here(?:['’]s| is)|sure|okay|ok)\b[^.]{0,80}[.:!]?$";
    REPORTS r"(?i)\b(?:implemented|fixed|added|updated|committed|created|removed|completed?|pass(?:es|ed)?|verified|written|pushed|merged|opened|resolved|refactored|replaced|renamed|moved|works|working|finished|migrated|published|deployed|cleaned|changed|successfully|done)\b";
    UNSURE r"(?i)\b(?:error|let me|i['’]ll|i will|looks like|seems|suggests?|wait|hm+|can(?:not|['’]t)|could not|need to|should|now i|we can|you can|would|next)\b|^\W*(?:now|first|import)";
    LABEL r"^[A-Z]{3,12}: ";
    IDLE r"(?i)^\W*(?:hi|hello|hey|thanks|thank you|continue|proceed|go on|yes|no|ok|okay|clear|commit|show tools)\W*$|^/\w+";
}

/// Returns the episode of a session, if it has a goal.
pub(super) fn episode(messages: &[&Message], runs: &Runs) -> Option<ExtractedRecord> {
    if messages.len() < LEAST {
        return None;
    }
    let users = || messages.iter().enumerate().filter(|(_, one)| one.role == Role::User);
    let goal = users().find_map(|(at, message)| Some((at, goal_of(message)?)));
    // A task that a program handed over has no own words of a user: its title says what it is about.
    let (at, goal) =
        goal.or_else(|| users().find_map(|(at, message)| Some((at, title_of(message)?))))?;
    let files = runs.changed_files();
    if files.is_empty() && runs.commands.iter().all(|run| run.check.is_none()) {
        // A talk without work: what was said in it stands for itself.
        return None;
    }
    let answers = messages.iter().rev().filter(|one| one.role == Role::Assistant);
    let outcome = answers.take(LAST).find_map(|one| outcome_of(one));
    let mut text = format!("Goal: {goal}");
    if let Some(outcome) = &outcome {
        text.push_str(" Outcome: ");
        text.push_str(outcome);
    }
    if !files.is_empty() {
        let more = files.len().saturating_sub(NAMED);
        // Writing to a string does not fail.
        let _ = write!(text, " Changed: {}", files[..files.len().min(NAMED)].join(", "));
        let _ = if more > 0 { write!(text, " and {more} more.") } else { write!(text, ".") };
    }
    let mut summary = text.clone();
    if let Some(error) = runs.commands.iter().rev().find_map(|run| run.error.as_deref()) {
        let _ = write!(summary, " Error met: {}", quoted(error));
    }
    if files.is_empty() && outcome.is_none() {
        return None;
    }
    Some(ExtractedRecord {
        summary: (summary != text).then_some(summary),
        ..ExtractedRecord::new(MemoryKind::Episode, text, at, SESSION)
    })
}

/// Returns the first line that says what the user wants; where it announces a document, with the document's first line.
fn goal_of(message: &Message) -> Option<String> {
    for block in &message.blocks {
        let Block::Text(text) = block else { continue };
        for range in own_words(text) {
            let said = line(pattern::unmarked(&text[range.clone()]));
            let words =
                said.split(' ').filter(|word| word.chars().any(char::is_alphabetic)).count();
            if IDLE.is_match(&said) || words < 3 || pattern::is_secret(&said) {
                continue;
            }
            if said.ends_with(':') || said.contains("following") {
                let behind = text[range.end..].lines();
                let titles = behind.map(|line| line.trim_matches(['#', ' ', '<', '>', '*']));
                let mut titles = titles.filter(|title| !pattern::is_secret(title));
                if let Some(title) = titles.find(|title| title.split(' ').count() > 2) {
                    return Some(stopped(&format!("{said} {}", quoted(title))));
                }
            }
            return Some(stopped(&said));
        }
    }
    None
}

/// Returns the first line of a wrapped task that says something.
fn title_of(message: &Message) -> Option<String> {
    let Block::Text(text) = message.blocks.first()? else { return None };
    let mut lines = text.lines().map(|line| line.trim_matches(['#', ' ', '*']));
    let title = lines.find(|line| {
        let words = line.split(' ').filter(|word| word.chars().any(char::is_alphabetic)).count();
        words > 3 && !line.ends_with(':') && !line.starts_with('<') && !pattern::is_secret(line)
    })?;
    Some(stopped(&quoted(title)))
}

/// Returns the first sentence of an answer that says what came of the work.
fn outcome_of(message: &Message) -> Option<String> {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    for text in texts {
        for sentence in sentences(text, 20_000) {
            let said = line(pattern::unmarked(sentence.text)).replace("**", "");
            // Such as `THOUGHT: `.
            let said = LABEL.replace(&said, "").into_owned();
            let is_statement = !sentence.in_code
                && said.split(' ').count() > 4
                && !said.ends_with([':', '?'])
                && !said.starts_with(['|', '<', '{', '['])
                && REPORTS.is_match(&said)
                && !UNSURE.is_match(&said)
                && !ANNOUNCES.is_match(&said)
                && !pattern::is_secret(&said);
            if is_statement {
                return Some(stopped(&said));
            }
        }
    }
    None
}

fn stopped(text: &str) -> String {
    let text = shortened(text.trim(), SAID).into_owned();
    if text.ends_with(['.', '!', '?', '…']) { text } else { format!("{text}.") }
}

/// Returns the tasks that the session's last list leaves open.
pub(super) fn open_tasks(messages: &[&Message]) -> Vec<ExtractedRecord> {
    for (at, message) in messages.iter().enumerate().rev() {
        for block in message.blocks.iter().rev() {
            let Block::ToolCall(call) = block else { continue };
            let name = call.name.to_ascii_lowercase();
            if !name.contains("todo") && !name.contains("plan") {
                continue;
            }
            let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(&call.arguments)
            else {
                continue;
            };
            let Some(list) = arguments.values().find_map(Value::as_array) else { continue };
            return list
                .iter()
                .filter_map(open_task)
                .take(NAMED)
                .map(|(text, state)| ExtractedRecord {
                    tags: vec![format!("state:{state}")],
                    ..ExtractedRecord::new(MemoryKind::Task, text, at, super::ASSISTANT)
                })
                .collect();
        }
    }
    Vec::new()
}

/// Returns an entry of a list and its state, unless it is done.
fn open_task(entry: &Value) -> Option<(String, String)> {
    let field = |names: &[&str]| names.iter().find_map(|name| entry.get(name)?.as_str());
    let text = field(&["content", "step", "title", "task", "text", "description"])?;
    let state = field(&["status", "state"]).unwrap_or("open");
    let is_done = ["completed", "done", "cancelled"].contains(&state);
    let text = quoted(text);
    (!is_done && super::statement::is_specific(&text) && !pattern::is_secret(&text))
        .then(|| (format!("{text} ({})", state.replace('_', " ")), quoted(state)))
}
