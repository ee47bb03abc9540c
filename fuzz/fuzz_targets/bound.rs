//! Any transcript under settings that change as much as they may: the budget holds, and nothing is enlarged.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use plimsoll_core::context::{State, bound};
use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::{Bounds, Budget, Cadence, IntraPhase, Need, Policy, Settle};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Block, Message, Role, Tokenizer, ToolCall, Transcript};

#[derive(Debug, Arbitrary)]
enum Part<'a> {
    Say { assistant: bool, text: &'a str },
    Work { says: &'a str, arguments: &'a str, result: &'a str },
    Orphan(&'a str),
}

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    budget: u16,
    giant: u16,
    every_turn: bool,
    parts: Vec<Part<'a>>,
}

fuzz_target!(|input: Input<'_>| {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    for (n, part) in input.parts.iter().enumerate() {
        match *part {
            Part::Say { assistant, text } => {
                let role = if assistant { Role::Assistant } else { Role::User };
                transcript.push(Message::text(role, text));
            }
            Part::Work { says, arguments, result } => {
                let id = n.to_string();
                let call = ToolCall {
                    id: id.as_str().into(),
                    name: "read".into(),
                    arguments: arguments.into(),
                };
                let blocks = vec![Block::Text(says.into()), Block::ToolCall(call)];
                transcript.push(Message::new(Role::Assistant, blocks));
                transcript.push(Message::result(id.as_str(), result));
            }
            Part::Orphan(text) => {
                transcript.push(Message::result("nobody", text));
            }
        }
    }
    let cadence = if input.every_turn { Cadence::EveryTurn } else { Cadence::CacheAware };
    let settle = Settle {
        least: 0,
        least_gain: 0.0,
        giant: u32::from(input.giant),
        caution: 0.0,
        need: Need { reads: 0.0, finds: 0.0, runs: 0.0, others: 0.0 },
        ..Settle::default()
    };
    let policy = Policy::Bounded(Bounds {
        budget: Budget::Tokens(u64::from(input.budget)),
        intra_phase: IntraPhase { cadence, ..IntraPhase::default() },
        settle,
        ..Bounds::default()
    });
    let terms = Terms::new(Pricing::shipped().of(None, None).prices);
    let mut state = State::default();
    for position in transcript.requests() {
        let (context, receipt) = bound(&transcript, position, &policy, &terms, &mut state);
        assert!(receipt.tokens <= receipt.full_tokens);
        assert_eq!(receipt.over_budget, receipt.tokens.saturating_sub(u64::from(input.budget)));
        for sent in context {
            let whole = sent.position.map(|at| transcript.entries()[at].tokens);
            assert!(whole.is_some_and(|whole| sent.tokens <= whole));
        }
    }
});
