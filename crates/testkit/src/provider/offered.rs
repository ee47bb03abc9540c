//! The tools that a request offers, whatever its wire, and the arguments that fit their schemas.

use plimsoll_core::lazy_tools::OUTLINE_HINT;
use plimsoll_wire::Wire;
use serde_json::{Map, Value, json};

/// A tool that the client offers.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// Responses: the group that the tool is a member of.
    pub(crate) namespace: Option<String>,
    pub(crate) kind: ToolForm,
    /// Whether what it takes is told by `describe_tool` only, and nobody has asked yet.
    pub(crate) is_outline: bool,
    schema: Value,
}

/// How a call of the tool is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolForm {
    Function,
    /// Responses: the input is free text.
    Custom,
    /// Responses: the provider's own shell.
    LocalShell,
}

/// Returns the tools that `body` offers, in its order.
pub(crate) fn offered(wire: Wire, body: &Value) -> Vec<OfferedTool> {
    let mut found = Vec::new();
    let mut lists = vec![&body["tools"]];
    if wire == Wire::Responses {
        // Codex names its tools in the first item of its input.
        let items = body["input"].as_array().into_iter().flatten();
        lists.extend(
            items.filter(|item| item["type"] == "additional_tools").map(|item| &item["tools"]),
        );
    }
    for tool in lists.into_iter().filter_map(Value::as_array).flatten() {
        match wire {
            Wire::AnthropicMessages => function(&mut found, tool, "input_schema"),
            Wire::ChatCompletions => function(&mut found, &tool["function"], "parameters"),
            Wire::Responses => of_responses(&mut found, tool),
            Wire::Gemini => {
                for declared in tool["functionDeclarations"].as_array().into_iter().flatten() {
                    let schemas = ["parametersJsonSchema", "parameters"];
                    let key = schemas.into_iter().find(|key| !declared[*key].is_null());
                    function(&mut found, declared, key.unwrap_or("parameters"));
                }
            }
        }
    }
    if found.iter().any(|tool| tool.is_outline) {
        texts(body, &mut |text| {
            found.iter_mut().filter(|tool| tool.is_outline).for_each(|tool| tool.learn(text));
        });
    }
    found
}

/// Hands on every text that stands in a body.
fn texts(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, each)),
        _ => {}
    }
}

fn of_responses(found: &mut Vec<OfferedTool>, tool: &Value) {
    let of_kind = |kind: ToolForm, name: &str| OfferedTool {
        name: name.to_owned(),
        namespace: None,
        kind,
        is_outline: false,
        schema: Value::Null,
    };
    match tool["type"].as_str() {
        Some("namespace") => {
            let begin = found.len();
            tool["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .for_each(|tool| of_responses(found, tool));
            let namespace = tool["name"].as_str();
            for member in &mut found[begin..] {
                member.namespace = namespace.map(str::to_owned);
            }
        }
        Some("custom") => {
            found.push(of_kind(ToolForm::Custom, tool["name"].as_str().unwrap_or_default()));
        }
        Some("local_shell") => found.push(of_kind(ToolForm::LocalShell, "local_shell")),
        Some("function") => function(found, tool, "parameters"),
        // Tools that run at the provider: this one has none of them.
        _ => {}
    }
}

fn function(found: &mut Vec<OfferedTool>, tool: &Value, schema: &str) {
    if let (Some(name), Value::Object(_)) = (tool["name"].as_str(), &tool[schema]) {
        found.push(OfferedTool {
            name: name.to_owned(),
            namespace: None,
            kind: ToolForm::Function,
            is_outline: tool["description"].as_str().is_some_and(|it| it.ends_with(OUTLINE_HINT)),
            schema: tool[schema].clone(),
        });
    }
}

impl OfferedTool {
    /// Finds the first of `names` that is offered, in any spelling of upper and lower case; not among those of servers.
    pub(crate) fn find<'a>(all: &'a [Self], names: &[&str]) -> Option<&'a Self> {
        let is_own =
            |tool: &&Self| !tool.namespace.as_ref().is_some_and(|it| it.starts_with("mcp__"));
        let find = |name: &str| {
            all.iter().filter(is_own).find(|tool| tool.name.eq_ignore_ascii_case(name))
        };
        names.iter().find_map(|name| find(name))
    }

    /// Finds a tool of a server by its own name: clients put the server's before it.
    pub(crate) fn ending<'a>(all: &'a [Self], name: &str) -> Option<&'a Self> {
        let is_it = |tool: &&Self| {
            tool.name.strip_suffix(name).is_some_and(|head| head.is_empty() || head.ends_with('_'))
        };
        all.iter().find(is_it)
    }

    /// Learns what an outline takes, if a text is what `describe_tool` answers about it.
    fn learn(&mut self, text: &str) {
        let Some(rest) = text.strip_prefix(&*self.name) else { return };
        let Some((before, schema)) = rest.split_once("\nArguments, as JSON Schema: ") else {
            return;
        };
        if (before.is_empty() || before.starts_with(": "))
            && let Ok(schema) = serde_json::from_str(schema)
        {
            self.schema = schema;
            self.is_outline = false;
        }
    }

    /// Whether the schema knows an argument.
    pub(crate) fn takes(&self, argument: &str) -> bool {
        !self.schema["properties"][argument].is_null()
    }

    /// Returns the properties of one item of a list argument.
    pub(crate) fn item_takes(&self, list: &str, argument: &str) -> bool {
        !self.schema["properties"][list]["items"]["properties"][argument].is_null()
    }

    /// Writes arguments: each value under the first of its names that the schema knows, and something of the right type
    /// for whatever else is required.
    pub(crate) fn arguments(&self, wanted: &[(&[&str], Value)]) -> Value {
        let mut arguments = Map::new();
        for (names, value) in wanted {
            if let Some(name) = names.iter().find(|name| self.takes(name)) {
                let is_list = self.schema["properties"][*name]["type"] == "array";
                let value = match value.as_str() {
                    Some(command) if is_list => json!(["bash", "-lc", command]),
                    _ => value.clone(),
                };
                arguments.insert((*name).to_owned(), value);
            }
        }
        let required = self.schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !arguments.contains_key(name) {
                arguments.insert(name.to_owned(), anything(&self.schema["properties"][name]));
            }
        }
        Value::Object(arguments)
    }
}

/// Returns a value that `schema` allows.
fn anything(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    // Gemini writes the names of types in capitals.
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "boolean" => json!(false),
        "integer" | "number" => json!(1),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("scripted"),
    }
}
