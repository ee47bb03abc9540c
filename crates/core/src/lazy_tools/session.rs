//! A session's tools: the loaded schemas in their order, and the decision about each call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LazySettings;
use super::definition::ToolDefinition;
use crate::spelling::nearest;

/// The tool that loads schemas.
pub const DESCRIBE_TOOL: &str = "describe_tool";

/// The tools that a session has loaded; stored with the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSession {
    loaded: Vec<String>,
}

/// The decision about a model's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDecision {
    /// It is run.
    Run,
    /// It is answered with this text; the described schema is sent from the next request on.
    Described(String),
    /// It is answered with this text, as an error: the model did not have the schema, and the arguments do not fit it.
    Unfit(String),
    /// It is answered with this text, as an error: there is no such tool.
    Unknown(String),
}

impl ToolSession {
    /// Returns the names of the loaded tools, in the order of loading.
    pub fn loaded(&self) -> &[String] {
        &self.loaded
    }

    /// Decides about a call, and loads the tool that it calls or asks about.
    ///
    /// A call of a tool that was never described is run if its arguments fit: the model knew them from the directory or from
    /// elsewhere, and asking it again costs a turn.
    pub fn on_call(
        &mut self,
        name: &str,
        arguments: &str,
        tools: &[ToolDefinition],
        settings: &LazySettings,
    ) -> CallDecision {
        let find = |name: &str| tools.iter().find(|tool| tool.name == name);
        if let Some(tool) = find(name) {
            let is_always = settings.always.contains(&tool.name);
            let is_known = is_always || self.loaded.contains(&tool.name);
            if !is_always {
                self.load(name);
            }
            if is_known || tool.takes(arguments) {
                return CallDecision::Run;
            }
            return CallDecision::Unfit(format!(
                "These arguments do not fit, and nothing was done. Call it again by this schema.\n\n{}",
                described(tool)
            ));
        }
        let asked = if name == DESCRIBE_TOOL {
            let asked = serde_json::from_str::<Value>(arguments).ok();
            let asked = asked.as_ref().and_then(|asked| asked.get("name")?.as_str());
            asked.unwrap_or_default().trim().to_owned()
        } else {
            name.to_owned()
        };
        if let Some(tool) = find(&asked) {
            self.load(&tool.name);
            return CallDecision::Described(described(tool));
        }
        let known = nearest(&asked, tools.iter().map(|tool| &*tool.name));
        let hint = known.map_or(String::new(), |known| format!(" The nearest is `{known}`."));
        CallDecision::Unknown(format!("There is no tool `{asked}`.{hint}"))
    }

    fn load(&mut self, name: &str) {
        if !self.loaded.iter().any(|loaded| loaded == name) {
            self.loaded.push(name.to_owned());
        }
    }
}

/// Returns the definition of the tool that loads schemas.
pub fn describe_tool() -> ToolDefinition {
    ToolDefinition {
        name: DESCRIBE_TOOL.to_owned(),
        description: "Shows what a tool of the directory takes; call it before the tool's first use.".to_owned(),
        schema: r#"{"type":"object","properties":{"name":{"type":"string","description":"the tool's name, as in the directory"}},"required":["name"],"additionalProperties":false}"#.to_owned(),
    }
}

/// Returns the answer of `describe_tool`: the tool's whole description and its schema.
pub fn described(tool: &ToolDefinition) -> String {
    let schema = tool.canonical_schema().unwrap_or_else(|_| tool.schema.clone());
    let mut text = tool.name.clone();
    if !tool.description.trim().is_empty() {
        text.push_str(": ");
        text.push_str(tool.description.trim());
    }
    text.push_str("\nArguments, as JSON Schema: ");
    text.push_str(&schema);
    text
}
