//! Templates with values.

use std::collections::BTreeMap;

use minijinja::{Environment, Error, Value};

use crate::definition::Template;

/// What templates can name.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Gives a name a value.
    pub fn set(&mut self, name: &str, value: &serde_json::Value) {
        self.0.insert(name.to_owned(), Value::from(minijinja::value::Serde(value)));
    }
}

impl Template {
    /// Renders the template.
    pub fn render(&self, values: &Values) -> Result<String, Error> {
        let root =
            Value::from_pairs(values.0.iter().map(|(name, value)| (name.as_str(), value.clone())));
        Environment::new().render_str(self.source(), root)
    }

    /// Tells whether a condition is true.
    pub fn is_true(&self, values: &Values) -> Result<bool, Error> {
        let said = self.render(values)?;
        Ok(!["", "false", "no", "0", "none"].contains(&said.trim().to_lowercase().as_str()))
    }
}
