//! Anthropic Messages.

use std::collections::HashSet;

use super::marks::MarkCounter;
use super::tree::Tree;
use super::{At, Violations, close_call};

pub(super) fn check(root: &Tree<'_>, report: &mut Violations) {
    let mut marks = MarkCounter::default();
    tools(root, &mut marks, report);
    system(root.at("system"), &mut marks, report);
    let messages = root.at("messages").list();
    report.require(!messages.is_empty(), "messages", "there is a message");
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let is_last = index + 1 == messages.len();
        one_message(message, index, is_last, &mut ids, &mut marks, report);
    }
    // A mark beside the messages stands on their last block.
    marks.see(root, "the body", report);
    marks.end(report);
    let spoken: Vec<(usize, &Tree<'_>)> =
        messages.iter().enumerate().filter(|(_, one)| one.at("role").text() != "system").collect();
    let first = spoken.first().is_none_or(|(_, one)| one.at("role").text() == "user");
    report.require(first, "messages[0]", "the first message is the user's");
    let turns = turns(&spoken);
    pairs(&turns, report);
    thinking_first(root, &turns, report);
}

fn tools(root: &Tree<'_>, marks: &mut MarkCounter, report: &mut Violations) {
    let tools = root.at("tools");
    report.require(tools.is_null() || tools.is_list(), "tools", "tools are a list");
    report.names(
        tools
            .list()
            .iter()
            .map(|tool| match tool.at("name").text() {
                // A server's set of tools is known by its type.
                "" if tool.has("type") => tool.at("mcp_server_name").text(),
                name => name,
            })
            .filter(|name| !name.is_empty()),
    );
    for (index, tool) in tools.list().iter().enumerate() {
        let place = format!("tools[{index}]");
        marks.see(tool, &place, report);
        if matches!(tool.kind(), "" | "custom") {
            let schema = tool.at("input_schema");
            report.require(tool.at("name").is_text(), &place, "a tool has a name");
            report.require(schema.kind() == "object", &place, "a tool's schema is of an object");
        }
    }
    let choice = root.at("tool_choice");
    if choice.kind() == "tool" {
        let name = choice.at("name").text();
        let known = tools.list().iter().any(|tool| tool.at("name").text() == name);
        report.require(known, "tool_choice", "the chosen tool is offered");
    }
}

fn system(system: &Tree<'_>, marks: &mut MarkCounter, report: &mut Violations) {
    let fits = system.is_null() || system.is_text() || system.is_list();
    report.require(fits, "system", "it is a string or a list of texts");
    for (index, block) in system.list().iter().enumerate() {
        let place = format!("system[{index}]");
        report.require(block.kind() == "text", &place, "it is a text");
        said(block, &place, report);
        marks.see(block, &place, report);
    }
}

fn said(block: &Tree<'_>, place: &str, report: &mut Violations) {
    let said = !block.at("text").text().trim().is_empty();
    report.require(said, place, "a text is not empty");
}

fn one_message<'a>(
    message: &'a Tree<'_>,
    index: usize,
    is_last: bool,
    ids: &mut HashSet<&'a str>,
    marks: &mut MarkCounter,
    report: &mut Violations,
) {
    let place = At("messages", index);
    let role = message.at("role").text();
    let known = matches!(role, "user" | "assistant" | "system");
    report.require(known, place, "its role is user, assistant or system");
    let content = message.at("content");
    let open_end = is_last && role == "assistant";
    if content.is_text() {
        let empty = content.text().trim().is_empty();
        report.require(!empty || open_end, place, "a text is not empty");
        trailing(content.text(), open_end, index, report);
        return;
    }
    report.require(content.is_list(), place, "its content is a string or a list");
    report.require(!content.list().is_empty() || open_end, place, "its content is not empty");
    if let Some(last) = content.list().last().filter(|last| last.kind() == "text") {
        trailing(last.at("text").text(), open_end, index, report);
    }
    for (number, block) in content.list().iter().enumerate() {
        let place = format!("messages[{index}].content[{number}]");
        marks.see(block, &place, report);
        one_block(block, role, &place, ids, marks, report);
    }
    if role == "assistant" {
        server_pairs(content.list(), is_last, index, report);
    }
}

fn trailing(text: &str, open_end: bool, index: usize, report: &mut Violations) {
    let fits = !open_end || text.trim_end().len() == text.len();
    report.require(fits, At("messages", index), "a begun answer does not end in white space");
}

