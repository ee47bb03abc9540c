//! Tools: ours behind the client's, and the client's cut down to some.

use super::{Edits, Rewrite, RewriteError};
use crate::provider::Wire;
use crate::provider::document::{Document, Value, quoted};

/// A tool that is offered beside the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// A JSON Schema of an object.
    pub parameters: String,
}

impl ToolDefinition {
    fn written(&self, wire: Wire) -> Result<String, RewriteError> {
        let schema = Document::scan(self.parameters.as_str().into(), 64);
        if !schema.is_ok_and(|schema| schema.root().is_object()) {
            return Err(RewriteError::NoPlace { what: "a tool whose schema is no object" });
        }
        let (name, description) = (quoted(&self.name), quoted(&self.description));
        let parameters = &self.parameters;
        let rest = format!(r#""name":{name},"description":{description}"#);
        Ok(match wire {
            Wire::AnthropicMessages => format!(r#"{{{rest},"input_schema":{parameters}}}"#),
            Wire::ChatCompletions => {
                format!(r#"{{"type":"function","function":{{{rest},"parameters":{parameters}}}}}"#)
            }
            Wire::Responses => {
                format!(r#"{{"type":"function",{rest},"strict":false,"parameters":{parameters}}}"#)
            }
            Wire::Gemini => format!(r#"{{{rest},"parameters":{parameters}}}"#),
        })
    }
}

impl<'a> Rewrite<'a> {
    /// Takes away and adds tools.
    pub(super) fn offer_tools(&mut self, edits: &Edits) -> Result<(), RewriteError> {
        if let Some(only) = &edits.only_tools {
            for list in self.lists() {
                self.keep_only(list, only);
            }
        }
        let offered = self.request.tools();
        for tool in &edits.add_tools {
            if offered.iter().any(|one| one.name == tool.name) {
                return Err(RewriteError::ToolExists { name: tool.name.clone() });
            }
        }
        let wire = self.request.wire();
        let tools: Vec<String> =
            edits.add_tools.iter().map(|tool| tool.written(wire)).collect::<Result<_, _>>()?;
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

    fn keep_only(&mut self, list: Value<'a>, only: &[String]) {
        let mut before: Option<Value<'a>> = None;
        for (index, tool) in list.elements().enumerate() {
            let mark = tool.get("cache_control");
            let named = super::super::request::one_tool(tool);
            if only.iter().any(|name| *name == named.name) || tool.get("tools").is_some() {
                before = if mark.is_some() { None } else { Some(tool) };
                continue;
            }
            self.patch.remove(list, index);
            if let Some(mark) = mark
                && let Some(bearer) = before.take()
            {
                self.patch.set(bearer, "cache_control", mark.raw().to_owned());
            }
        }
    }
}
