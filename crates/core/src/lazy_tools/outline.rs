//! Outlines: tools in a request's list with a name and one line, and without their arguments.
//!
//! Providers accept only calls of tools in the list, and the list stands first in a cached prefix: a schema that is loaded
//! into it later makes the client pay for the whole conversation again. An outline never changes. The arguments come as the
//! answer of `describe_tool`, behind the cached prefix.

use super::definition::ToolDefinition;
use super::session::{DESCRIBE_TOOL, describe_tool};
use super::{LazySettings, intent, once_each};
use crate::tokens::Tokenizer;

/// The schema of an outline: any arguments. `OpenAI` refuses an object without `properties`.
pub const OPEN_SCHEMA: &str = r#"{"type":"object","properties":{},"additionalProperties":true}"#;

/// The hint at the end of an outline.
pub const OUTLINE_HINT: &str = "(describe_tool first)";

/// Plans the outlines of a list of tools, in the order of their names; none if they save too little.
///
/// Shape: a function of tools and settings alone, so that a session's list keeps its bytes.
pub fn plan_outlines(
    tools: &[ToolDefinition],
    settings: &LazySettings,
    tokenizer: Tokenizer,
) -> Vec<ToolDefinition> {
    let tools = once_each(tools);
    let count = |tool: &ToolDefinition| u64::from(tool.tokens(tokenizer));
    let all: u64 = tools.iter().map(|tool| count(tool)).sum();
    if !settings.enabled || all < settings.least_tokens {
        return Vec::new();
    }
    let outlines = tools.iter().filter(|tool| !settings.always.contains(&tool.name)).map(|tool| {
        let line = intent(tool, settings, tokenizer).intent;
        let space = if line.is_empty() { "" } else { " " };
        let outline = ToolDefinition {
            name: tool.name.clone(),
            description: format!("{line}{space}{OUTLINE_HINT}"),
            schema: OPEN_SCHEMA.to_owned(),
        };
        (tool, outline)
    });
    // Chosen: a question costs a turn, so a tool that is nearly as short stays whole.
    let outlines: Vec<_> =
        outlines.filter(|(tool, outline)| 2 * count(outline) <= count(tool)).collect();
    let saved: u64 = outlines.iter().map(|(tool, outline)| count(tool) - count(outline)).sum();
    let saved = saved.saturating_sub(count(&describe_outlined()));
    if saved == 0 || saved < settings.least_saved {
        return Vec::new();
    }
    outlines.into_iter().map(|(_, outline)| outline).collect()
}

/// Returns the definition of the tool that describes outlined tools.
pub fn describe_outlined() -> ToolDefinition {
    ToolDefinition {
        name: DESCRIBE_TOOL.to_owned(),
        description: format!(
            "Shows the whole description of a tool and the arguments that it takes. Tools that say {OUTLINE_HINT} do not list theirs: call this before the first use of one, and not again once they are known."
        ),
        schema: describe_tool().schema.replace(", as in the directory", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ToolDefinition> {
        let property = r#"{"type":"string","description":"what it is for, at some length, with an example or two"}"#;
        let properties: Vec<String> =
            (0..12).map(|at| format!("\"field_{at}\":{property}")).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        let tool = |name: &str, description: &str, schema: &str| ToolDefinition {
            name: name.into(),
            description: description.into(),
            schema: schema.into(),
        };
        vec![
            tool("write", "Writes a file. It is made where it is not there yet.", &schema),
            tool("now", "Tells the time", r#"{"type":"object","properties":{}}"#),
            tool("read", "", &schema),
        ]
    }

    /// Settings under which a few tools are outlined.
    fn few() -> LazySettings {
        LazySettings { least_saved: 0, ..LazySettings::default() }
    }

    fn names(settings: &LazySettings) -> Vec<String> {
        let outlines = plan_outlines(&tools(), settings, Tokenizer::Estimate);
        outlines.into_iter().map(|outline| outline.name).collect()
    }

    #[test]
    fn large_tools_become_outlines_and_small_ones_stay() {
        let outlines = plan_outlines(&tools(), &few(), Tokenizer::Estimate);
        let lines: Vec<_> =
            outlines.iter().map(|outline| (&*outline.name, &*outline.description)).collect();
        assert_eq!(
            lines,
            [("read", "(describe_tool first)"), ("write", "Writes a file (describe_tool first)")]
        );
        assert!(outlines.iter().all(|outline| outline.schema == OPEN_SCHEMA));
        assert!(outlines[0].takes(r#"{"anything": 1}"#), "any arguments");
        assert!(describe_outlined().takes(r#"{"name": "read"}"#));
    }

    #[test]
    fn every_setting_decides() {
        let base = few();
        assert_eq!(names(&base), ["read", "write"]);
        assert!(names(&LazySettings { enabled: false, ..base.clone() }).is_empty());
        assert!(names(&LazySettings { least_tokens: 10_000, ..base.clone() }).is_empty());
        assert!(names(&LazySettings { least_saved: 12_000, ..base.clone() }).is_empty());
        let always = LazySettings { always: vec!["read".into()], ..base.clone() };
        assert_eq!(names(&always), ["write"]);
        let short = LazySettings { intent_tokens: 0, ..base };
        let outlines = plan_outlines(&tools(), &short, Tokenizer::Estimate);
        assert_eq!(outlines[1].description, "(describe_tool first)");
    }

    #[test]
    fn what_saves_less_than_it_costs_is_not_done() {
        let one = &tools()[..1];
        let settings = LazySettings { least_tokens: 0, ..few() };
        assert_eq!(plan_outlines(one, &settings, Tokenizer::Estimate).len(), 1);
        let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"the path of the file, from the root of the workspace on, with its ending and everything, as short as it can be and still be known"}}}"#;
        let small = ToolDefinition { schema: schema.into(), ..one[0].clone() };
        assert!(plan_outlines(&[small], &settings, Tokenizer::Estimate).is_empty());
    }
}
