//! Questions to a person: the answer is recorded, and a run without one stops and goes on later.

use plimsoll_core::Role;
use plimsoll_engine::ToolAnswer;
use regex::Regex;
use serde_json::Value;
use std::fmt::Write as _;

use super::error::RunError;
use super::phase::PhaseEnd;
use super::state::{PhaseRun, text_of};
use super::visit::{Visit, phase_message};
use crate::definition::{HumanInput, HumanInputKind};

/// The id under which answers of persons are recorded.
const PERSON: &str = "person";

impl Visit<'_> {
    /// Asks a person, or takes the recorded answer.
    ///
    /// Errors: [`RunError::Waiting`] where nobody is there and nothing is the answer then.
    pub(crate) async fn ask_person(
        &mut self,
        question: String,
        default: Option<String>,
    ) -> Result<String, RunError> {
        if let Some(recorded) = self.journal.answer(Role::Tool)? {
            return Ok(text_of(&recorded));
        }
        let answer = self.run.runner.human.ask(self.name(), &question).await;
        let Some(answer) = answer.or(default) else {
            return Err(RunError::Waiting { phase: self.name().to_owned(), question });
        };
        self.record_result(PERSON, ToolAnswer::text(answer.clone())).await?;
        Ok(answer)
    }

    /// Runs a phase that is only a screen, or only a question.
    pub(crate) async fn screen_phase(&mut self) -> Result<PhaseEnd, RunError> {
        let answer = if self.phase.htmx.is_some() { self.screen().await? } else { String::new() };
        let end = self.way_of(&answer);
        let message = phase_message(
            self.phase,
            Role::User,
            format!("[Answer to {}]:\n{answer}", self.name()),
        );
        let value = serde_json::from_str(&answer).unwrap_or_else(|_| Value::String(answer.clone()));
        let run = self.finished(answer, vec![std::sync::Arc::new(message)]);
        self.end(PhaseRun { value, ..run }).await?;
        Ok(end)
    }

    /// Asks what the phase asks after its work; a person who does not confirm fails the phase.
    pub(crate) async fn ask_after(&mut self, end: PhaseEnd) -> Result<PhaseEnd, RunError> {
        let has_work = self.phase.tool.is_some() || self.phase.instructions.is_some();
        let mut end = end;
        if has_work && self.phase.htmx.is_some() && self.phase.await_input == Some(true) {
            let answer = self.screen().await?;
            end = match self.way_of(&answer) {
                PhaseEnd::Through => end,
                way @ PhaseEnd::GoTo(_) => way,
            };
            self.add_answer(&answer);
        }
        let question = self.phase.human_input.as_ref().and_then(|question| question.0.as_ref());
        let Some(question) = question else { return Ok(end) };
        if !self.holds(question.condition.as_ref())? {
            return Ok(end);
        }
        let output = self.past.runs.last().map(|run| run.output.clone()).unwrap_or_default();
        let text = self.question_text(question, &output)?;
        let default = question.default_value.as_ref().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let answer = self.ask_person(text, default).await?;
        let is_confirmation =
            matches!(question.kind, HumanInputKind::Confirmation | HumanInputKind::Review);
        if is_confirmation && is_refusal(&answer) {
            return Err(self.failed(format!("the person did not confirm: {answer}")));
        }
        self.add_answer(&answer);
        Ok(match self.way_of(&answer) {
            PhaseEnd::Through => end,
            way @ PhaseEnd::GoTo(_) => way,
        })
    }

    /// Adds an answer to the run of the phase, where later phases see it, and to the state.
    fn add_answer(&mut self, answer: &str) {
        let name = self.name();
        let text = format!("[Answer to {name}]:\n{answer}");
        let message = std::sync::Arc::new(phase_message(self.phase, Role::User, text));
        let value =
            serde_json::from_str(answer).unwrap_or_else(|_| Value::String(answer.to_owned()));
        self.past.state.insert(format!("{name}_answer"), value);
        if let Some(run) = self.past.runs.last_mut() {
            run.messages.push(message);
        }
    }

    /// Returns the phase that an answer names, by itself or through the phase's routing.
    fn way_of(&self, answer: &str) -> PhaseEnd {
        let value: Value = serde_json::from_str(answer).unwrap_or(Value::Null);
        let keys = ["_route", "action", "choice", "selected", "value"];
        let inside = keys.iter().find_map(|key| value.get(*key)).and_then(Value::as_str);
        let word = inside.unwrap_or_else(|| answer.trim());
        if let Some((_, target)) = self.phase.routing.iter().find(|(key, _)| key == word) {
            return PhaseEnd::GoTo(target.name.clone());
        }
        if self.phase.handoffs.iter().any(|handoff| handoff.target.name == word) {
            return PhaseEnd::GoTo(word.to_owned());
        }
        PhaseEnd::Through
    }

    async fn screen(&mut self) -> Result<String, RunError> {
        let mut parts = Vec::new();
        for template in [&self.phase.hitl_title, &self.phase.hitl_description, &self.phase.htmx] {
            if let Some(text) = self.render_option(template.as_ref())? {
                parts.push(screen_text(&text));
            }
        }
        self.ask_person(parts.join("\n"), None).await
    }

    fn question_text(&self, question: &HumanInput, output: &str) -> Result<String, RunError> {
        let mut text = if let Some(prompt) = &question.prompt {
            self.render(prompt, [])?
        } else {
            let mut shown = format!("The phase `{}` gave:\n", self.name());
            plimsoll_core::text::push_shortened(&mut shown, output, 4_000);
            if question.kind == HumanInputKind::Confirmation {
                shown.push_str("\nGo on? (yes or no)");
            }
            shown
        };
        for option in &question.options {
            let value = option.value.as_deref().or(option.label.as_deref()).unwrap_or_default();
            let about = option.label.as_deref().filter(|label| *label != value);
            let about = about.or(option.description.as_deref());
            let about = about.map(|about| format!(": {about}")).unwrap_or_default();
            let _ = write!(text, "\n- {value}{about}");
        }
        Ok(text)
    }
}

