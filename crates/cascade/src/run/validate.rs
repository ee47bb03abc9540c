//! Validators: whether an output is valid, and why not.

use std::sync::Arc;

use plimsoll_core::text::{push_shortened, shortened};
use plimsoll_engine::Response;
use serde_json::{Map, Value, json};

use super::ask::{RequestedModel, json_in};
use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::starter_validators::starter_validator;
use super::turns::UNUSABLE;
use super::visit::Visit;
use super::{CascadeRun, part_of};
use crate::definition::{Cascade, Phase, PromptValidator, Validator};

/// The result of a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Validation {
    pub(crate) valid: bool,
    pub(crate) reason: String,
}

impl Validation {
    pub(crate) fn valid() -> Self {
        Self { valid: true, reason: String::new() }
    }

    fn invalid(reason: impl Into<String>) -> Self {
        Self { valid: false, reason: reason.into() }
    }

    /// Reads `{valid, reason}`; any other text is invalid.
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

/// The most characters of an output that a judge sees (chosen).
const JUDGED: usize = 20_000;

impl Visit<'_> {
    /// Judges an attempt: its schema, its loop's validator, and the checks after the phase that ask for another try.
    pub(crate) async fn judge(
        &mut self,
        output: &str,
        attempt: u32,
    ) -> Result<Validation, RunError> {
        let phase = self.phase;
        if let Some(schema) = &phase.output_schema {
            let validation = check_schema(&schema.0, output);
            self.tell_validation("output_schema", attempt, &validation);
            if !validation.valid {
                return Ok(validation);
            }
        }
        if let Some(validator) = &phase.rules.loop_until {
            let validation = self.validate(validator, output, attempt).await?;
            if !validation.valid {
                return Ok(validation);
            }
        }
        let validation = self.wards(&phase.wards.post, output).await?;
        let most = phase.wards.post.iter().map(|ward| ward.max_attempts).max().unwrap_or(1);
        if !validation.valid && attempt >= most && phase.rules.loop_until.is_none() {
            let why = format!("a check failed {attempt} times: {}", validation.reason);
            return Err(self.failed(why));
        }
        Ok(validation)
    }

    /// Returns the most attempts of the phase.
    pub(crate) fn most_attempts(&self) -> Result<u32, RunError> {
        let rules = &self.phase.rules;
        let given = self.count(rules.max_attempts.as_ref())?;
        let of_wards = self.phase.wards.post.iter().map(|ward| ward.max_attempts).max();
        let is_loop = rules.loop_until.is_some() || self.phase.output_schema.is_some();
        let usual = if is_loop { self.run.runner.settings.max_attempts } else { 1 };
        Ok(given.unwrap_or(usual).max(of_wards.unwrap_or(1)).max(1))
    }

    /// Returns the announcement of the validator; `None` where the loop has none or is silent.
    pub(crate) fn about_validator(&self) -> Result<Option<String>, RunError> {
        let rules = &self.phase.rules;
        let Some(validator) = rules.loop_until.as_ref().filter(|_| !rules.loop_until_silent) else {
            return Ok(None);
        };
        if let Some(prompt) = &rules.loop_until_prompt {
            return self.render(prompt, []).map(Some);
        }
        let about = self.run.toolbox.find(validator.name());
        let about = about.as_ref().map(|tool| &*tool.description);
        Ok(Some(announcement(validator, about, self.most_attempts()?)))
    }

    /// Asks one validator.
    pub(crate) async fn validate(
        &mut self,
        validator: &Validator,
        output: &str,
        attempt: u32,
    ) -> Result<Validation, RunError> {
        let run = self.run;
        let validation = match validator {
            Validator::Named(name) => {
                if let Some((_, prompt)) =
                    run.cascade.validators.iter().find(|(known, _)| known == name)
                {
                    self.by_prompt(prompt, output).await?
                } else if run.toolbox.has(name) {
                    self.by_tool(name, Map::new(), output).await?
                } else if let Ok(cascade) = run.runner.library.cascade(name) {
                    self.by_cascade(cascade, name, attempt, output).await?
                } else if run.runner.settings.stubs {
                    self.note(format!("nobody has the validator `{name}`: all is valid"));
                    Validation::valid()
                } else if let Some(prompt) = &self.phase.rules.loop_until_prompt {
                    let question = with_output(&self.render(prompt, [])?, output);
                    self.by_model(&self.model(None)?, question).await?
                } else if let Some(criterion) = starter_validator(name) {
                    let question = with_output(criterion, output);
                    self.by_model(&self.model(None)?, question).await?
                } else {
                    return Err(RunError::Missing {
                        what: format!("there is no validator `{name}`"),
                    });
                }
            }
            Validator::Tool { tool, inputs } => {
                let inputs = self.inputs(inputs)?;
                self.by_tool(tool, inputs, output).await?
            }
            Validator::Prompt(prompt) => self.by_prompt(prompt, output).await?,
            Validator::Code { language, code } => {
                let inputs = Map::from_iter([("code".to_owned(), Value::String(code.clone()))]);
                self.by_tool(&language.tool(), inputs, output).await?
            }
        };
        self.tell_validation(validator.name(), attempt, &validation);
        Ok(validation)
    }

    fn tell_validation(&self, validator: &str, attempt: u32, validation: &Validation) {
        self.run.tell(&RunEvent::Validated {
            phase: self.name().to_owned(),
            validator: validator.to_owned(),
            attempt,
            valid: validation.valid,
            reason: validation.reason.clone(),
        });
    }

