//! Conversations that grow by appends, as agents' do.

use std::fmt::Write as _;

use bytes::Bytes;
use plimsoll_wire::Wire;

use crate::chance::SeededRandom;
use crate::forms;

/// How large the requests of a conversation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Bytes of the first request; the mean over a session is about what the name says.
    first: usize,
    /// Bytes of each result of a tool.
    result: usize,
    /// Bytes of the system prompt and of the tools.
    fixed: usize,
    /// Requests in a session.
    pub(crate) turns: usize,
}

/// The three sizes in which overhead is reported: a question, a short session, a session of about 100,000 tokens.
pub(crate) const SHAPES: [Shape; 3] = [
    Shape { name: "1 KB", first: 500, result: 60, fixed: 200, turns: 5 },
    Shape { name: "50 KB", first: 25_000, result: 1_800, fixed: 8_000, turns: 25 },
    Shape { name: "400 KB", first: 300_000, result: 7_800, fixed: 24_000, turns: 25 },
];

/// One session of an agent.
#[derive(Debug)]
pub(crate) struct LoadConversation {
    pub(crate) session: String,
    pub(crate) wire: Wire,
    shape: Shape,
    /// System, tools and the beginning of the list of messages, then the messages themselves.
    body: String,
    chance: SeededRandom,
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerDelivery {
    Whole,
    Streamed,
}

impl AnswerDelivery {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Streamed => "streamed",
        }
    }
}

impl LoadConversation {
    /// Begins a session on Anthropic Messages whose first request has the size of its shape.
    pub(crate) fn begin(session: String, shape: Shape, seed: u64) -> Self {
        let mut chance = SeededRandom::new(seed);
        let mut body = String::with_capacity(shape.first + shape.turns * (shape.result + 600));
        let mark = if shape.fixed > 4000 { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
        body.push_str(r#""system":[{"type":"text","text":""#);
        prose(&mut body, shape.fixed / 2, &mut chance);
        let _ = write!(body, r#""{mark}}}],"tools":["#);
        tools(&mut body, shape.fixed / 2, &mut chance);
        let _ = write!(body, r#"],"messages":[{{"role":"user","content":"{session} asks: "#);
        prose(&mut body, 120, &mut chance);
        body.push_str("\"}");
        let wire = Wire::AnthropicMessages;
        let mut conversation = Self { session, wire, shape, body, chance };
        // Ids that no load request has.
        let mut past = u64::MAX;
        while conversation.body.len() + shape.result < shape.first {
            conversation.go_on(past, "an answer of before");
            past -= 1;
        }
        conversation
    }

    /// Begins a session on a wire, with one tool.
    pub(crate) fn on(wire: Wire, session: String, shape: Shape, seed: u64) -> Self {
        let mut chance = SeededRandom::new(seed);
        let (mut system, mut about) = (String::new(), String::new());
        prose(&mut system, shape.fixed / 2, &mut chance);
        prose(&mut about, shape.fixed / 4, &mut chance);
        let mut asked = format!("{session} asks: ");
        prose(&mut asked, 120, &mut chance);
        let body = forms::beginning(wire, &system, &[("read".to_owned(), about)], &asked);
        Self { session, wire, shape, body, chance }
    }

    /// Writes the next request.
    pub(crate) fn request(&self, delivery: AnswerDelivery) -> Bytes {
        let head = forms::head(self.wire, delivery);
        let mut bytes = Vec::with_capacity(head.len() + self.body.len() + 2);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(self.body.as_bytes());
        bytes.extend_from_slice(b"]}");
        Bytes::from(bytes)
    }

    /// Puts the plain answer to a request behind it, and the result of its call.
    pub(crate) fn hear(&mut self, request: u64, words: usize) {
        self.go_on(request, &plain_answer(request, words));
    }

    fn go_on(&mut self, request: u64, text: &str) {
        let Self { session, wire, shape, body, chance } = self;
        let mut result = format!("{session}-result-{request}\\n");
        code(&mut result, shape.result, chance);
        forms::turn(*wire, body, request, text, &result);
    }
}

/// The text of the plain answer to a request.
pub(crate) fn plain_answer(request: u64, words: usize) -> String {
    format!("answer-{request}{}", " word".repeat(words))
}

/// The text by which the result behind an answer is found again.
pub(crate) fn result_marker(session: &str, request: u64) -> String {
    format!("{session}-result-{request}")
}

const WORDS: &[&str] = &[
    "meter", "reading", "value", "ceiling", "table", "worker", "update", "session", "buffer",
    "index", "request", "handle", "parse", "result", "queue", "state", "record", "check", "limit",
    "path", "config", "store", "writer", "reader", "count", "total", "error", "window", "cursor",
    "batch",
];

fn prose(into: &mut String, bytes: usize, chance: &mut SeededRandom) {
    let end = into.len() + bytes;
    while into.len() < end {
        into.push_str(chance.one_of(WORDS));
        into.push(' ');
    }
}

/// Writes lines as source files have them, escaped for JSON.
fn code(into: &mut String, bytes: usize, chance: &mut SeededRandom) {
    let end = into.len() + bytes;
    let mut line = 1;
    while into.len() < end {
        let (one, other, third) =
            (chance.one_of(WORDS), chance.one_of(WORDS), chance.one_of(WORDS));
        let number = chance.below(10_000);
        let _ = match chance.below(4) {
            0 => write!(into, r"{line:5}\tdef {one}_{other}(self, {third}):\n"),
            1 => write!(into, r"{line:5}\t    self.{one}_{number} = {other}.{third}({number})\n"),
            2 => write!(into, r"{line:5}\t    if {one}[{number}] != {other}: # {third}\n"),
            _ => write!(into, r"{line:5}\t        return {one} + {other} * {number}\n"),
        };
        line += 1;
    }
}

/// Writes tools until so many bytes; the first is the one that plain answers call.
fn tools(into: &mut String, bytes: usize, chance: &mut SeededRandom) {
    let end = into.len() + bytes;
    let mut number = 0;
    loop {
        let name = if number == 0 { "read".to_owned() } else { format!("tool_{number}") };
        let _ = write!(into, r#"{{"name":"{name}","description":""#);
        prose(into, 300.min(bytes / 4), chance);
        into.push_str(r#"","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#);
        number += 1;
        if into.len() >= end {
            return;
        }
        into.push(',');
    }
}
