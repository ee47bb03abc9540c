//! Tools: ours behind the client's, and the client's cut down to some.

use plimsoll_core::lazy_tools::ToolDefinition;

use super::{Edits, Rewrite, RewriteError};
use crate::Wire;
use crate::document::{Document, Value, quoted};
use crate::request::{SCHEMAS, one_tool};

/// The depth up to which a schema may nest (chosen).
const MOST_DEPTH: usize = 64;

fn check(tool: &ToolDefinition) -> Result<(), RewriteError> {
    let schema = Document::scan(tool.schema.as_str().into(), MOST_DEPTH);
    if schema.is_ok_and(|schema| schema.root().is_object()) {
        return Ok(());
    }
    Err(RewriteError::NoPlace { what: "a tool whose schema is no object" })
}

/// Writes a tool as its wire has it.
fn written(tool: &ToolDefinition, wire: Wire) -> Result<String, RewriteError> {
    check(tool)?;
    let (name, description) = (quoted(&tool.name), quoted(&tool.description));
    let rest = format!(r#""name":{name},"description":{description}"#);
    let schema = &tool.schema;
    Ok(match wire {
        Wire::AnthropicMessages => format!(r#"{{{rest},"input_schema":{schema}}}"#),
        Wire::ChatCompletions => {
            format!(r#"{{"type":"function","function":{{{rest},"parameters":{schema}}}}}"#)
        }
        Wire::Responses => {
            format!(r#"{{"type":"function",{rest},"strict":false,"parameters":{schema}}}"#)
        }
        Wire::Gemini => format!(r#"{{{rest},"parameters":{schema}}}"#),
    })
}

impl<'a> Rewrite<'a> {
    /// Adds tools, and outlines those of the client.
    pub(super) fn offer_tools(&mut self, edits: &Edits) -> Result<(), RewriteError> {
        self.put_outlines(&edits.outline_tools)?;
        let offered = self.request.tools();
        for tool in &edits.add_tools {
            if offered.iter().any(|one| one.name == tool.name) {
                return Err(RewriteError::ToolExists { name: tool.name.clone() });
            }
        }
        let wire = self.request.wire();
        let tools: Vec<String> =
            edits.add_tools.iter().map(|tool| written(tool, wire)).collect::<Result<_, _>>()?;
        if tools.is_empty() {
            return Ok(());
        }
        // The last list is where the client's are: Codex puts them among the messages.
        match self.lists().last() {
            Some(list) => {
                for tool in tools {
                    self.patch.push(*list, tool);
                }
            }
            None if wire == Wire::Gemini => {
                let group = format!(r#"{{"functionDeclarations":[{}]}}"#, tools.join(","));
                match self.request.root().get("tools") {
                    Some(groups) if groups.is_list() => self.patch.push(groups, group),
                    _ => self.patch.set(self.request.root(), "tools", format!("[{group}]")),
                }
            }
            None => self.patch.set(self.request.root(), "tools", format!("[{}]", tools.join(","))),
        }
        Ok(())
    }

    /// Puts another description and schema into tools of the client.
    fn put_outlines(&mut self, outlines: &[ToolDefinition]) -> Result<(), RewriteError> {
        for outline in outlines {
            check(outline)?;
        }
        let request = self.request;
        for tool in request.declarations() {
            let named = one_tool(tool).name;
            let Some(outline) = outlines.iter().find(|outline| *outline.name == *named) else {
                continue;
            };
            let inner = tool.object_at("function").unwrap_or(tool);
            self.patch.set(inner, "description", quoted(&outline.description));
            for key in SCHEMAS {
                if inner.get(key).is_none() {
                    continue;
                }
                if key == "parameters" && request.wire() == Wire::Gemini {
                    // Its own kind of schema knows no open object.
                    self.patch.remove_field(inner, key);
                    self.patch.set(inner, "parametersJsonSchema", outline.schema.clone());
                } else {
                    self.patch.set(inner, key, outline.schema.clone());
                }
            }
            // Examples of arguments would tell what the schema does not.
            if tool.get("input_examples").is_some() {
                self.patch.remove_field(tool, "input_examples");
            }
        }
        Ok(())
    }

    /// Returns the lists of tools: Gemini's are inside of groups.
    fn lists(&self) -> Vec<Value<'a>> {
        let lists = self.request.tool_lists();
        if self.request.wire() != Wire::Gemini {
            return lists;
        }
        let groups = lists.into_iter().flat_map(Value::elements);
        let members = ["functionDeclarations", "function_declarations"];
        groups.filter_map(|group| group.any(&members)).filter(|list| list.is_list()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_DEPTH, ProviderRequest};

    fn outlined(wire: Wire, body: &str) -> String {
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH);
        let outline = ToolDefinition {
            name: "a".to_owned(),
            description: "short".to_owned(),
            schema: "{}".to_owned(),
        };
        let edits = Edits { outline_tools: vec![outline], ..Edits::default() };
        let body = request.expect("a request").rewrite(&edits).expect("it is written");
        String::from_utf8(body).expect("text")
    }

    #[test]
    fn an_outline_changes_what_is_told_of_a_tool_and_nothing_else() {
        let cases = [
            (
                Wire::AnthropicMessages,
                r#"{"messages":[],"tools":[{"name":"b","input_schema":{"type":"object"}}, {"name":"a","description":"long","input_schema":{"type":"object"},"input_examples":[{}],"cache_control":{"type":"ephemeral"}}]}"#,
                r#"{"messages":[],"tools":[{"name":"b","input_schema":{"type":"object"}}, {"name":"a","description":"short","input_schema":{},"cache_control":{"type":"ephemeral"}}]}"#,
            ),
            (
                Wire::ChatCompletions,
                r#"{"messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":{"x":1},"strict":false}}]}"#,
                r#"{"messages":[],"tools":[{"type":"function","function":{"name":"a","parameters":{},"strict":false,"description":"short"}}]}"#,
            ),
            (
                Wire::Responses,
                r#"{"input":"x","tools":[{"type":"namespace","tools":[{"type":"function","name":"a","parameters":{"x":1},"description":""}]}]}"#,
                r#"{"input":"x","tools":[{"type":"namespace","tools":[{"type":"function","name":"a","parameters":{},"description":"short"}]}]}"#,
            ),
            (
                Wire::Gemini,
                r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"a","description":"long","parameters":{"type":"OBJECT"}},{"name":"b"}]}]}"#,
                r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"a","description":"short","parametersJsonSchema":{}},{"name":"b"}]}]}"#,
            ),
            (
                Wire::Gemini,
                r#"{"contents":[],"tools":[{"function_declarations":[{"parameters_json_schema":{"x":1},"name":"a"}]}]}"#,
                r#"{"contents":[],"tools":[{"function_declarations":[{"parameters_json_schema":{},"name":"a","description":"short"}]}]}"#,
            ),
        ];
        for (wire, body, expected) in cases {
            assert_eq!(outlined(wire, body), expected, "{wire}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let body = br#"{"messages":[],"tools":[{"name":"a","input_schema":{}}]}"#;
        let request = ProviderRequest::parse(Wire::AnthropicMessages, body, "", DEFAULT_DEPTH);
        let outline = ToolDefinition {
            name: "a".to_owned(),
            description: String::new(),
            schema: "[]".to_owned(),
        };
        let edits = Edits { outline_tools: vec![outline], ..Edits::default() };
        let refused = request.expect("a request").rewrite(&edits);
        assert!(matches!(refused, Err(RewriteError::NoPlace { .. })));
    }
}
