//! The definitions of the eight tools.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

/// Name, description, JSON Schema of the arguments, and whether the tool changes nothing.
pub(super) const TOOLS: [(&str, &str, &str, bool); 8] = [
    (
        "recall",
        "Returns what earlier sessions and memory know about a question: records first, then the messages that answer it, each with its ref.",
        r#"{"type":"object","properties":{"query":{"type":"string","description":"The question, in words"},"session":{"type":"string","description":"Only this session"},"from":{"type":"integer","minimum":0,"description":"Entries to pass over, to read on"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["query"]}"#,
        true,
    ),
    (
        "remember",
        "Stores one fact, decision, task, procedure, episode or other record for later sessions. One sentence that can be read alone.",
        r#"{"type":"object","properties":{"text":{"type":"string","description":"One sentence"},"kind":{"type":"string","enum":["decision","entity","task","metric","link","fact","procedure","episode","censor"],"description":"`fact` by default"},"name":{"type":"string","description":"The name of a procedure, or the pattern of a censor"},"points":{"type":"array","items":{"type":"string"},"description":"Reasons of a decision, or steps of a procedure"},"tags":{"type":"array","items":{"type":"string"}},"source":{"type":"string","description":"The ref of the text that says so"}},"required":["text"]}"#,
        false,
    ),
    (
        "forget",
        "Removes a memory record for good. `recall` shows the ids.",
        r#"{"type":"object","properties":{"id":{"type":"string","description":"The id of the record"}},"required":["id"]}"#,
        false,
    ),
    (
        "search_context",
        "Searches the stored messages by words and returns the best lines with the refs of their messages.",
        r#"{"type":"object","properties":{"query":{"type":"string","description":"Words to look for"},"session":{"type":"string","description":"Only this session"},"from":{"type":"integer","minimum":0,"description":"Entries to pass over, to read on"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["query"]}"#,
        true,
    ),
    (
        "expand_ref",
        "Returns the original behind a ref such as ref:message:0123456789abcdef: whole, from an offset, only some lines, or only lines that hold a text.",
        r#"{"type":"object","properties":{"ref":{"type":"string","description":"The ref as it is shown"},"lines":{"type":"string","description":"FIRST-LAST, counted from 1"},"search":{"type":"string","description":"Only lines that hold this text"},"offset":{"type":"integer","minimum":0,"description":"Characters to pass over"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["ref"]}"#,
        true,
    ),
    (
        "context_pressure",
        "Shows how full a session makes a context window.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"window":{"type":"integer","minimum":1,"description":"The window in tokens"}},"required":["session"]}"#,
        true,
    ),
    (
        "explain_turn",
        "Returns the receipt of a turn: what was sent, what was shortened, why, and what it cost. Without a turn, the last one.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"turn":{"type":"integer","minimum":0,"description":"Counted from 0"},"offset":{"type":"integer","minimum":0,"description":"Characters to pass over"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}},"required":["session"]}"#,
        true,
    ),
    (
        "timeline",
        "Lists the sessions of the store, or with a session its messages in order, each on a line with its ref.",
        r#"{"type":"object","properties":{"session":{"type":"string"},"from":{"type":"integer","minimum":0,"description":"The first message or session, counted from 0"},"budget":{"type":"integer","minimum":100,"maximum":20000,"description":"Tokens of the result; 4000 by default"}}}"#,
        true,
    ),
];

/// Returns all tools.
pub(crate) fn all() -> Vec<Tool> {
    let tool = |(name, about, schema, reads): (&'static str, &'static str, &str, bool)| {
        let schema: JsonObject = serde_json::from_str(schema).unwrap_or_default();
        let annotations = ToolAnnotations::new().read_only(reads).destructive(name == "forget");
        Tool::new(name, about, Arc::new(schema)).with_annotations(annotations.open_world(false))
    };
    TOOLS.into_iter().map(tool).collect()
}
