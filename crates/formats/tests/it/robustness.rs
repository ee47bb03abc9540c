//! No input makes a reader panic.

use plimsoll_formats::{Compaction, ReadOptions, read, write};
use proptest::prelude::*;

use crate::fixtures;
use crate::writing::{decided, whole};

fn try_all(bytes: &[u8]) {
    for compaction in [Compaction::PassOver, Compaction::Honour] {
        let Ok(session) = read(bytes, &ReadOptions { compaction, ..ReadOptions::default() }) else {
            continue;
        };
        assert_eq!(session.messages.len(), session.origins.len());
        for note in &session.notes {
            assert!(!note.to_string().contains('\n'));
        }
        if session.format.is_writable() {
            assert_eq!(write(&session, bytes, &whole(&session)).unwrap(), bytes);
            let _ = write(&session, bytes, &decided(&session, &[1, 0, 2]));
        }
    }
}

#[test]
fn deep_nesting() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(100_000);
        try_all(deep.as_bytes());
        let closed = format!("{deep}1{}", close.repeat(100_000));
        try_all(closed.as_bytes());
        for key in ["content", "arguments", "message", "x"] {
            try_all(format!("{{\"type\":\"session\",\"id\":\"s\"}}\n{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"a\",\"{key}\":{closed}}}}}\n").as_bytes());
            try_all(format!("[{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_use\",\"input\":{closed}}}],\"{key}\":{closed}}}]").as_bytes());
        }
    }
}

#[test]
fn odd_values() {
    for odd in [
        "1e999",
        "-1",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "null",
        "[]",
        "{}",
        "[[]]",
        "[null,1,\"x\",{}]",
        "true",
        "123456789012345678901234567890",
    ] {
        for (_, text) in fixtures::ALL {
            for line in 0..text.lines().count() {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                for key in [
                    "content",
                    "id",
                    "uuid",
                    "parentId",
                    "timestamp",
                    "message",
                    "usage",
                    "args",
                    "tool_calls",
                    "toolCalls",
                    "result",
                    "output",
                    "role",
                    "type",
                    "messages",
                    "history",
                ] {
                    let pattern = format!("\"{key}\":");
                    if let Some(at) = lines[line].find(&pattern) {
                        let original = lines[line].clone();
                        // The old value stays behind as the value of another key.
                        lines[line].insert_str(at + pattern.len(), &format!("{odd},\"was\":"));
                        try_all(lines.join("\n").as_bytes());
                        lines[line] = original;
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        try_all(&bytes);
    }

    #[test]
    fn damaged_sessions(
        fixture in 0..fixtures::ALL.len(),
        cut in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        swaps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        truncate in any::<bool>(),
    ) {
        let text = fixtures::ALL[fixture].1;
        let mut lines: Vec<&[u8]> = text.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
        for (from, to) in swaps {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            lines[from] = lines[to];
        }
        let mut bytes = lines.concat();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if truncate {
            bytes.truncate(cut.index(bytes.len()));
        }
        try_all(&bytes);
    }
}
