//! `OpenAI` Responses.

use std::collections::HashMap;

use super::tree::Tree;
use super::{At, Violations};

pub(super) fn check(root: &Tree<'_>, report: &mut Violations) {
    let input = root.at("input");
    let fits = input.is_text() || input.is_list();
    let held = ["previous_response_id", "conversation", "prompt"];
    let is_held = held.iter().any(|key| root.has(key));
    report.require(fits || is_held, "input", "it is a string or a list");
    let further = input.list().iter().filter(|item| item.kind() == "additional_tools");
    let lists = [root.at("tools")].into_iter().chain(further.map(|item| item.at("tools")));
    let named: Vec<&Tree<'_>> = lists
        .flat_map(Tree::list)
        .filter(|tool| matches!(tool.kind(), "function" | "custom"))
        .collect();
    report.names(named.iter().map(|tool| tool.at("name").text()));
    for (index, item) in input.list().iter().enumerate() {
        one_item(item, index, report);
        if item.kind() == "reasoning" {
            let next = input.list().get(index + 1);
            let fits = next.is_some_and(is_models);
            report.require(fits, At("input", index), "reasoning is followed by what it led to");
        }
    }
    let refers = input.list().iter().any(|item| item.kind() == "item_reference");
    if !is_held && !refers {
        pairs(input.list(), report);
    }
}

/// Returns whether an item is a part of a model's answer.
fn is_models(item: &Tree<'_>) -> bool {
    match item.kind() {
        "" | "message" => item.at("role").text() == "assistant",
        "additional_tools" => false,
        kind => !kind.ends_with("_output"),
    }
}

fn one_item(item: &Tree<'_>, index: usize, report: &mut Violations) {
    let place = At("input", index);
    match item.kind() {
        "" | "message" => {
            let role = item.at("role").text();
            let known = matches!(role, "user" | "assistant" | "system" | "developer");
            report.require(known, place, "its role is known");
            let content = item.at("content");
            report.require(content.is_text() || content.is_list(), place, "it has content");
            for part in content.list() {
                let models = matches!(part.kind(), "output_text" | "refusal");
                let fits = if role == "assistant" { models } else { !models };
                report.require(fits, place, "parts fit their role");
                let told = !matches!(part.kind(), "input_text" | "output_text")
                    || part.at("text").is_text();
                report.require(told, place, "a text has its text");
            }
        }
        "function_call" => {
            report.require(!item.at("name").text().is_empty(), place, "a call names its tool");
            report.require(item.at("arguments").is_text(), place, "arguments are a string");
        }
        "custom_tool_call" => {
            report.require(!item.at("name").text().is_empty(), place, "a call names its tool");
            report.require(item.at("input").is_text(), place, "the input is a string");
        }
        kind if kind.ends_with("_call_output") => {
            let output = item.at("output");
            let fits = output.is_text() || output.is_list() || output.is_object();
            report.require(fits, place, "a result has its output");
        }
        _ => {}
    }
}

/// Calls and results are paired by call id, the call first. Custom tools answer for themselves; other results answer any call.
fn pairs(items: &[Tree<'_>], report: &mut Violations) {
    let mut open: HashMap<&str, (&str, usize)> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let (kind, id) = (item.kind(), item.at("call_id").text());
        if kind.ends_with("_call_output") {
            let custom = "custom_tool_call";
            let fits = open
                .remove(id)
                .is_some_and(|(asked, _)| (asked == custom) == (kind == "custom_tool_call_output"));
            report.require(fits, At("input", index), "a result answers a call of its kind, once");
        } else if kind == "function_call" || kind.ends_with("_call") && !id.is_empty() {
            report.require(!id.is_empty(), At("input", index), "a call has an id");
            let before = open.insert(id, (kind, index));
            report.require(before.is_none(), At("input", index), "ids of calls differ");
        }
    }
    let mut open: Vec<usize> = open.into_values().map(|(_, index)| index).collect();
    open.sort_unstable();
    for index in open {
        report.add(At("input", index), "every call is answered");
    }
}
