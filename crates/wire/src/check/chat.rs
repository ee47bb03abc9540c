//! `OpenAI` Chat Completions.

use super::tree::Tree;
use super::{At, Violations, close_call};

pub(super) fn check(root: &Tree<'_>, report: &mut Violations) {
    let tools = root.at("tools");
    report.require(tools.is_null() || tools.is_list(), "tools", "tools are a list");
    report.names(tools.list().iter().map(|tool| {
        let inner = if tool.has("custom") { "custom" } else { "function" };
        tool.at(inner).at("name").text()
    }));
    let messages = root.at("messages").list();
    report.require(!messages.is_empty(), "messages", "there is a message");
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let place = At("messages", index);
        let role = message.at("role").text();
        if role == "tool" {
            let known = close_call(&mut open, message.at("tool_call_id").text());
            report.require(known, place, "a result answers a call directly before it, once");
        } else {
            report.require(open.is_empty(), place, "every call is answered before anything else");
            open.clear();
        }
        content(message, role, index, report);
        let calls = message.at("tool_calls");
        if calls.is_null() {
            continue;
        }
        report.require(role == "assistant", place, "the model calls");
        report.require(!calls.list().is_empty(), place, "a list of calls is not empty");
        for call in calls.list() {
            let id = call.at("id").text();
            let fresh = !id.is_empty() && !open.contains(&id);
            report.require(fresh, place, "ids of calls differ");
            open.push(id);
            let (name, arguments) = if call.kind() == "custom" {
                (call.at("custom").at("name"), call.at("custom").at("input"))
            } else {
                (call.at("function").at("name"), call.at("function").at("arguments"))
            };
            report.require(!name.text().is_empty(), place, "a call names its tool");
            report.require(arguments.is_text(), place, "arguments are a string");
        }
    }
    report.require(open.is_empty(), "messages", "the last calls are answered");
}

fn content(message: &Tree<'_>, role: &str, index: usize, report: &mut Violations) {
    let place = At("messages", index);
    let roles = ["developer", "system", "user", "assistant", "tool", "function"];
    report.require(roles.contains(&role), place, "its role is known");
    let content = message.at("content");
    match content {
        Tree::Null => {
            let instead = ["tool_calls", "function_call", "refusal", "audio"];
            let says = role == "assistant" && instead.iter().any(|key| message.has(key));
            report.require(says || role == "function", place, "content is null beside calls only");
        }
        Tree::Text(_) => {}
        Tree::List(parts) => {
            report.require(!parts.is_empty(), place, "a list of parts is not empty");
            for part in parts {
                let fits = match part.kind() {
                    "text" => part.at("text").is_text(),
                    "refusal" => part.at("refusal").is_text() && role == "assistant",
                    "" => false,
                    _ => role == "user",
                };
                report.require(fits, place, "a part fits its role and has its text");
            }
        }
        _ => report.add(place, "content is a string or a list"),
    }
}
