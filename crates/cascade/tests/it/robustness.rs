//! No text makes the parsers, the templates or the pictures panic.

use plimsoll_cascade::graph::{Graph, svg};
use plimsoll_cascade::parse;
use proptest::prelude::*;

/// Pieces of which most cascades and most mistakes are made.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "cascade_id: ",
        "phases:",
        "cells:",
        "\n",
        "\n  - ",
        "\n    ",
        "name: ",
        "a",
        "b",
        "instructions: ",
        "|\n",
        "{{ ",
        " }}",
        "{% if ",
        " %}",
        "{% endif %}",
        "{#",
        "input.x",
        " | ",
        "upper",
        "~",
        "*",
        "&a ",
        "*a",
        "<<: ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "'",
        "context: ",
        "from: ",
        "all",
        "handoffs: ",
        "rules: ",
        "max_turns: ",
        "9",
        "-",
        "null",
        "yes",
        "é",
        "\u{1F600}",
        "\t",
        "---\n",
        "!!str ",
        "%",
        "\\u",
        "\0",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn read(text: &str) {
    for file in ["c.json", "c.yaml", "c"] {
        let (cascade, problems) = parse(text, file);
        for problem in &problems {
            assert!(!problem.to_string().contains('\n'), "{problem}");
        }
        if let Some(cascade) = cascade {
            let graph = Graph::of(&cascade);
            let _ = (graph.mermaid(), svg(&graph));
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_read_or_refused(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn likely_text_is_read_or_refused(text in pieces()) {
        read(&text);
    }

    #[test]
    fn arbitrary_templates_are_read_or_refused(source in pieces()) {
        read(&format!("{{\"cascade_id\": \"c\", \"phases\": [{{\"name\": \"a\", \"instructions\": {}}}]}}", serde_json::Value::from(source)));
    }
}
