//! The header: rules, tool directory and profile card, the same bytes on every turn.

use super::{RequestInput, ToolIntent};
use crate::policy::RequestSettings;
use crate::text::{Limit, head, one_line, shortened};

/// Characters of a tool's name that are shown; providers allow no longer ones.
const NAME: usize = 128;

/// Returns the header. If it is too long, profile, intents and tools give way in this order, each with a warning.
///
/// The rules stand whole: half a rule may say its opposite.
pub(super) fn header(
    input: &RequestInput<'_>,
    settings: &RequestSettings,
    warnings: &mut Vec<String>,
) -> String {
    let tokenizer = input.tokenizer;
    let profile = head(input.profile.trim(), Limit::Tokens(tokenizer, settings.profile)).trim_end();
    if profile.len() < input.profile.trim().len() {
        warnings.push(format!("profile cut to {} tokens", settings.profile));
    }
    let mut tools: Vec<&ToolIntent> = input.tools.iter().collect();
    tools.sort_by(|a, b| (&a.name, &a.intent).cmp(&(&b.name, &b.intent)));
    tools.dedup_by(|a, b| a.name == b.name);
    let fits = |header: &str| u64::from(tokenizer.count(header)) <= settings.header;

    let whole = written(input.rules, &tools, tools.len(), tools.len(), profile);
    if fits(&whole) {
        return whole;
    }
    let without_profile = written(input.rules, &tools, tools.len(), tools.len(), "");
    if fits(&without_profile) {
        warnings.push("no room in the header for the profile".to_owned());
        return without_profile;
    }
    // Both searches look for the most that fits; each tool more makes the header longer.
    let most = |written: &dyn Fn(usize) -> String| {
        let counts: Vec<usize> = (0..=tools.len()).collect();
        counts.partition_point(|&count| fits(&written(count))).checked_sub(1)
    };
    let intents = |count| written(input.rules, &tools, tools.len(), count, "");
    if let Some(count) = most(&intents) {
        warnings.push(format!(
            "no room in the header for the intents of {} tools",
            tools.len() - count
        ));
        return intents(count);
    }
    let names = |count| written(input.rules, &tools, count, 0, "");
    if let Some(count) = most(&names) {
        warnings.push(format!("no room in the header for {} tools", tools.len() - count));
        return names(count);
    }
    warnings.push(format!("the rules alone exceed the header of {} tokens", settings.header));
    names(0)
}

fn written(
    rules: &str,
    tools: &[&ToolIntent],
    names: usize,
    intents: usize,
    profile: &str,
) -> String {
    let mut header = rules.trim().to_owned();
    if !tools.is_empty() {
        header.push_str("\n\nTools:");
        for (number, tool) in tools.iter().take(names).enumerate() {
            header.push_str("\n- ");
            // Names and intents are data of those who offer the tools: none of them writes a line of its own.
            header.push_str(&shortened(&one_line(&tool.name), NAME));
            let intent = one_line(&tool.intent);
            if number < intents && !intent.is_empty() {
                header.push_str(": ");
                header.push_str(&intent);
            }
        }
        if names < tools.len() {
            header.push_str("\n- and more, by describe_tool");
        }
    }
    if !profile.is_empty() {
        header.push_str("\n\nUser: ");
        header.push_str(profile);
    }
    header
}
