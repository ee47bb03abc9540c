//! Every setting of a policy changes what is sent.
//!
//! The structs are taken apart by the names of all their fields, so that a new setting does not compile until it has a
//! line here.

use std::sync::Arc;

use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::{
    BoundThinking, Bounds, Budget, Cadence, IntraPhase, Need, PinSettings, Policy, PreserveErrors,
    RequestSettings, Settle,
};
use plimsoll_core::render::{Attempt, retry_context};
use plimsoll_core::{
    Block, ContentHash, ContextBudget, Message, MillisSinceEpoch, Role, Tokenizer, ToolCall,
    Transcript,
};

use crate::transcripts::{Kind, Matter, run, transcript};

fn text(kind: Kind, seed: u64, lines: usize) -> String {
    Matter { kind, seed, lines }.text()
}

/// A session in which every setting has something to decide.
fn session() -> Transcript {
    let mut messages = vec![
        Message::text(Role::System, "be exact"),
        Message::text(Role::User, "fix the failing test"),
    ];
    let kinds = [Kind::Code, Kind::Log, Kind::Prose, Kind::Search, Kind::Listing];
    for turn in 0..30_u64 {
        let id = format!("call-{turn}");
        // One result stands twice.
        let told = if turn == 11 { 10 } else { turn };
        let path = format!("src/m{turn}.rs");
        let arguments = if turn % 4 == 0 {
            let content = serde_json::Value::from(text(Kind::Code, 100 + turn, 30));
            format!("{{\"path\":\"{path}\",\"content\":{content}}}")
        } else {
            format!("{{\"path\":\"{path}\"}}")
        };
        let name = ["write", "grep", "read", "fetch"][turn as usize % 4];
        let call =
            ToolCall { id: id.as_str().into(), name: name.into(), arguments: arguments.into() };
        let says = text(Kind::Prose, 200 + turn, 3);
        messages.push(Message::new(
            Role::Assistant,
            vec![Block::Text(says.into()), Block::ToolCall(call)],
        ));
        let lines = if told == 9 { 900 } else { 20 + told as usize * 3 };
        let kind = kinds[told as usize % kinds.len()];
        messages.push(Message::result(id.as_str(), text(kind, told, lines)));
        if turn % 5 == 4 {
            messages.push(Message::text(Role::Assistant, text(Kind::Prose, 300 + turn, 40)));
            messages.push(Message::text(Role::User, "go on"));
        }
    }
    messages.push(Message::text(Role::Assistant, "done"));
    // A pause near the end: with a cold cache what the model said is reduced too.
    let late = messages.iter().rposition(|message| message.role == Role::User);
    let late = late.expect("the user asked");
    for (order, message) in messages.iter_mut().enumerate() {
        let pause = if order < late { 0 } else { 900_000 };
        message.time = Some(MillisSinceEpoch(i64::try_from(order).unwrap_or(0) * 1000 + pause));
    }
    transcript(messages, Tokenizer::Characters { per_token: 3.3 })
}

fn sent(session: &Transcript, policy: &Policy) -> Vec<ContentHash> {
    let prices = Pricing::shipped().of(Some("claude-sonnet-4-5"), None).prices.into();
    let turns = run(session, policy, &prices);
    turns.iter().flat_map(|turn| turn.context.iter().map(|sent| sent.hash)).collect()
}

/// Checks that each of `changed`, named by its setting, sends something else than `base`.
fn check(base: &Policy, changed: &[(&str, Policy)]) {
    let session = session();
    let before = sent(&session, base);
    for (setting, policy) in changed {
        assert!(before != sent(&session, policy), "`{setting}` changes nothing");
    }
}

#[test]
fn every_setting_within_a_phase_changes_something() {
    let base = IntraPhase { cadence: Cadence::EveryTurn, ..IntraPhase::default() };
    let IntraPhase {
        enabled,
        window,
        mask_observations_after,
        compress_loops,
        loop_history_limit,
        preserve_reasoning,
        preserve_errors,
        cadence,
    } = base.clone();
    let policy =
        |intra_phase: IntraPhase| Policy::Bounded(Bounds { intra_phase, ..Bounds::default() });
    let errors = |preserve_errors| policy(IntraPhase { preserve_errors, ..base.clone() });
    assert_eq!((preserve_errors, cadence), (PreserveErrors::Lines, Cadence::EveryTurn));
    check(
        &policy(base.clone()),
        &[
            ("enabled", policy(IntraPhase { enabled: !enabled, ..base.clone() })),
            ("window", policy(IntraPhase { window: window - 1, ..base.clone() })),
            (
                "mask_observations_after",
                policy(IntraPhase {
                    mask_observations_after: mask_observations_after + 1,
                    ..base.clone()
                }),
            ),
            (
                "preserve_reasoning",
                policy(IntraPhase { preserve_reasoning: !preserve_reasoning, ..base.clone() }),
            ),
            ("preserve_errors = false", errors(PreserveErrors::Off)),
            ("preserve_errors = \"keyword\"", errors(PreserveErrors::Keyword)),
            ("cadence", policy(IntraPhase { cadence: Cadence::CacheAware, ..base.clone() })),
        ],
    );

    let history: Vec<Arc<Message>> =
        session().entries().iter().map(|entry| entry.message.clone()).collect();
    let attempts: Vec<Attempt> = (1..=5)
        .map(|number| Attempt { number, output: "tried".into(), reason: "it fails".into() })
        .collect();
    let before = retry_context(&history, &attempts, &base);
    for (setting, changed) in [
        ("enabled", IntraPhase { enabled: !enabled, ..base.clone() }),
        ("compress_loops", IntraPhase { compress_loops: !compress_loops, ..base.clone() }),
        (
            "loop_history_limit",
            IntraPhase { loop_history_limit: loop_history_limit + 1, ..base.clone() },
        ),
    ] {
        assert_ne!(
            before,
            retry_context(&history, &attempts, &changed),
            "`{setting}` changes nothing"
        );
    }
}

