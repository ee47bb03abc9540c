//! Validators: whether an output will do, and why not.

use plimsoll_core::text::{push_shortened, shortened};
use serde_json::{Map, Value};

use super::Run;
use super::ask::json_in;
use super::error::RunError;
use super::event::Event;
use super::journal::Journal;
use super::part_of;
use super::state::RunState;
use crate::definition::{Phase, PromptValidator, Validator};

/// What a validator says of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) valid: bool,
    pub(crate) reason: String,
}

impl Verdict {
    pub(crate) fn valid() -> Self {
        Self { valid: true, reason: String::new() }
    }

    fn invalid(reason: impl Into<String>) -> Self {
        Self { valid: false, reason: reason.into() }
    }

    /// Reads `{valid, reason}`; anything else is no yes.
    fn read(text: &str) -> Self {
        let Some(Value::Object(map)) = json_in(text) else {
            let shown = shortened(text, 200);
            return Self::invalid(format!(
                "the validator did not say whether it is valid, but: {shown}"
            ));
        };
        let reason = map.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
        match map.get("valid").and_then(Value::as_bool) {
            Some(true) => Self { valid: true, reason },
            _ if reason.is_empty() => Self::invalid("Unknown validation failure"),
            _ => Self::invalid(reason),
        }
    }
}

/// The most characters of an output that a judge is shown (chosen).
const JUDGED: usize = 20_000;

impl Run {
    /// Judges an attempt: its schema, its loop's validator, and the checks behind the phase that ask for another try.
    pub(crate) async fn judge(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        output: &str,
        attempt: u32,
    ) -> Result<Verdict, RunError> {
        if let Some(schema) = &phase.output_schema {
            let verdict = fulfils(&schema.0, output);
            self.told(phase, "output_schema", attempt, &verdict);
            if !verdict.valid {
                return Ok(verdict);
            }
        }
        if let Some(validator) = &phase.rules.loop_until {
            let verdict = self.validated(phase, past, journal, validator, output, attempt).await?;
            if !verdict.valid {
                return Ok(verdict);
            }
        }
        let verdict = self.wards(phase, past, journal, &phase.wards.post, output).await?;
        let most = phase.wards.post.iter().map(|ward| ward.max_attempts).max().unwrap_or(1);
        if !verdict.valid && attempt >= most && phase.rules.loop_until.is_none() {
            let why = format!("a check failed {attempt} times: {}", verdict.reason);
            return Err(RunError::Failed { phase: phase.name.to_string(), why });
        }
        Ok(verdict)
    }

    /// Returns the most attempts of a phase.
    pub(crate) fn most_attempts(&self, phase: &Phase, past: &RunState) -> Result<u32, RunError> {
        let said = self.count(phase, past, phase.rules.max_attempts.as_ref())?;
        let of_wards = phase.wards.post.iter().map(|ward| ward.max_attempts).max();
        let is_loop = phase.rules.loop_until.is_some() || phase.output_schema.is_some();
        let usual = if is_loop { self.runner.settings.max_attempts } else { 1 };
        Ok(said.unwrap_or(usual).max(of_wards.unwrap_or(1)).max(1))
    }

    /// Returns what the model is told of the validator beforehand; nothing where the loop is silent.
    pub(crate) fn told_of_validator(
        &self,
        phase: &Phase,
        past: &RunState,
    ) -> Result<Option<String>, RunError> {
        let Some(validator) =
            phase.rules.loop_until.as_ref().filter(|_| !phase.rules.loop_until_silent)
        else {
            return Ok(None);
        };
        if let Some(prompt) = &phase.rules.loop_until_prompt {
            return self.render(phase, past, prompt, []).map(Some);
        }
        let name = named(validator);
        let about = self.toolbox.find(&name).map(|tool| format!(" ({})", tool.description));
        let most = self.most_attempts(phase, past)?;
        Ok(Some(format!(
            "Your answer will be checked by `{name}`{}. You have {most} attempts.",
            about.unwrap_or_default()
        )))
    }

