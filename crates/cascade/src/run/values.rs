//! Templates of a cascade with the values of a run.

use serde_json::Value;

use super::Run;
use super::error::RunError;
use super::state::RunState;
use crate::definition::{Cascade, Count, Phase};
use crate::template::{Template, Values};

impl Run {
    /// Renders a template with the run's values and some more.
    pub(crate) fn render(
        &self,
        phase: &Phase,
        past: &RunState,
        template: &Template,
        more: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<String, RunError> {
        // Most texts hold no template, and the values hold the whole history.
        if !template.source().contains('{') {
            return Ok(template.source().to_owned());
        }
        let values = self.values(phase, past, more);
        template.render(&values).map_err(|error| failed(phase, &error))
    }

    fn values(
        &self,
        phase: &Phase,
        past: &RunState,
        more: impl IntoIterator<Item = (String, Value)>,
    ) -> Values {
        let mut values = values(&self.cascade, phase, past);
        if let Some(index) = self.sounding {
            values.set("sounding_index", &Value::from(index));
        }
        for (name, value) in more {
            values.set(&name, &value);
        }
        values
    }

    /// Renders what a tool is given: JSON where the whole text was one value, else text.
    pub(crate) fn render_value(
        &self,
        phase: &Phase,
        past: &RunState,
        template: &Template,
    ) -> Result<Value, RunError> {
        let source = template.source().trim();
        let text = self.render(phase, past, template, [])?;
        let is_one_value =
            source.starts_with("{{") && source.ends_with("}}") && source.matches("{{").count() == 1;
        if is_one_value
            && let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(&text)
        {
            return Ok(value);
        }
        Ok(Value::String(text))
    }

    /// Tells whether a condition holds.
    pub(crate) fn holds(
        &self,
        phase: &Phase,
        past: &RunState,
        condition: &Template,
    ) -> Result<bool, RunError> {
        condition.is_true(&self.values(phase, past, [])).map_err(|error| failed(phase, &error))
    }

    /// Returns a number that a cascade gives, or computes.
    pub(crate) fn count(
        &self,
        phase: &Phase,
        past: &RunState,
        count: Option<&Count>,
    ) -> Result<Option<u32>, RunError> {
        match count {
            None => Ok(None),
            Some(Count::Fixed(number)) => Ok(Some(*number)),
            Some(Count::Template(template)) => {
                let text = self.render(phase, past, template, [])?;
                text.trim().parse().map(Some).map_err(|_| RunError::Template {
                    phase: phase.name.to_string(),
                    what: format!("`{}` renders `{text}`, which is no number", template.source()),
                })
            }
        }
    }

    /// Renders a template that may not be there.
    pub(crate) fn of_template(
        &self,
        phase: &Phase,
        past: &RunState,
        template: Option<&Template>,
    ) -> Result<Option<String>, RunError> {
        template.map(|template| self.render(phase, past, template, [])).transpose()
    }
}

pub(crate) fn failed(phase: &Phase, error: &dyn std::fmt::Display) -> RunError {
    RunError::Template { phase: phase.name.to_string(), what: error.to_string() }
}

/// Returns what every template of a phase sees.
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
