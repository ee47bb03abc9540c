//! Tools that may wait: functions with a schema that nobody but the model reads.

use std::borrow::Cow;

use plimsoll_core::lazy_tools::ToolDefinition;

use super::{ProviderRequest, one_tool};
use crate::Wire;
use crate::document::Value;

/// The fields in which a declaration of a function has its schema.
pub(crate) const SCHEMAS: [&str; 4] =
    ["input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema"];

impl ProviderRequest {
    /// Returns the tools whose schema the model may be told later, as core knows them.
    ///
    /// Not among them: tools of the provider's own, custom ones, those whose arguments the provider itself holds to their schema or
    /// hands to its own code, those that share a name, and the one that must be called now. None where the client leaves the search for tools to the
    /// provider: what waits there, waits already.
    pub fn lazy_tools(&self) -> Vec<ToolDefinition> {
        let all: Vec<Value<'_>> = self.declarations().collect();
        let searches = |tool: &Value<'_>| {
            tool.is_true_at("defer_loading")
                || tool
                    .get("type")
                    .and_then(Value::text)
                    .is_some_and(|kind| kind.starts_with("tool_search"))
        };
        if all.iter().any(searches) {
            return Vec::new();
        }
        let forced = self.forced_tool();
        let function = |tool: &Value<'_>| {
            let inner = tool.object_at("function").unwrap_or(*tool);
            let schema = inner.any(&SCHEMAS).filter(|schema| schema.is_object())?;
            let name = one_tool(*tool).name.into_owned();
            if !self.may_wait(*tool, inner) || forced.as_deref() == Some(&*name) {
                return None;
            }
            let description = inner.text_at("description");
            Some(ToolDefinition {
                name,
                description: description.into_owned(),
                schema: schema.raw().to_owned(),
            })
        };
        let mut names: Vec<_> = all.iter().map(|tool| one_tool(*tool).name).collect();
        names.sort_unstable();
        // Groups may have members of the same name, and `describe_tool` knows names only.
        let is_shared = |name: &str| {
            let begin = names.partition_point(|known| &**known < name);
            names.get(begin + 1).is_some_and(|next| &**next == name)
        };
        all.iter().filter_map(function).filter(|tool| !is_shared(&tool.name)).collect()
    }

    /// Returns every declaration, members of groups one by one.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Value<'_>> {
        let groups = ["tools", "functionDeclarations", "function_declarations"];
        let lists = self.tool_lists().into_iter().flat_map(Value::elements);
        lists.flat_map(move |tool| match tool.any(&groups).filter(|members| members.is_list()) {
            Some(members) => members.elements().collect(),
            None => vec![tool],
        })
    }

    fn may_wait(&self, tool: Value<'_>, inner: Value<'_>) -> bool {
        let kind = tool.get("type").and_then(Value::text);
        let is_function = kind.is_none_or(|kind| ["function", "custom"].contains(&&*kind));
        let strict = inner.get("strict");
        let is_held = match self.wire {
            // It is strict there unless it says that it is not.
            Wire::Responses => strict.is_none_or(|strict| strict.raw() != "false"),
            _ => strict.is_some_and(Value::is_true),
        };
        is_function && !is_held && tool.any(&["allowed_callers"]).is_none()
    }

    /// Returns the tool that the client wants to be called.
    fn forced_tool(&self) -> Option<Cow<'_, str>> {
        let root = self.root();
        if self.wire == Wire::Gemini {
            let config = root.any(&["toolConfig", "tool_config"])?;
            let config = config.any(&["functionCallingConfig", "function_calling_config"])?;
            let names = config.any(&["allowedFunctionNames", "allowed_function_names"])?;
            return names.elements().next()?.text();
        }
        let choice = root.get("tool_choice")?;
        choice.get("function").unwrap_or(choice).get("name")?.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_DEPTH;

    fn names(wire: Wire, body: &str) -> Vec<String> {
        let request = ProviderRequest::parse(wire, body.as_bytes(), "", DEFAULT_DEPTH);
        let tools = request.expect("a request").lazy_tools();
        assert!(tools.iter().all(|tool| tool.schema.starts_with('{')));
        tools.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn only_what_nobody_else_reads_may_wait() {
        let claude = |tools: &str, more: &str| {
            let body = format!(r#"{{"messages":[],"tools":[{tools}]{more}}}"#);
            names(Wire::AnthropicMessages, &body)
        };
        let plain = r#"{"name":"a","description":"d","input_schema":{"type":"object"}}"#;
        let others = r#"{"type":"web_search_20250305","name":"web_search"},{"name":"b","strict":true,"input_schema":{}},{"name":"c","allowed_callers":["x"],"input_schema":{}},{"type":"custom","name":"e","input_schema":{}}"#;
        assert_eq!(claude(&format!("{plain},{others}"), ""), ["a", "e"]);
        let forced = r#","tool_choice":{"type":"tool","name":"a"}"#;
        assert_eq!(claude(&format!("{plain},{others}"), forced), ["e"]);
        let deferred = r#"{"name":"z","defer_loading":true,"input_schema":{}}"#;
        assert!(claude(&format!("{plain},{deferred}"), "").is_empty());

        let chat = |more: &str| {
            let tool = |name: &str, strict: &str| {
                format!(
                    r#"{{"type":"function","function":{{"name":"{name}"{strict},"parameters":{{}}}}}}"#
                )
            };
            let strict = tool("s", r#","strict":true"#);
            let custom = r#"{"type":"custom","custom":{"name":"c"}}"#;
            let body =
                format!(r#"{{"messages":[],"tools":[{},{strict},{custom}]{more}}}"#, tool("a", ""));
            names(Wire::ChatCompletions, &body)
        };
        assert_eq!(chat(""), ["a"]);
        let forced = r#","tool_choice":{"type":"function","function":{"name":"a"}}"#;
        assert!(chat(forced).is_empty());

        let responses = r#"{"input":"x","tools":[{"type":"function","name":"a","strict":false,"parameters":{}},{"type":"function","name":"s","parameters":{}},{"type":"local_shell"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"m","strict":false,"parameters":{}}]}]}"#;
        assert_eq!(names(Wire::Responses, responses), ["a", "m"]);
        let alike = responses.replace(r#""name":"a""#, r#""name":"m""#);
        assert!(names(Wire::Responses, &alike).is_empty(), "two tools of one name");
        let gemini = r#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"a","parameters":{}},{"name":"b","parametersJsonSchema":{}},{"name":"n"}]},{"googleSearch":{}}]}"#;
        assert_eq!(names(Wire::Gemini, gemini), ["a", "b"]);
    }
}
