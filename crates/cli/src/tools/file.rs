//! Definitions of tools as others write them: of three providers' requests, and of MCP.

use std::path::Path;

use plimsoll_core::lazy_tools::ToolDefinition;
use serde_json::Value;

use crate::error::CommandError;

/// Reads a list of definitions, or an object with one under `tools`.
pub(super) fn read(path: &Path) -> Result<Vec<ToolDefinition>, CommandError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(anyhow::Error::new(error).context(format!("cannot read {shown}")))
    })?;
    let document: Value = serde_json::from_str(&text).map_err(|error| {
        CommandError::usage(anyhow::Error::new(error).context(format!("{shown} is no JSON")))
    })?;
    // An answer of `tools/list` has the list in its result.
    let list = document.get("result").unwrap_or(&document);
    let list = list.get("tools").unwrap_or(list).as_array().ok_or_else(|| {
        CommandError::usage(anyhow::anyhow!("{shown} has no list of tools"))
            .hint("give a list of definitions, or an object with `tools`")
    })?;
    let mut tools = Vec::new();
    for (at, item) in list.iter().enumerate() {
        tools.push(definition(item).ok_or_else(|| {
            CommandError::usage(anyhow::anyhow!("{shown}: tool {at} has no name or no schema"))
        })?);
    }
    Ok(tools)
}

fn definition(item: &Value) -> Option<ToolDefinition> {
    let item = item.get("function").unwrap_or(item);
    let schema =
        ["input_schema", "inputSchema", "parameters"].iter().find_map(|key| item.get(key))?;
    let name = item.get("name")?.as_str()?.trim();
    let description = item.get("description").and_then(Value::as_str).unwrap_or_default();
    (!name.is_empty() && schema.is_object()).then(|| ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: schema.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_gives_the_same_definition() {
        let schema = serde_json::json!({"type": "object"});
        let forms = [
            serde_json::json!({"name": "a", "description": "b", "input_schema": schema}),
            serde_json::json!({"name": "a", "description": "b", "inputSchema": schema}),
            serde_json::json!({"type": "function", "name": "a", "description": "b", "parameters": schema}),
            serde_json::json!({"type": "function", "function": {"name": "a", "description": "b", "parameters": schema}}),
        ];
        let first = definition(&forms[0]).expect("a definition");
        assert_eq!((&*first.name, &*first.schema), ("a", r#"{"type":"object"}"#));
        for form in &forms {
            assert_eq!(definition(form).as_ref(), Some(&first), "{form}");
        }
        for broken in [
            serde_json::json!({"name": "a"}),
            serde_json::json!({"name": "", "parameters": {}}),
            serde_json::json!({"parameters": {}}),
            serde_json::json!({"name": "a", "parameters": []}),
            serde_json::json!("a"),
        ] {
            assert_eq!(definition(&broken), None, "{broken}");
        }
    }
}