    /// Asks a tool: it gets the output as `content`, and answers `{valid, reason}` or with a status.
    async fn by_tool(
        &mut self,
        tool: &str,
        mut inputs: Map<String, Value>,
        output: &str,
    ) -> Result<Validation, RunError> {
        inputs.entry("content").or_insert_with(|| Value::String(output.to_owned()));
        let message = match self.call_tool(tool, &inputs).await {
            Ok(message) => message,
            // A validator that gives no answer does not judge the output, and the model can't correct it.
            Err(RunError::Tool { source, .. }) => {
                return Err(self.failed(format!("its validator can't be asked: {source}")));
            }
            Err(error) => return Err(error),
        };
        let Some(result) = message.results().next() else { return Ok(Validation::valid()) };
        if json_in(&result.text).is_some_and(|value| value.get("valid").is_some()) {
            return Ok(Validation::read(&result.text));
        }
        if result.is_error {
            return Ok(Validation::invalid(shortened(&result.text, 2_000)));
        }
        Ok(Validation::valid())
    }

    /// Asks a cascade: its output is the verdict.
    async fn by_cascade(
        &self,
        cascade: Arc<Cascade>,
        name: &str,
        attempt: u32,
        output: &str,
    ) -> Result<Validation, RunError> {
        let mut input = Map::new();
        for key in ["content", "text", "output"] {
            input.insert(key.to_owned(), Value::String(output.to_owned()));
        }
        input.insert("original_input".to_owned(), Value::Object(self.past.input.clone()));
        let part = format!("{name}.{}.{attempt}", self.past.runs.len());
        let session = part_of(self.journal.session(), &part)?;
        let inner = self.run.inside(cascade)?;
        let outcome = inner.start_inside(input, Map::new(), session).await?;
        Ok(Validation::read(&outcome.output))
    }

    /// Asks a model by a prompt of the cascade.
    async fn by_prompt(
        &mut self,
        prompt: &PromptValidator,
        output: &str,
    ) -> Result<Validation, RunError> {
        let input = json!({"content": output, "original_input": self.past.input});
        let criterion = self.render(&prompt.instructions, [("input".to_owned(), input)])?;
        let question = if prompt.instructions.source().contains("input.content") {
            format!("{criterion}\n\n{VERDICT}")
        } else {
            with_output(&criterion, output)
        };
        self.by_model(&self.model_of(prompt.model.as_ref())?, question).await
    }

    async fn by_model(
        &mut self,
        model: &RequestedModel,
        question: String,
    ) -> Result<Validation, RunError> {
        let answer = self.ask(Purpose::Judge, model, question, VERDICT_SCHEMA).await?;
        Ok(Validation::read(&answer.to_string()))
    }
}

impl CascadeRun {
    /// Checks that the validators of a phase are there.
    pub(crate) fn check_validators(&self, phase: &Phase) -> Result<(), RunError> {
        let rules = &phase.rules;
        let of_soundings = phase.soundings.as_ref().and_then(|it| it.validator.as_ref());
        let wards = phase.wards.all().map(|ward| &ward.validator);
        for validator in rules.loop_until.iter().chain(of_soundings).chain(wards) {
            let (name, is_there) = match validator {
                Validator::Named(name) => {
                    let is_there = self.cascade.validators.iter().any(|(known, _)| known == name)
                        || self.toolbox.has(name)
                        || self.runner.library.cascade(name).is_ok()
                        || starter_validator(name).is_some()
                        || (rules.loop_until.as_ref() == Some(validator)
                            && rules.loop_until_prompt.is_some());
                    (name.clone(), is_there)
                }
                Validator::Tool { tool, .. } => (tool.clone(), self.toolbox.has(tool)),
                Validator::Code { language, .. } => {
                    let tool = language.tool();
                    let is_there = self.toolbox.has(&tool);
                    (tool, is_there)
                }
                Validator::Prompt(_) => continue,
            };
            if !is_there && !self.runner.settings.stubs {
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

/// Returns the announcement of a validator whose loop has no words of its own.
pub(crate) fn announcement(validator: &Validator, about: Option<&str>, most: u32) -> String {
    let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
    format!(
        "Your answer will be checked by `{}`{about}. You have {most} attempts.",
        validator.name()
    )
}

const NO_JSON: &str = "the output holds no JSON; `output_schema` asks for a JSON value";

/// Returns the form of answers that a schema asks for: a text where the schema allows one.
pub(crate) fn response_of(schema: Option<&Value>) -> Response {
    match schema.filter(|schema| !accepts(schema, "text")) {
        Some(schema) => Response::Json { schema: schema.to_string().into() },
        None => Response::Text,
    }
}

/// Returns whether a schema allows a text as it is; one that only names fields or items means an object or a list.
fn accepts(schema: &Value, text: &str) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    let means_other = !has("type") && (has("properties") || has("required") || has("items"));
    !means_other
        && jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(&json!(text)))
}

/// Checks the JSON of an output against its schema; no reference is fetched.
fn check_schema(schema: &Value, output: &str) -> Validation {
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return Validation::invalid("`output_schema` is not a valid JSON Schema");
    };
    if let Some(why) = output.strip_prefix(UNUSABLE) {
        return Validation::invalid(why.trim_end_matches(']'));
    }
    // A text is its own value: no model puts it into quotation marks.
    if accepts(schema, output) {
        return Validation::valid();
    }
    let Some(value) = json_in(output) else {
        return Validation::invalid(NO_JSON);
    };
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .take(5)
        .map(|error| format!("{} at `{}`", error, error.instance_path()))
        .collect();
    if errors.is_empty() { Validation::valid() } else { Validation::invalid(errors.join("; ")) }
}
