//! The time to read, count and bound a session, and to bound one further message.
//!
//! `cargo bench` runs all. Goals: reading, counting and bounding all turns within 50 ms for each megabyte of session file;
//! a message appended to 150,000 tokens and bounded within 1 ms, and within twice the time that it takes at 15,000; 20 MB of
//! text counted in a second. Loading the vocabularies is left out.

mod generated;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_core::context::{State, bound};
use plimsoll_core::cost::Pricing;
use plimsoll_core::need::Scorer;
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::Terms;
use plimsoll_core::{Message, Tokenizer, Transcript};
use plimsoll_formats::{ReadOptions, Session, read};

const EXACT: Tokenizer = Tokenizer::O200k { factor: 1.0 };

fn read_all(bytes: &[u8]) -> Session {
    read(bytes, &ReadOptions::default()).expect("a generated session is readable")
}

fn count_all(session: &Session) -> Transcript {
    let mut transcript = Transcript::new(EXACT);
    for message in &session.messages {
        transcript.push(message.clone());
    }
    transcript
}

fn bound_all(transcript: &Transcript, policy: &Policy, prices: &Terms) -> u64 {
    let mut state = State::default();
    let mut tokens = 0;
    for position in transcript.requests() {
        tokens += bound(transcript, position, policy, prices, &mut state).1.tokens;
    }
    tokens
}

fn prices() -> Terms {
    Pricing::shipped().of(Some("claude-sonnet-4-5"), None).prices.into()
}

fn session(c: &mut Criterion) {
    let bytes = generated::session(1, 1_000_000);
    let (policy, prices) = (Policy::plimsoll(), prices());
    let transcript = count_all(&read_all(&bytes));
    let mut group = c.benchmark_group("session of 1 MB");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sample_size(20).measurement_time(Duration::from_secs(4));
    group.bench_function("read", |b| b.iter(|| read_all(black_box(&bytes))));
    let parsed = read_all(&bytes);
    group.bench_function("count", |b| b.iter(|| count_all(black_box(&parsed))));
    group.bench_function("bound", |b| {
        b.iter(|| bound_all(black_box(&transcript), &policy, &prices));
    });
    group.bench_function("read, count and bound", |b| {
        b.iter(|| bound_all(&count_all(&read_all(black_box(&bytes))), &policy, &prices));
    });
    group.bench_function("bound and score", |b| {
        b.iter(|| {
            let (mut state, mut scorer) = (State::default(), Scorer::default());
            for position in transcript.requests() {
                let (context, receipt) = bound(&transcript, position, &policy, &prices, &mut state);
                scorer.turn(&transcript, position, &context, &prices, receipt.cost);
            }
            scorer.score()
        });
    });
    group.finish();
}

/// A transcript of at least `tokens` tokens, bounded up to its last request but not beyond.
fn grown(tokens: u64) -> (Transcript, State) {
    let session = read_all(&generated::session(2, 900_000));
    let (policy, prices) = (Policy::plimsoll(), prices());
    let mut transcript = Transcript::new(EXACT);
    for message in &session.messages {
        if transcript.tokens() >= tokens {
            break;
        }
        transcript.push(message.clone());
    }
    assert!(transcript.tokens() >= tokens, "{} tokens", transcript.tokens());
    let mut state = State::default();
    for position in transcript.requests() {
        bound(&transcript, position, &policy, &prices, &mut state);
    }
    (transcript, state)
}

fn append(c: &mut Criterion) {
    let (policy, prices) = (Policy::plimsoll(), prices());
    let answer = generated::prose(7, 60);
    let mut group = c.benchmark_group("append a message and bound");
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    // The pair shows whether a message costs what is new or what the session has.
    for (name, tokens) in [("at 15,000 tokens", 15_000), ("at 150,000 tokens", 150_000)] {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || grown(tokens),
                |(transcript, state)| {
                    transcript.push(Message::text(plimsoll_core::Role::User, answer.as_str()));
                    bound(transcript, transcript.entries().len(), &policy, &prices, state)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn count(c: &mut Criterion) {
    let transcript = read_all(&generated::session(3, 1_000_000));
    let texts: Vec<String> = transcript.messages.iter().map(|message| message.shown()).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut group = c.benchmark_group("tokens");
    group.throughput(Throughput::Bytes(bytes as u64)).sample_size(20);
    for (name, tokenizer) in [("o200k", EXACT), ("cl100k", Tokenizer::Cl100k)] {
        group.bench_function(name, |b| {
            b.iter(|| texts.iter().map(|text| u64::from(tokenizer.count(text))).sum::<u64>());
        });
    }
    group.finish();
}

criterion_group!(benches, session, append, count);
criterion_main!(benches);
