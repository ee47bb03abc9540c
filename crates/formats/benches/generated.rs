//! A session as an agent records it, made from a seed: searches, reads, edits that quote what was read, tests that fail.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// A generator of numbers that needs no crate (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    }
}

const STEMS: &[&str] = &[
    "parse", "header", "config", "token", "stream", "buffer", "retry", "client", "decode", "flush",
    "state", "index", "cache", "frame", "query", "route", "session", "policy", "render", "store",
];
const WORDS: &[&str] = &[
    "the", "function", "reads", "a", "file", "and", "then", "writes", "what", "it", "found",
    "into", "another", "place", "where", "nobody", "looks", "at", "first", "because", "test",
    "expects",
];

fn symbol(numbers: &mut Numbers) -> String {
    let (a, b) = (STEMS[numbers.below(STEMS.len())], STEMS[numbers.below(STEMS.len())]);
    match numbers.below(3) {
        0 => format!("{a}_{b}"),
        1 => format!("{}{}{}{}", a[..1].to_uppercase(), &a[1..], b[..1].to_uppercase(), &b[1..]),
        _ => format!("self.{a}.{b}"),
    }
}

/// Makes a text of sentences.
pub(crate) fn prose(seed: u64, words: usize) -> String {
    let numbers = &mut Numbers(seed);
    let mut out = String::new();
    for _ in 0..words {
        match numbers.below(12) {
            0 => out.push_str(&symbol(numbers)),
            1 => out.push('\n'),
            _ => out.push_str(WORDS[numbers.below(WORDS.len())]),
        }
        out.push(' ');
    }
    out
}

fn code(file: usize, lines: usize) -> Vec<String> {
    let numbers = &mut Numbers(file as u64 * 7919 + 1);
    (0..lines)
        .map(|_| match numbers.below(5) {
            0 => String::new(),
            1 => format!("fn {}(value: &{}) -> usize {{", symbol(numbers), symbol(numbers)),
            2 => format!("    // {}", prose(numbers.below(9999) as u64, 9).replace('\n', " ")),
            _ => format!(
                "    let {} = {}({}, \"src/{}.rs\");",
                symbol(numbers),
                symbol(numbers),
                numbers.below(9000),
                symbol(numbers)
            ),
        })
        .collect()
}

fn path(file: usize) -> String {
    format!("src/{}/module_{file}.rs", STEMS[file % STEMS.len()])
}

/// One call of an agent and what came of it.
fn step(numbers: &mut Numbers, bytes: usize) -> (Value, String, &'static str) {
    let file = numbers.below(40);
    // About 45 bytes a line of code, 60 a line of the others.
    let lines = bytes / 45;
    match numbers.below(10) {
        0..=3 => {
            let mut text = String::new();
            for (n, line) in code(file, lines).iter().enumerate() {
                let _ = writeln!(text, "{:6}\t{line}", n + 1);
            }
            (json!({ "path": path(file) }), text, "read")
        }
        4 | 5 => {
            let old = code(file, 40)[10..22].join("\n");
            let new = code(file + 100, 40)[10..24].join("\n");
            (
                json!({ "path": path(file), "oldText": old, "newText": new }),
                format!("Successfully replaced text in {}.", path(file)),
                "edit",
            )
        }
        6 | 7 => {
            let name = symbol(numbers);
            let mut text = String::new();
            for _ in 0..lines / 2 {
                let line = numbers.below(900);
                let _ = writeln!(
                    text,
                    "{}:{line}:    {name}({});",
                    path(numbers.below(40)),
                    symbol(numbers)
                );
            }
            (json!({ "command": format!("grep -rn {name} src") }), text, "bash")
        }
        _ => {
            let mut text = String::new();
            for line in 0..lines / 2 {
                let name = symbol(numbers);
                let _ = match numbers.below(20) {
                    0 => writeln!(
                        text,
                        "error[E0308]: mismatched types in {name} at {}:{line}",
                        path(file)
                    ),
                    _ => writeln!(text, "test {}::{name}_{line} ... ok", STEMS[file % STEMS.len()]),
                };
            }
            (json!({ "command": "cargo test --workspace 2>&1 | tail -200" }), text, "bash")
        }
    }
}

/// Makes a session file of about `bytes`, 120 requests for each megabyte.
pub(crate) fn session(seed: u64, bytes: usize) -> Vec<u8> {
    let numbers = &mut Numbers(seed);
    let mut out = String::new();
    let mut parent = Value::Null;
    let mut seconds = 0;
    let mut line = |out: &mut String, message: Value, pause: usize| {
        seconds += pause;
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        let time = format!(
            "2026-02-{:02}T{hours:02}:{minutes:02}:{:02}.000Z",
            1 + seconds / 86_400,
            seconds % 60
        );
        let id = format!("{seconds:08x}");
        let record = json!({ "type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message });
        parent = Value::from(id);
        let _ = writeln!(out, "{record}");
    };
    let _ = writeln!(
        out,
        "{}",
        json!({ "type": "session", "version": 3, "id": "generated", "timestamp": "2026-02-01T00:00:00.000Z", "cwd": "/work" })
    );
    let task = prose(seed + 1, 80);
    line(&mut out, json!({ "role": "user", "content": [{ "type": "text", "text": task }] }), 1);
    let mut turn = 0;
    while out.len() < bytes {
        turn += 1;
        // Edits answer in a line, so that what reads has more than its share.
        let size = 500 + numbers.below(22_000);
        let (arguments, text, name) = step(numbers, size);
        let id = format!("call_{turn}");
        let says = prose(seed * 1000 + turn, 20);
        line(
            &mut out,
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": says },
                { "type": "toolCall", "id": id, "name": name, "arguments": arguments },
            ] }),
            8,
        );
        line(
            &mut out,
            json!({ "role": "toolResult", "toolCallId": id, "toolName": name, "isError": false,
                "content": [{ "type": "text", "text": text }] }),
            2,
        );
        if turn % 25 == 0 {
            let asks = prose(seed * 2000 + turn, 30);
            line(
                &mut out,
                json!({ "role": "user", "content": [{ "type": "text", "text": asks }] }),
                400,
            );
        }
    }
    out.into_bytes()
}