fn is_refusal(answer: &str) -> bool {
    let word = answer.trim().to_ascii_lowercase();
    matches!(
        word.as_str(),
        "no" | "n" | "false" | "reject" | "rejected" | "deny" | "cancel" | "abort"
    )
}

/// Returns the text of a screen in HTML, with the names and values of its fields.
fn screen_text(html: &str) -> String {
    let replaced = |text: &str, pattern: &str, by: &str| match Regex::new(pattern) {
        Ok(pattern) => pattern.replace_all(text, by).into_owned(),
        Err(_) => text.to_owned(),
    };
    let mut fields: Vec<String> = Vec::new();
    if let Ok(pattern) = Regex::new(r"(?s)<(?:input|button|select|textarea)\b[^>]*>") {
        let attribute = |tag: &str, name: &str| {
            let pattern = Regex::new(&format!(r#"\b{name}\s*=\s*["']([^"']*)["']"#)).ok()?;
            Some(pattern.captures(tag)?.get(1)?.as_str().to_owned())
        };
        for tag in pattern.find_iter(html) {
            let Some(name) = attribute(tag.as_str(), "name") else { continue };
            let field = match attribute(tag.as_str(), "value") {
                Some(value) => format!("{name}={value}"),
                None => name,
            };
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    let text = replaced(html, r"(?s)<(script|style)\b.*?</(script|style)>", " ");
    let text = replaced(&text, r"(?s)<[^>]*>", " ");
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&nbsp;", " "), ("&amp;", "&")];
    let text = entities.iter().fold(text, |text, (entity, plain)| text.replace(entity, plain));
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut shown: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    if !fields.is_empty() {
        shown.push(format!("(fields: {})", fields.join(", ")));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_screen_is_shown_as_text_with_its_fields() {
        let html = "<style>a{}</style><h2>Review &amp; go</h2>\n<form><button name=\"action\" value=\"approve\">Yes</button><input name='note'></form>";
        assert_eq!(super::screen_text(html), "Review & go\nYes\n(fields: action=approve, note)");
    }
}