fn one_block<'a>(
    block: &'a Tree<'_>,
    role: &str,
    place: &str,
    ids: &mut HashSet<&'a str>,
    marks: &mut MarkCounter,
    report: &mut Violations,
) {
    let at = place;
    match block.kind() {
        "" => report.add(place, "a block has a type"),
        "text" => said(block, place, report),
        "tool_use" => {
            let id = block.at("id").text();
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            report.require(role == "assistant", at, "the model calls");
            report.require(
                !id.is_empty() && id.chars().all(allowed),
                at,
                "an id is [a-zA-Z0-9_-]+",
            );
            report.require(ids.insert(id), at, "ids of calls differ");
            report.require(!block.at("name").text().is_empty(), at, "a call names its tool");
            report.require(block.at("input").is_object(), at, "input is an object");
        }
        "tool_result" => {
            report.require(role == "user", at, "results stand in the user's messages");
            let content = block.at("content");
            let fits = content.is_null() || content.is_text() || content.is_list();
            report.require(fits, at, "a result's content is a string or a list");
            let flag = block.at("is_error");
            report.require(
                flag.is_null() || matches!(flag, Tree::Bool(_)),
                at,
                "is_error is a boolean",
            );
            for (number, part) in content.list().iter().enumerate() {
                let place = format!("{place}.content[{number}]");
                marks.see(part, &place, report);
                match part.kind() {
                    "text" => said(part, &place, report),
                    "image" | "document" | "search_result" | "tool_reference" => {}
                    _ => report.add(place, "a result holds texts, images and documents"),
                }
            }
        }
        "thinking" => {
            report.require(role == "assistant", at, "the model thinks");
            report.require(!block.at("signature").text().is_empty(), at, "thinking is signed");
            report.require(block.at("thinking").is_text(), at, "thinking has a text");
        }
        "redacted_thinking" => {
            report.require(role == "assistant", at, "the model thinks");
            report.require(!block.at("data").text().is_empty(), at, "hidden thinking has its data");
        }
        "image" => {
            report.require(role == "user", at, "images are the user's");
            report.require(block.at("source").is_object(), at, "an image has a source");
        }
        _ => {}
    }
}

/// Checks that a result of the provider's own tools stands behind its call, in the same message.
fn server_pairs(blocks: &[Tree<'_>], is_last: bool, index: usize, report: &mut Violations) {
    let place = At("messages", index);
    let mut open: Vec<&str> = Vec::new();
    for block in blocks {
        match block.kind() {
            "server_tool_use" | "mcp_tool_use" => open.push(block.at("id").text()),
            kind if kind.ends_with("_tool_result") => {
                let known = close_call(&mut open, block.at("tool_use_id").text());
                report.require(known, place, "a server's result follows its call");
            }
            _ => {}
        }
    }
    report.require(open.is_empty() || is_last, place, "a server's call is answered");
}

/// Messages of one speaker in a row, which the provider takes as one.
struct SpeakerTurn<'a> {
    index: usize,
    is_user: bool,
    blocks: Vec<&'a Tree<'a>>,
}

fn turns<'a>(spoken: &[(usize, &'a Tree<'a>)]) -> Vec<SpeakerTurn<'a>> {
    let mut turns: Vec<SpeakerTurn<'a>> = Vec::new();
    for (index, message) in spoken {
        let is_user = message.at("role").text() == "user";
        let content = message.at("content");
        let blocks: Vec<&Tree<'_>> =
            if content.is_list() { content.list().iter().collect() } else { vec![content] };
        match turns.last_mut() {
            Some(turn) if turn.is_user == is_user => turn.blocks.extend(blocks),
            _ => turns.push(SpeakerTurn { index: *index, is_user, blocks }),
        }
    }
    turns
}

fn pairs(turns: &[SpeakerTurn<'_>], report: &mut Violations) {
    let mut asked: Vec<&str> = Vec::new();
    for turn in turns {
        let place = At("messages", turn.index);
        if !turn.is_user {
            let calls = turn.blocks.iter().filter(|block| block.kind() == "tool_use");
            asked = calls.map(|block| block.at("id").text()).collect();
            continue;
        }
        let mut others = false;
        for block in &turn.blocks {
            if block.kind() != "tool_result" {
                others = true;
                continue;
            }
            let known = close_call(&mut asked, block.at("tool_use_id").text());
            report.require(known, place, "a result answers a call of the message before, once");
            report.require(!others || !known, place, "results stand first");
        }
        report.require(asked.is_empty(), place, "every call is answered in the next message");
        asked.clear();
    }
    report.require(asked.is_empty(), "messages", "the last calls are answered");
}

/// With thinking on, the answer that is being continued begins with thinking.
fn thinking_first(root: &Tree<'_>, turns: &[SpeakerTurn<'_>], report: &mut Violations) {
    if root.at("thinking").kind() != "enabled" {
        return;
    }
    let [.., answer, last] = turns else { return };
    let in_loop = last.is_user && last.blocks.iter().any(|block| block.kind() == "tool_result");
    let first = answer.blocks.first().map_or("", |block| block.kind());
    let fits = !in_loop || first.ends_with("thinking");
    report.require(fits, At("messages", answer.index), "an open tool loop begins with thinking");
}