    /// Asks one validator.
    pub(crate) async fn validated(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        validator: &Validator,
        output: &str,
        attempt: u32,
    ) -> Result<Verdict, RunError> {
        let name = named(validator);
        let verdict = match validator {
            Validator::Named(name) => {
                if let Some((_, prompt)) =
                    self.cascade.validators.iter().find(|(known, _)| known == name)
                {
                    self.judged(phase, past, journal, prompt, output).await?
                } else if self.toolbox.find(name).is_some() && !self.is_stub(name) {
                    self.by_tool(phase, journal, name, Map::new(), output).await?
                } else if let Ok(cascade) = self.runner.library.cascade(name) {
                    self.by_cascade(past, journal, cascade, name, attempt, output).await?
                } else if self.runner.settings.stubs {
                    self.note(
                        phase.name.as_str(),
                        format!("nobody has the validator `{name}`: all is valid"),
                    );
                    Verdict::valid()
                } else if let Some(prompt) = &phase.rules.loop_until_prompt {
                    let criterion = self.render(phase, past, prompt, [])?;
                    self.by_criterion(phase, past, journal, &criterion, output).await?
                } else {
                    return Err(RunError::Missing {
                        what: format!("there is no validator `{name}`"),
                    });
                }
            }
            Validator::Tool { tool, inputs } => {
                let inputs = self.templated(phase, past, inputs)?;
                self.by_tool(phase, journal, tool, inputs, output).await?
            }
            Validator::Prompt(prompt) => self.judged(phase, past, journal, prompt, output).await?,
            Validator::Code { language, code } => {
                let tool = format!("run_{}", language.as_str());
                let inputs = Map::from_iter([("code".to_owned(), Value::String(code.clone()))]);
                self.by_tool(phase, journal, &tool, inputs, output).await?
            }
        };
        self.told(phase, &name, attempt, &verdict);
        Ok(verdict)
    }

    fn told(&self, phase: &Phase, validator: &str, attempt: u32, verdict: &Verdict) {
        self.tell(&Event::Validated {
            phase: phase.name.to_string(),
            validator: validator.to_owned(),
            attempt,
            valid: verdict.valid,
            reason: verdict.reason.clone(),
        });
    }

    fn is_stub(&self, name: &str) -> bool {
        self.runner.settings.stubs && !self.toolbox.has(name)
    }

    /// Asks a tool: it is given the output as `content`, and answers `{valid, reason}` or with a status.
    async fn by_tool(
        &self,
        phase: &Phase,
        journal: &mut Journal,
        tool: &str,
        mut inputs: Map<String, Value>,
        output: &str,
    ) -> Result<Verdict, RunError> {
        inputs.entry("content").or_insert_with(|| Value::String(output.to_owned()));
        let message = match self.tool_once(phase, journal, tool, &inputs).await {
            Ok(message) => message,
            // One that hangs or is gone says nothing of the output: that is not the model's to mend.
            Err(RunError::Tool { phase, source }) => {
                let why = format!("its validator can't be asked: {source}");
                return Err(RunError::Failed { phase, why });
            }
            Err(error) => return Err(error),
        };
        let Some(result) = message.results().next() else { return Ok(Verdict::valid()) };
        if json_in(&result.text).is_some_and(|value| value.get("valid").is_some()) {
            return Ok(Verdict::read(&result.text));
        }
        if result.is_error {
            return Ok(Verdict::invalid(shortened(&result.text, 2_000).into_owned()));
        }
        Ok(Verdict::valid())
    }

    /// Asks a cascade: its output is the verdict.
    async fn by_cascade(
        &self,
        past: &RunState,
        journal: &Journal,
        cascade: std::sync::Arc<crate::definition::Cascade>,
        name: &str,
        attempt: u32,
        output: &str,
    ) -> Result<Verdict, RunError> {
        let mut input = Map::new();
        for key in ["content", "text", "output"] {
            input.insert(key.to_owned(), Value::String(output.to_owned()));
        }
        input.insert("original_input".to_owned(), Value::Object(past.input.clone()));
        let part = format!("{name}.{}.{attempt}", past.ran.len());
        let session = part_of(journal.session(), &part)?;
        let inner = self.inside(cascade)?;
        let outcome = Box::pin(inner.start(input, Map::new(), &session)).await?;
        Ok(Verdict::read(&outcome.output))
    }

