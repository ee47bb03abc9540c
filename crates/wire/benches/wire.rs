//! What a request costs on its way through: read, rewritten, checked.
//!
//! Bodies of 1 KB, 50 KB and 400 KB (100,000 tokens). Goals for the largest: read within 2 ms, rewritten within 1 ms.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_core::render::replace_results;
use plimsoll_core::{ContentHash, Ref};
use plimsoll_wire::{DEFAULT_DEPTH, Edits, ProviderRequest, Wire, check};
use serde_json::{Value, json};

/// Makes a text of words that repeats nothing for long.
fn prose(seed: u64, words: usize) -> String {
    let mut out = String::new();
    for word in 0..words as u64 {
        let number = (seed * 1009 + word).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let end = if number.is_multiple_of(12) { '\n' } else { ' ' };
        let _ = write!(out, "word{number:x}{end}");
    }
    out
}

/// Makes a conversation in which every answer calls a tool, until it has `bytes`.
fn body(bytes: usize) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": prose(1, 40)})];
    let mut length = 600;
    for number in 2.. {
        let id = format!("toolu_{number:04}");
        let text = prose(number, 300);
        length += text.len() + 400;
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "Reading on."},
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": format!("src/file{number}.rs"), "offset": number}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]}]}));
        if length >= bytes {
            break;
        }
    }
    let tool =
        json!({"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}});
    let body: Value = json!({"model": "m", "max_tokens": 1000, "stream": true, "tools": [tool], "messages": messages});
    body.to_string().into_bytes()
}

/// Shortens every other result, as settling does.
fn edits(request: &ProviderRequest) -> Edits {
    let every_other = request.messages().iter().enumerate().step_by(2);
    let messages = every_other.filter_map(|(index, message)| {
        let original = Ref::message(ContentHash::of(message));
        let form =
            replace_results(message, |result| format!("{:.200}\n[{original}]", result.text))?;
        Some((index, Some(Arc::new(form))))
    });
    Edits {
        messages: messages.collect(),
        append: request
            .messages()
            .iter()
            .rposition(|message| message.role == plimsoll_core::Role::User)
            .map(|at| (at, "What is known.".into()))
            .into_iter()
            .collect(),
        ..Edits::default()
    }
}

fn wire(c: &mut Criterion) {
    let wire = Wire::AnthropicMessages;
    for (name, size) in [("1 KB", 1_000), ("50 KB", 50_000), ("400 KB", 400_000)] {
        let bytes = body(size);
        let parse = || {
            ProviderRequest::parse(wire, black_box(&bytes), "/v1/messages", DEFAULT_DEPTH)
                .expect("a generated request is readable")
        };
        let request = parse();
        let edits = edits(&request);
        let mut group = c.benchmark_group(format!("request of {name}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(30);
        group.bench_function("read", |b| b.iter(parse));
        group.bench_function("rewrite", |b| b.iter(|| request.rewrite(black_box(&edits))));
        group.bench_function("check", |b| b.iter(|| check(wire, black_box(&bytes))));
        group.finish();
    }
}

criterion_group!(benches, wire);
criterion_main!(benches);
