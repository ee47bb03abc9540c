//! Gemini's `generateContent`.

use super::tree::Tree;
use super::{At, Violations};

pub(super) fn check(root: &Tree<'_>, report: &mut Violations) {
    let groups = root.at("tools").list().iter();
    let declared = groups.flat_map(|group| either(group, MEMBERS).list());
    report.names(declared.map(|tool| tool.at("name").text()));
    let system = either(root, ("systemInstruction", "system_instruction"));
    let says = system.is_null() || system.is_text() || !system.at("parts").list().is_empty();
    report.require(says, "systemInstruction", "it has a part");
    let contents = root.at("contents").list();
    report.require(!contents.is_empty(), "contents", "there is a content");
    let first = contents.first().is_none_or(|content| content.at("role").text() != "model");
    report.require(first, "contents[0]", "the first content is the user's");
    let mut called: Vec<&Tree<'_>> = Vec::new();
    let mut before = "";
    for (index, content) in contents.iter().enumerate() {
        let place = At("contents", index);
        let role = content.at("role").text();
        let known = matches!(role, "" | "user" | "model" | "function");
        report.require(known, place, "its role is user or model");
        let parts = content.at("parts").list();
        report.require(!parts.is_empty(), place, "it has a part");
        let calls: Vec<&Tree<'_>> = given(parts, CALL);
        let responses: Vec<&Tree<'_>> = given(parts, RESPONSE);
        for part in parts {
            one_part(part, role, index, report);
        }
        if role == "model" {
            report.require(called.is_empty(), place, "a call is answered at once");
            let fits = calls.is_empty() || before != "model";
            report.require(fits, place, "calls follow the user or a response");
            called = calls;
        } else {
            let fits = responses.len() == called.len()
                && responses.iter().zip(&called).all(|(response, call)| answers(response, call))
                || paired_by_id(&responses, &called);
            report.require(fits, place, "there is one response for each call, in its order");
            called.clear();
        }
        before = role;
    }
    report.require(called.is_empty(), "contents", "the last calls are answered");
}

const MEMBERS: (&str, &str) = ("functionDeclarations", "function_declarations");
const CALL: (&str, &str) = ("functionCall", "function_call");
const RESPONSE: (&str, &str) = ("functionResponse", "function_response");

fn either<'a, 'b>(value: &'b Tree<'a>, keys: (&str, &str)) -> &'b Tree<'a> {
    if value.has(keys.0) { value.at(keys.0) } else { value.at(keys.1) }
}

fn given<'a, 'b>(parts: &'b [Tree<'a>], keys: (&str, &str)) -> Vec<&'b Tree<'a>> {
    parts.iter().map(|part| either(part, keys)).filter(|value| !value.is_null()).collect()
}

fn answers(response: &Tree<'_>, call: &Tree<'_>) -> bool {
    let ids = (response.at("id").text(), call.at("id").text());
    response.at("name").text() == call.at("name").text() && (ids.0 == ids.1 || ids.0.is_empty())
}

/// With ids, parallel responses may stand in any order.
fn paired_by_id(responses: &[&Tree<'_>], calls: &[&Tree<'_>]) -> bool {
    let known = |values: &[&Tree<'_>]| {
        let both = values.iter().map(|value| (value.at("id").text(), value.at("name").text()));
        let mut both: Vec<(String, String)> =
            both.map(|(id, name)| (id.to_owned(), name.to_owned())).collect();
        both.sort_unstable();
        both
    };
    let asked = known(calls);
    !asked.iter().any(|(id, _)| id.is_empty()) && asked == known(responses)
}

fn one_part(part: &Tree<'_>, role: &str, index: usize, report: &mut Violations) {
    let place = At("contents", index);
    let Tree::Object(fields) = part else {
        report.require(part.is_text(), place, "a part is an object");
        return;
    };
    report.require(!fields.is_empty(), place, "a part says something");
    let call = either(part, CALL);
    if !call.is_null() {
        report.require(role == "model", place, "the model calls");
        report.require(!call.at("name").text().is_empty(), place, "a call names its tool");
        let arguments = call.at("args");
        report.require(arguments.is_null() || arguments.is_object(), place, "args are an object");
    }
    let response = either(part, RESPONSE);
    if !response.is_null() {
        report.require(role != "model", place, "the user responds");
        report.require(response.at("response").is_object(), place, "a response is an object");
    }
}
