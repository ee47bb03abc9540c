//! Templates of a cascade, rendered with the values of a run.

use serde_json::{Map, Value};

use super::error::RunError;
use super::state::RunState;
use super::visit::Visit;
use crate::definition::{Cascade, Count, Phase, Templated};
use crate::template::{Template, Values};

impl Visit<'_> {
    /// Renders a template with the run's values and `more`.
    pub(crate) fn render(
        &self,
        template: &Template,
        more: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<String, RunError> {
        // Most texts hold no template, and the values hold the whole history.
        if !template.source().contains('{') {
            return Ok(template.source().to_owned());
        }
        template.render(&self.values(more)).map_err(|error| failed(self.phase, &error))
    }

    /// Renders a template that the cascade may leave out.
    pub(crate) fn render_option(
        &self,
        template: Option<&Template>,
    ) -> Result<Option<String>, RunError> {
        template.map(|template| self.render(template, [])).transpose()
    }

    /// Renders the instructions of the phase; they are empty where it has none.
    pub(crate) fn task(&self) -> Result<String, RunError> {
        self.render_option(self.phase.instructions.as_ref()).map(Option::unwrap_or_default)
    }

    fn values(&self, more: impl IntoIterator<Item = (String, Value)>) -> Values {
        let mut values = values(&self.run.cascade, self.phase, self.past);
        if let Some(index) = self.run.sounding {
            values.set("sounding_index", &Value::from(index));
        }
        for (name, value) in more {
            values.set(&name, &value);
        }
        values
    }

    /// Renders the texts of a tool's inputs.
    pub(crate) fn inputs(
        &self,
        inputs: &[(String, Templated)],
    ) -> Result<Map<String, Value>, RunError> {
        inputs.iter().map(|(name, value)| Ok((name.clone(), self.input(value)?))).collect()
    }

    fn input(&self, input: &Templated) -> Result<Value, RunError> {
        Ok(match input {
            Templated::Text(template) => self.render_value(template)?,
            Templated::List(items) => {
                items.iter().map(|item| self.input(item)).collect::<Result<_, _>>()?
            }
            Templated::Map(entries) => Value::Object(self.inputs(entries)?),
            Templated::Plain(value) => value.clone(),
        })
    }

    /// Renders an input of a tool: JSON where the whole text is one value, else a text.
    fn render_value(&self, template: &Template) -> Result<Value, RunError> {
        let source = template.source().trim();
        let text = self.render(template, [])?;
        let is_one_value =
            source.starts_with("{{") && source.ends_with("}}") && source.matches("{{").count() == 1;
        if is_one_value
            && let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(&text)
        {
            return Ok(value);
        }
        Ok(Value::String(text))
    }

    /// Returns whether a condition holds; a missing one does.
    pub(crate) fn holds(&self, condition: Option<&Template>) -> Result<bool, RunError> {
        let Some(condition) = condition else { return Ok(true) };
        condition.is_true(&self.values([])).map_err(|error| failed(self.phase, &error))
    }

    /// Returns a number that the cascade gives or computes.
    pub(crate) fn count(&self, count: Option<&Count>) -> Result<Option<u32>, RunError> {
        match count {
            None => Ok(None),
            Some(Count::Fixed(number)) => Ok(Some(*number)),
            Some(Count::Template(template)) => {
                let text = self.render(template, [])?;
                text.trim().parse().map(Some).map_err(|_| {
                    let source = template.source();
                    failed(
                        self.phase,
                        &format!("`{source}` renders `{text}`, which is not a number"),
                    )
                })
            }
        }
    }
}

pub(crate) fn failed(phase: &Phase, error: &dyn std::fmt::Display) -> RunError {
    RunError::Template { phase: phase.name.to_string(), what: error.to_string() }
}

/// Returns the values that every template of a phase can name.
pub(crate) fn values(cascade: &Cascade, phase: &Phase, past: &RunState) -> Values {
    let mut values = Values::default();
    for (name, value) in past.values() {
        values.set(&name, &value);
    }
    values.set("phase", &Value::String(phase.name.to_string()));
    values.set("cascade_id", &Value::String(cascade.cascade_id.to_string()));
    if let Some(error) = past.state.get("last_error") {
        values.set("error", error);
    }
    values
}
