//! Context editing by the provider: cleared content is not billed, and the cache breaks from there on.
//!
//! `clear_tool_uses_20250919` clears the results beyond the newest `keep` once the request is over its trigger;
//! `clear_thinking_20251015` keeps the thinking of the newest turns. Both look at what was sent, each time anew, so bound
//! thinking does not notice. Source: Anthropic's page on context editing.

use std::collections::HashMap;

use serde_json::{Value, json};

/// The beta that admits context editing.
pub const EDITING_BETA: &str = "context-management-2025-06-27";
/// The beta of server-side compaction, which admits it too.
const COMPACTION_BETA: &str = "compact-2026-01-12";
/// Default (the same page).
const TRIGGER: u64 = 100_000;
/// Tool uses that stay by default (the same page).
const KEEP: u64 = 3;
/// Stands in the place of a result. Chosen: the provider does not show its own words.
const CLEARED: &str = "[cleared]";

/// Applies the edits that a request asks for and returns those that changed something; `None` if it asks for none.
///
/// Errors: what a provider would say.
pub(crate) fn edit(
    body: &mut Value,
    betas: &[&str],
    size: impl Fn(&Value) -> u64,
) -> Result<Option<Vec<Value>>, String> {
    let asked = body["context_management"].clone();
    if asked.is_null() {
        return Ok(None);
    }
    if !betas.iter().any(|beta| [EDITING_BETA, COMPACTION_BETA].contains(beta)) {
        return Err("context_management: Extra inputs are not permitted".to_owned());
    }
    let mut applied = Vec::new();
    for (at, edit) in asked["edits"].as_array().into_iter().flatten().enumerate() {
        let done = match edit["type"].as_str() {
            Some("clear_tool_uses_20250919") => clear_tool_uses(body, edit, &size),
            Some("clear_thinking_20251015") if at > 0 => {
                return Err(
                    "context_management.edits: `clear_thinking_20251015` must come first".into()
                );
            }
            Some("clear_thinking_20251015") => clear_thinking(body, edit, &size),
            // This provider never compacts by itself.
            Some("compact_20260112") if betas.contains(&COMPACTION_BETA) => None,
            _ => return Err(format!("context_management.edits.{at}: unknown edit")),
        };
        applied.extend(done);
    }
    Ok(Some(applied))
}

fn clear_tool_uses(body: &mut Value, edit: &Value, size: impl Fn(&Value) -> u64) -> Option<Value> {
    let before = size(body);
    let mut tools = HashMap::new();
    let mut results = Vec::new();
    for (index, message) in body["messages"].as_array()?.iter().enumerate() {
        for (at, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            match block["type"].as_str() {
                Some("tool_use") => {
                    tools.insert(
                        block["id"].as_str()?.to_owned(),
                        (index, at, block["name"].clone()),
                    );
                }
                Some("tool_result") => {
                    results.push((index, at, block["tool_use_id"].as_str()?.to_owned()));
                }
                _ => {}
            }
        }
    }
    let trigger = &edit["trigger"];
    let value = trigger["value"].as_u64();
    let is_over = match trigger["type"].as_str() {
        Some("tool_uses") => tools.len() as u64 > value.unwrap_or(0),
        _ => before > value.unwrap_or(TRIGGER),
    };
    let keep = edit["keep"]["value"].as_u64().unwrap_or(KEEP) as usize;
    if !is_over || results.len() <= keep {
        return None;
    }
    results.truncate(results.len() - keep);
    let listed = |list: &Value, name: &Value| list.as_array().is_some_and(|all| all.contains(name));
    let original = body["messages"].clone();
    let mut count = 0;
    for (index, at, id) in results {
        let Some((call, call_at, name)) = tools.get(&id) else { continue };
        if listed(&edit["exclude_tools"], name) {
            continue;
        }
        count += 1;
        body["messages"][index]["content"][at]["content"] = json!(CLEARED);
        let inputs = &edit["clear_tool_inputs"];
        if *inputs == json!(true) || listed(inputs, name) {
            body["messages"][*call]["content"][*call_at]["input"] = json!({});
        }
    }
    let cleared = before.saturating_sub(size(body));
    if count == 0 || cleared < edit["clear_at_least"]["value"].as_u64().unwrap_or(0) {
        body["messages"] = original;
        return None;
    }
    Some(json!({"type": edit["type"], "cleared_tool_uses": count, "cleared_input_tokens": cleared}))
}

fn clear_thinking(body: &mut Value, edit: &Value, size: impl Fn(&Value) -> u64) -> Option<Value> {
    let keep = &edit["keep"];
    if keep == "all" || keep["type"] == "all" {
        return None;
    }
    let before = size(body);
    // One turn is the default (the same page).
    let mut keep = keep["value"].as_u64().unwrap_or(1);
    let mut cleared = 0;
    for message in body["messages"].as_array_mut()?.iter_mut().rev() {
        let Some(blocks) = message["content"].as_array_mut() else { continue };
        let thinks =
            |block: &Value| block["type"].as_str().is_some_and(|it| it.ends_with("thinking"));
        if !blocks.iter().any(thinks) {
            continue;
        }
        if keep > 0 {
            keep -= 1;
        } else if blocks.iter().any(|block| !thinks(block)) {
            blocks.retain(|block| !thinks(block));
            cleared += 1;
        }
    }
    let tokens = before.saturating_sub(size(body));
    (cleared > 0).then(|| {
        json!({"type": edit["type"], "cleared_thinking_turns": cleared, "cleared_input_tokens": tokens})
    })
}