    /// Asks a model by a prompt of the cascade's.
    async fn judged(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        prompt: &PromptValidator,
        output: &str,
    ) -> Result<Verdict, RunError> {
        let mut seen = past.clone();
        seen.input = Map::from_iter([
            ("content".to_owned(), Value::String(output.to_owned())),
            ("original_input".to_owned(), Value::Object(past.input.clone())),
        ]);
        let criterion = self.render(phase, &seen, &prompt.instructions, [])?;
        let asked = self.of_template(phase, past, prompt.model.as_ref())?;
        let (model, asked_for) = self.model(phase, past, asked)?;
        let text = if prompt.instructions.source().contains("input.content") {
            format!("{criterion}\n\n{VERDICT}")
        } else {
            with_output(&criterion, output)
        };
        let answer = self.ask(phase, journal, model, asked_for, text, VERDICT_SCHEMA).await?;
        Ok(Verdict::read(&answer.to_string()))
    }

    /// Asks the phase's model by a criterion.
    async fn by_criterion(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        criterion: &str,
        output: &str,
    ) -> Result<Verdict, RunError> {
        let (model, asked_for) = self.model(phase, past, None)?;
        let text = with_output(criterion, output);
        let answer = self.ask(phase, journal, model, asked_for, text, VERDICT_SCHEMA).await?;
        Ok(Verdict::read(&answer.to_string()))
    }

    /// Checks that the validators of a phase are there.
    pub(crate) fn check_validators(&self, phase: &Phase) -> Result<(), RunError> {
        let of_soundings =
            phase.soundings.as_ref().and_then(|soundings| soundings.validator.as_ref());
        let wards = phase.wards.all().map(|ward| &ward.validator);
        let all = phase.rules.loop_until.iter().chain(of_soundings).chain(wards);
        for validator in all {
            let needs = match validator {
                Validator::Named(name) => {
                    let is_there = self.cascade.validators.iter().any(|(known, _)| known == name)
                        || self.toolbox.has(name)
                        || self.runner.library.cascade(name).is_ok()
                        || (phase.rules.loop_until.as_ref() == Some(validator)
                            && phase.rules.loop_until_prompt.is_some());
                    (!is_there).then(|| name.clone())
                }
                Validator::Tool { tool, .. } => (!self.toolbox.has(tool)).then(|| tool.clone()),
                Validator::Code { language, .. } => {
                    let tool = format!("run_{}", language.as_str());
                    (!self.toolbox.has(&tool)).then_some(tool)
                }
                Validator::Prompt(_) => None,
            };
            if let Some(name) = needs.filter(|_| !self.runner.settings.stubs) {
                let what = format!(
                    "phase `{}` needs the validator `{name}`: give it as a tool, as a cascade, or as a prompt under `validators`",
                    phase.name
                );
                return Err(RunError::Missing { what });
            }
        }
        Ok(())
    }
}

const VERDICT: &str = r#"Answer with JSON: {"valid": true or false, "reason": "…"}."#;
const VERDICT_SCHEMA: &str = r#"{"type":"object","properties":{"valid":{"type":"boolean"},"reason":{"type":"string"}},"required":["valid","reason"]}"#;

fn with_output(criterion: &str, output: &str) -> String {
    let mut shown = String::new();
    push_shortened(&mut shown, output, JUDGED);
    format!("{criterion}\n\nCONTENT:\n{shown}\n\n{VERDICT}")
}

fn named(validator: &Validator) -> String {
    match validator {
        Validator::Named(name) => name.clone(),
        Validator::Tool { tool, .. } => tool.clone(),
        Validator::Code { language, .. } => language.as_str().to_owned(),
        Validator::Prompt(_) => "prompt".to_owned(),
    }
}

/// Checks the JSON of an output against its schema; nothing is fetched.
fn fulfils(schema: &Value, output: &str) -> Verdict {
    let Some(value) = json_in(output) else {
        return Verdict::invalid("the output holds no JSON");
    };
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return Verdict::invalid("`output_schema` is no JSON Schema");
    };
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .take(5)
        .map(|error| format!("{} at `{}`", error, error.instance_path()))
        .collect();
    if errors.is_empty() { Verdict::valid() } else { Verdict::invalid(errors.join("; ")) }
}
