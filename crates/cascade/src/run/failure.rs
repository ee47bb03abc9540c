//! Failures of a phase, handled as its `on_error` says.

use plimsoll_core::text::shortened;
use serde_json::Value;

use super::error::RunError;
use super::event::Purpose;
use super::phase::{PhaseEnd, Trial};
use super::visit::Visit;
use crate::definition::{OnError, Phase};
use crate::template::Template;

impl Visit<'_> {
    /// Handles a failure as the phase says.
    pub(crate) async fn recover(
        &mut self,
        on_error: &OnError,
        error: &RunError,
    ) -> Result<PhaseEnd, RunError> {
        let (name, why) = (self.name(), error.to_string());
        if *on_error == OnError::Fail {
            // The failure is not recorded, so that a resumed run tries again.
            return Err(self.failed(why));
        }
        self.note(format!("{why}; it is met as `on_error` says"));
        self.journal.fail(name, &why).await?;
        self.past.state.insert("last_error".to_owned(), Value::String(why.clone()));
        self.changes.clear();
        match on_error {
            OnError::Fail => Err(self.failed(why)),
            OnError::Continue => Ok(self.end_with_failure(&why, PhaseEnd::Through)),
            OnError::Phase(target) => {
                Ok(self.end_with_failure(&why, PhaseEnd::GoTo(target.name.clone())))
            }
            OnError::Prompt(prompt) => {
                let instead = Phase {
                    instructions: Some(prompt.instructions.clone()),
                    model: prompt.model.clone().or_else(|| self.phase.model.clone()),
                    tackle: prompt.tackle.clone(),
                    rules: prompt.rules.clone(),
                    tool: None,
                    on_error: None,
                    soundings: None,
                    sub_cascades: Vec::new(),
                    ..self.phase.clone()
                };
                let mut visit = Visit::new(self.run, &instead, self.past, self.journal);
                let (run, end) = Box::pin(visit.attempts(Trial::default())).await?;
                self.end(run).await?;
                Ok(end)
            }
            OnError::AutoFix { max_attempts, model, prompt } => {
                self.fix_inputs(*max_attempts, model.as_ref(), prompt.as_ref(), why).await
            }
        }
    }

    fn end_with_failure(&mut self, why: &str, end: PhaseEnd) -> PhaseEnd {
        let run = self.finished(format!("[failed: {why}]"), Vec::new());
        self.past.runs.push(run);
        end
    }

    /// Lets a model correct the inputs of the phase's tool.
    async fn fix_inputs(
        &mut self,
        max_attempts: u32,
        model: Option<&Template>,
        prompt: Option<&Template>,
        mut why: String,
    ) -> Result<PhaseEnd, RunError> {
        let Some(tool) = self.phase.tool.as_deref() else { return Err(self.failed(why)) };
        let mut inputs = self.inputs(&self.phase.inputs)?;
        for _ in 0..max_attempts {
            let error = [("error".to_owned(), Value::String(why.clone()))];
            let instructions = match prompt {
                Some(prompt) => self.render(prompt, error)?,
                None => "Mend the inputs so that the call succeeds.".to_owned(),
            };
            let question = format!(
                "The tool `{tool}` failed.\n\nINPUTS:\n{}\n\nERROR:\n{why}\n\n{instructions}\nAnswer with the inputs as a JSON object.",
                Value::Object(inputs.clone())
            );
            let model = self.model_of(model)?;
            let answer =
                self.ask(Purpose::Repair, &model, question, r#"{"type":"object"}"#).await?;
            if let Value::Object(corrected) = answer {
                inputs = corrected;
            }
            let message = self.call_tool(tool, &inputs).await?;
            match message.results().find(|result| result.is_error) {
                Some(result) => why = shortened(&result.text, 200).into_owned(),
                None => return self.end_tool_phase(&message).await,
            }
        }
        Err(self.failed(why))
    }
}

/// Returns whether a run may go on after an error: not after one of the record or the cascade.
pub(crate) fn is_recoverable(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Failed { .. }
            | RunError::Model { .. }
            | RunError::Tool { .. }
            | RunError::Recorded { .. }
    )
}