#[test]
fn every_setting_of_settling_changes_something() {
    let base = Settle {
        floor: 3000,
        allowance: 0.5,
        investment: 0.0,
        least_gain: 0.0,
        ..Settle::default()
    };
    let Settle {
        enabled,
        floor,
        least,
        giant,
        giant_file,
        kept,
        young,
        least_calls,
        most_calls,
        caution,
        allowance,
        investment: _,
        payback: _,
        least_gain,
        need,
    } = base.clone();
    let Need { reads, finds, runs, others } = need.clone();
    let policy = |settle: Settle| Policy::Bounded(Bounds { settle, ..Bounds::default() });
    let needs = |need: Need| policy(Settle { need, ..base.clone() });
    let intra = |intra_phase| {
        Policy::Bounded(Bounds { settle: base.clone(), intra_phase, ..Bounds::default() })
    };
    let errors = |preserve_errors| intra(IntraPhase { preserve_errors, ..IntraPhase::default() });
    // With nothing to spend but what pays back soon.
    let tight = Settle { allowance: 0.0, investment: 0.5, payback: 20, ..base.clone() };
    check(
        &policy(tight.clone()),
        &[
            ("investment", policy(Settle { investment: 1e-6, ..tight.clone() })),
            ("payback", policy(Settle { payback: 0, ..tight })),
        ],
    );
    check(
        &policy(base.clone()),
        &[
            ("enabled", policy(Settle { enabled: !enabled, ..base.clone() })),
            ("floor", policy(Settle { floor: floor * 20, ..base.clone() })),
            ("least", policy(Settle { least: least * 10, ..base.clone() })),
            ("giant", policy(Settle { giant: giant / 10, ..base.clone() })),
            ("giant_file", policy(Settle { giant_file: giant_file / 10, ..base.clone() })),
            ("kept", policy(Settle { kept: kept * 5.0, ..base.clone() })),
            ("young", policy(Settle { young: young + 20, ..base.clone() })),
            ("least_calls", policy(Settle { least_calls: least_calls * 30, ..base.clone() })),
            ("most_calls", policy(Settle { most_calls: most_calls / 500, ..base.clone() })),
            ("caution", policy(Settle { caution: caution + 9.0, ..base.clone() })),
            ("allowance", policy(Settle { allowance: allowance / 1e6, ..base.clone() })),
            ("least_gain", policy(Settle { least_gain: least_gain + 0.5, ..base.clone() })),
            ("need.reads", needs(Need { reads: reads + 9.0, ..need.clone() })),
            ("need.finds", needs(Need { finds: finds + 9.0, ..need.clone() })),
            ("need.runs", needs(Need { runs: runs + 9.0, ..need.clone() })),
            ("need.others", needs(Need { others: others + 9.0, ..need })),
            ("preserve_errors = false", errors(PreserveErrors::Off)),
            ("preserve_errors = \"keyword\"", errors(PreserveErrors::Keyword)),
        ],
    );
}

#[test]
fn every_setting_of_bounds_changes_something() {
    let base = Bounds::default();
    let Bounds { budget, said_once, said_once_from, thinking, intra_phase, settle, pin } =
        base.clone();
    assert_eq!((budget, thinking), (Budget::Auto, BoundThinking::Keep));
    check(
        &Policy::Bounded(base.clone()),
        &[
            ("budget", Policy::Bounded(Bounds { budget: Budget::Tokens(8000), ..base.clone() })),
            ("said_once", Policy::Bounded(Bounds { said_once: !said_once, ..base.clone() })),
            (
                "said_once_from",
                Policy::Bounded(Bounds {
                    said_once_from: said_once_from + 1_000_000,
                    ..base.clone()
                }),
            ),
            (
                "intra_phase",
                Policy::Bounded(Bounds {
                    intra_phase: IntraPhase { enabled: false, ..intra_phase },
                    ..base.clone()
                }),
            ),
            (
                "pin",
                Policy::Bounded(Bounds {
                    pin: PinSettings { files: vec!["*".into()], ..pin },
                    ..base.clone()
                }),
            ),
            ("settle", Policy::Bounded(Bounds { settle: Settle { giant: 900, ..settle }, ..base })),
        ],
    );
}

#[test]
fn every_setting_of_the_other_policies_changes_something() {
    // Every policy by the names of all its settings, for the same reason as the structs.
    for policy in [
        Policy::Full,
        Policy::Bounded(Bounds::default()),
        Policy::ClearToolUses { trigger: 8000, keep: 3 },
        Policy::Newest { budget: 8000 },
        Policy::Trim(ContextBudget { total_tokens: 8000, ..ContextBudget::default() }),
        Policy::WorkingSet(RequestSettings::default()),
    ] {
        match &policy {
            Policy::Full => check(&policy, &[("policy", Policy::plimsoll())]),
            Policy::Bounded(_) => check(&policy, &[("policy", Policy::window())]),
            &Policy::ClearToolUses { trigger, keep } => check(
                &policy,
                &[
                    ("trigger", Policy::ClearToolUses { trigger: trigger * 2, keep }),
                    ("keep", Policy::ClearToolUses { trigger, keep: keep + 1 }),
                ],
            ),
            // Tests beside their modules change the settings of these: `allocation`, `trim`, `request`.
            Policy::Trim(_) | Policy::WorkingSet(_) => check(&policy, &[("policy", Policy::Full)]),
            &Policy::Newest { budget } => {
                check(&policy, &[("budget", Policy::Newest { budget: budget * 2 })]);
            }
        }
    }
}
