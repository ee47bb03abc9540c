//! Failures, met as a phase says.

use plimsoll_core::text::shortened;
use serde_json::{Map, Value};

use super::Run;
use super::error::RunError;
use super::journal::Journal;
use super::phase::Ended;
use super::state::{Ran, RunState};
use crate::definition::{OnError, Phase};
use crate::template::Template;

impl Run {
    /// Meets a failure as the phase says.
    pub(crate) async fn met(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        on_error: &OnError,
        error: &RunError,
    ) -> Result<Ended, RunError> {
        let name = phase.name.as_str();
        let why = error.to_string();
        if *on_error == OnError::Fail {
            // Nothing is decided: whoever resumes the run tries again.
            return Err(RunError::Failed { phase: name.to_owned(), why });
        }
        self.note(name, format!("{why}; it is met as `on_error` says"));
        journal.fail(name, &why).await?;
        past.state.insert("last_error".to_owned(), Value::String(why.clone()));
        let ran = |output: String, messages| Ran {
            phase: name.to_owned(),
            value: Value::String(output.clone()),
            output,
            messages,
            set: Map::new(),
            retention: phase.context_retention,
        };
        match on_error {
            OnError::Fail => Err(RunError::Failed { phase: name.to_owned(), why }),
            OnError::Continue => {
                past.ran.push(ran(format!("[failed: {why}]"), Vec::new()));
                Ok(Ended::Through)
            }
            OnError::Phase(target) => {
                past.ran.push(ran(format!("[failed: {why}]"), Vec::new()));
                Ok(Ended::GoTo(target.name.clone()))
            }
            OnError::Prompt(prompt) => {
                // It stands in for the phase: by its own words, model, tools and bounds.
                let instead = Phase {
                    instructions: Some(prompt.instructions.clone()),
                    model: prompt.model.clone().or_else(|| phase.model.clone()),
                    tackle: prompt.tackle.clone(),
                    rules: prompt.rules.clone(),
                    tool: None,
                    on_error: None,
                    soundings: None,
                    sub_cascades: Vec::new(),
                    ..phase.clone()
                };
                let (ran, ended) = Box::pin(self.attempts(&instead, past, journal, None)).await?;
                self.end(phase, past, journal, ran).await?;
                Ok(ended)
            }
            OnError::AutoFix { max_attempts, model, prompt } => {
                self.mended(
                    phase,
                    past,
                    journal,
                    *max_attempts,
                    model.as_ref(),
                    prompt.as_ref(),
                    why,
                )
                .await
            }
        }
    }

    /// Lets a model mend what a tool is given.
    #[expect(clippy::too_many_arguments, reason = "they are the fields of one variant")]
    async fn mended(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        max_attempts: u32,
        model: Option<&Template>,
        prompt: Option<&Template>,
        mut why: String,
    ) -> Result<Ended, RunError> {
        let failed = |why: String| RunError::Failed { phase: phase.name.to_string(), why };
        let Some(tool) = phase.tool.as_deref() else { return Err(failed(why)) };
        let mut inputs = self.templated(phase, past, &phase.inputs)?;
        for _ in 0..max_attempts {
            let told = [("error".to_owned(), Value::String(why.clone()))];
            let own = match prompt {
                Some(prompt) => self.render(phase, past, prompt, told)?,
                None => "Mend the inputs so that the call succeeds.".to_owned(),
            };
            let question = format!(
                "The tool `{tool}` failed.\n\nINPUTS:\n{}\n\nERROR:\n{why}\n\n{own}\nAnswer with the inputs as a JSON object.",
                Value::Object(inputs.clone())
            );
            let asked = self.of_template(phase, past, model)?;
            let (model, asked_for) = self.model(phase, past, asked)?;
            let answer = self
                .ask(phase, journal, model, asked_for, question, r#"{"type":"object"}"#)
                .await?;
            if let Value::Object(mended) = answer {
                inputs = mended;
            }
            let message = self.tool_once(phase, journal, tool, &inputs).await?;
            match message.results().find(|result| result.is_error) {
                Some(result) => why = shortened(&result.text, 200).into_owned(),
                None => return self.end_tool_phase(phase, past, journal, &message).await,
            }
        }
        Err(failed(why))
    }
}

/// Tells whether a phase may meet a failure by itself: not what concerns the record or the cascade.
pub(crate) fn can_be_met(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Failed { .. }
            | RunError::Model { .. }
            | RunError::Tool { .. }
            | RunError::Met { .. }
    )
}
