//! What holds of every context, whatever the transcript and the policy.

use std::collections::{HashMap, HashSet};

use plimsoll_core::choose::Reason;
use plimsoll_core::context::{State, bound};
use plimsoll_core::cost::Prices;
use plimsoll_core::plan::{Sent, Treatment};
use plimsoll_core::policy::{Bounds, Cadence, Policy, PreserveErrors};
use plimsoll_core::replay::{Stretch, replay_stretches};
use plimsoll_core::terms::{Surroundings, Terms};
use plimsoll_core::text::is_error_line;
use plimsoll_core::{
    Block, ContentHash, Message, Position, Ref, Role, Tokenizer, ToolResult, Transcript,
};
use proptest::prelude::*;

use crate::transcripts::{Bounded, policy, prices, run, session, tokenizer, transcript};

fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// A session that was compacted anywhere is replayed whole: every answer once, wherever the replay of a stretch begins.
    #[test]
    fn stretches_are_replayed_from_where_they_begin(
        one in session(),
        other in session(),
        known in any::<prop::sample::Index>(),
        policy in policy(),
        terms in prices(),
        tokenizer in tokenizer(),
    ) {
        let (one, other) = (one.transcript(tokenizer), other.transcript(tokenizer));
        let known = known.index(other.entries().len() + 1);
        let stretches = [Stretch::from(&one), Stretch { transcript: &other, known }];
        let mut turns = Vec::new();
        let replay = replay_stretches(stretches, &policy, 10.0, |_| terms.clone(), |turn| {
            turns.push(turn.receipt.turn);
        });
        let answers = one.requests().count() + other.requests().filter(|at| *at >= known).count();
        let expected: Vec<u32> = (0..).take(answers).collect();
        prop_assert_eq!(turns, expected);
        prop_assert_eq!(replay.receipts.len(), answers);
        prop_assert!(replay.missed.iter().all(|missed| (missed.turn as usize) < answers));
    }
}

fn place(sent: &Sent) -> Position {
    sent.position.expect("no pass adds a text of its own")
}

/// Counts a context anew, from what the model reads.
fn recount(transcript: &Transcript, bounded: &Bounded) -> u64 {
    let count = |message: &Message| u64::from(transcript.tokenizer().count(&message.shown())) + 4;
    bounded.context.iter().map(|sent| count(&sent.message)).sum()
}

/// Returns for each call id the message that calls and the messages that answer, before `end`.
fn exchanges(transcript: &Transcript, end: Position) -> HashMap<&str, (Position, Vec<Position>)> {
    let mut found: HashMap<&str, (Position, Vec<Position>)> = HashMap::new();
    for (position, entry) in transcript.entries()[..end].iter().enumerate() {
        for call in entry.message.calls() {
            found.insert(&call.id, (position, Vec::new()));
        }
        for result in entry.message.results() {
            if let Some((_, results)) = found.get_mut(&*result.call_id) {
                results.push(position);
            }
        }
    }
    found
}

/// Returns the messages that a policy with a budget may not leave out.
fn needed(transcript: &Transcript, end: Position, policy: &Policy) -> HashSet<Position> {
    let entries = &transcript.entries()[..end];
    let first = |role| entries.iter().position(|entry| entry.message.role == role);
    let mut needed: HashSet<Position> = first(Role::User).into_iter().collect();
    let from = if let Policy::Newest { .. } | Policy::WorkingSet(_) = policy {
        needed.extend(first(Role::System));
        end - 1
    } else {
        let system = |at: &Position| entries[*at].message.role == Role::System;
        needed.extend((0..end).filter(system));
        let spoke = entries.iter().rposition(|entry| entry.message.role == Role::Assistant);
        spoke.map_or(0, |position| position + 1)
    };
    needed.extend(from..end);
    for (call, results) in exchanges(transcript, end).into_values() {
        if results.iter().any(|result| needed.contains(result)) {
            needed.insert(call);
        }
    }
    for (call, results) in exchanges(transcript, end).into_values() {
        if needed.contains(&call) {
            needed.extend(results);
        }
    }
    if let (Policy::Newest { .. }, Some(&first)) =
        (policy, needed.iter().filter(|at| transcript.entries()[**at].exchange.is_some()).min())
    {
        needed.extend(first..end);
    }
    needed
}

fn ceiling(policy: &Policy, terms: &Terms, turns: u32) -> Option<u64> {
    match policy {
        Policy::Bounded(bounds) if bounds.intra_phase.enabled => {
            Some(bounds.budget.tokens(terms, turns))
        }
        Policy::Newest { budget } => Some(*budget),
        Policy::WorkingSet(settings) => Some(settings.total),
        Policy::Bounded(_) | Policy::Full | Policy::Trim(_) | Policy::ClearToolUses { .. } => None,
    }
}

/// A line that stands for others, and how many.
fn marker(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("[… ")?;
    let (count, rest) = rest.split_once(' ')?;
    let rest = rest.strip_prefix("line")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    (rest.starts_with([']', ';']) && line.ends_with(']')).then(|| count.parse().ok())?
}

/// Returns whether a line is the original's, whole or with its middle counted.
fn is_line_of(line: &str, was: &str) -> bool {
    let cut = || {
        let (first, rest) = line.split_once(" [… ")?;
        let (mark, last) = rest.split_once("] ")?;
        let (count, _) = mark.split_once(" character")?;
        let hidden = was.strip_prefix(first)?.strip_suffix(last)?.chars().count();
        (count.parse() == Ok(hidden)).then_some(())
    };
    line == was || cut().is_some()
}

/// Follows an excerpt through its original, line by line; returns the original's lines that are left out.
fn follow<'t>(original: &'t str, excerpt: &str) -> Result<Vec<&'t str>, TestCaseError> {
    let mut lines = original.split('\n');
    let mut left_out = Vec::new();
    for line in excerpt.split('\n') {
        if let Some(count) = marker(line) {
            let skipped: Vec<&str> = lines.by_ref().take(count).collect();
            prop_assert_eq!(skipped.len(), count, "more left out than there was:\n{}", excerpt);
            // The end of a text that ends in a line break is no line of its own.
            left_out.extend(skipped);
        } else {
            let was = lines.next().unwrap_or("");
            prop_assert!(is_line_of(line, was), "{}\nis not {}\nin {}", line, was, excerpt);
        }
    }
    let rest: Vec<&str> = lines.collect();
    prop_assert!(rest.is_empty(), "neither shown nor counted: {:?}\n{}", rest, excerpt);
    Ok(left_out)
}

fn result_of<'m>(message: &'m Message, like: &ToolResult) -> Option<&'m ToolResult> {
    message.results().find(|result| result.call_id == like.call_id)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_budget_is_a_ceiling(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        for bounded in run(&transcript, &policy, &prices) {
            let receipt = &bounded.receipt;
            let tokens = recount(&transcript, &bounded);
            prop_assert_eq!(receipt.tokens, tokens);
            let turns = bounded.plan.turn();
            let Some(budget) = ceiling(&policy, &prices, turns) else {
                prop_assert_eq!(receipt.over_budget, 0);
                continue;
            };
            prop_assert_eq!(receipt.over_budget, tokens.saturating_sub(budget));
            if receipt.over_budget > 0 {
                let needed = needed(&transcript, receipt.position, &policy);
                for sent in &bounded.context {
                    prop_assert!(needed.contains(&place(sent)), "message {}", place(sent));
                }
            }
        }
    }

    #[test]
    fn exchanges_are_never_split(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        for bounded in run(&transcript, &policy, &prices) {
            let places: Vec<Position> = bounded.context.iter().map(|sent| place(sent)).collect();
            prop_assert!(places.is_sorted_by(|a, b| a < b), "out of order: {:?}", places);
            for (call, results) in exchanges(&transcript, bounded.receipt.position).into_values() {
                let sent = places.binary_search(&call).is_ok();
                for result in results {
                    prop_assert_eq!(sent, places.binary_search(&result).is_ok(), "call {}", call);
                }
            }
        }
    }

    #[test]
    fn every_ref_gives_back_the_original(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        for bounded in run(&transcript, &policy, &prices) {
            for (position, decision) in bounded.plan.decisions().iter().enumerate() {
                if decision.treatment == Treatment::Keep {
                    prop_assert_eq!(decision.form.hash, transcript.entries()[position].hash);
                    continue;
                }
                let original = Ref::message(transcript.entries()[position].hash).to_string();
                let prefix = Ref::prefix(&original).expect("a ref as it is printed");
                let found = transcript.find(&prefix).expect("the original is on record");
                let entry = &transcript.entries()[found];
                prop_assert_eq!(ContentHash::of(&entry.message), transcript.entries()[position].hash);
                // A pointer says by itself where the lines stand.
                if decision.treatment != Treatment::Omit && decision.reason != Reason::SaidOnce {
                    let shown = decision.form.message.shown();
                    prop_assert!(shown.contains(&original), "{:?}\n{}", decision.treatment, shown);
                }
            }
            for change in &bounded.receipt.changes {
                prop_assert_eq!(change.original.hash, transcript.entries()[change.position].hash);
            }
        }
    }

    #[test]
    fn the_same_input_gives_the_same_contexts(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        let again = session.transcript(tokenizer);
        let (one, two) = (run(&transcript, &policy, &prices), run(&again, &policy, &prices));
        prop_assert_eq!(one.len(), two.len());
        for (one, two) in one.iter().zip(&two) {
            prop_assert_eq!(hashes(one), hashes(two));
            prop_assert_eq!(&one.receipt, &two.receipt);
        }
    }

    #[test]
    fn the_future_changes_nothing(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices(),
        cut in any::<prop::sample::Index>(),
    ) {
        let messages = session.messages();
        let whole = transcript(messages.clone(), tokenizer);
        let recorded = run(&whole, &policy, &prices);
        // As a gateway meets it: each request is bounded before its answer is known.
        let mut live = Transcript::new(tokenizer);
        let mut state = State::default();
        let mut turns = recorded.iter();
        for message in messages.iter().cloned() {
            if message.role == Role::Assistant && !live.entries().is_empty() {
                let end = live.entries().len();
                let (context, _) = bound(&live, end, &policy, &prices, &mut state);
                let now: Vec<ContentHash> = context.iter().map(|sent| sent.hash).collect();
                prop_assert_eq!(now, hashes(turns.next().expect("one turn a request")));
            }
            live.push(message);
        }
        let short = transcript(messages[..cut.index(messages.len() + 1)].iter().cloned(), tokenizer);
        for (short, whole) in run(&short, &policy, &prices).iter().zip(&recorded) {
            prop_assert_eq!(hashes(short), hashes(whole));
            prop_assert_eq!(&short.receipt, &whole.receipt);
        }
    }

    #[test]
    fn the_prefix_stays_but_for_recorded_changes(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        let turns = run(&transcript, &policy, &prices);
        for pair in turns.windows(2) {
            let (last, now) = (&pair[0], &pair[1]);
            let alike = last.context.iter().zip(&now.context).take_while(|(a, b)| a.hash == b.hash).count();
            let places = [last.context.get(alike), now.context.get(alike)];
            let Some(first) = places.into_iter().flatten().map(|sent| place(sent)).min() else { continue };
            prop_assert!(
                first >= last.receipt.position
                    || now.receipt.changes.iter().any(|change| change.position == first),
                "message {} changed at turn {}, not recorded", first, now.receipt.turn
            );
        }
    }

    #[test]
    fn changes_record_every_treatment(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        let mut treatments: HashMap<Position, (Treatment, u32)> = HashMap::new();
        for bounded in run(&transcript, &policy, &prices) {
            for change in &bounded.receipt.changes {
                treatments.insert(change.position, (change.treatment, change.tokens_after));
            }
            for (position, decision) in bounded.plan.decisions().iter().enumerate() {
                let whole = (Treatment::Keep, decision.whole.tokens);
                let sent = if decision.treatment == Treatment::Omit { 0 } else { decision.form.tokens };
                let recorded = treatments.get(&position).copied().unwrap_or(whole);
                prop_assert_eq!(recorded, (decision.treatment, sent), "message {}", position);
            }
        }
    }

    #[test]
    fn nothing_is_ever_enlarged(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        for bounded in run(&transcript, &policy, &prices) {
            for sent in &bounded.context {
                prop_assert!(sent.tokens <= transcript.entries()[place(sent)].tokens);
            }
            prop_assert!(bounded.receipt.tokens <= bounded.receipt.full_tokens);
        }
    }

    #[test]
    fn rendered_messages_are_valid(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        for bounded in run(&transcript, &policy, &prices) {
            for sent in &bounded.context {
                let original = &transcript.entries()[place(sent)].message;
                prop_assert_eq!(sent.message.role, original.role);
                prop_assert_eq!(sent.message.time, original.time);
                prop_assert_eq!(sent.message.blocks.len(), original.blocks.len());
                for (now, was) in sent.message.blocks.iter().zip(&original.blocks) {
                    check_block(now, was)?;
                }
            }
        }
    }

    #[test]
    fn excerpts_hold_exact_lines_and_count_the_others(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        let Policy::Bounded(bounds) = &policy else { return Ok(()) };
        for bounded in run(&transcript, &policy, &prices) {
            for (position, decision) in bounded.plan.decisions().iter().enumerate() {
                let cut = decision.treatment == Treatment::Shorten
                    && bounds.intra_phase.cadence == Cadence::CacheAware;
                let excerpt = decision.treatment == Treatment::Excerpt && decision.reason != Reason::SaidOnce;
                if !excerpt && !cut {
                    continue;
                }
                let original = &transcript.entries()[position].message;
                for (now, was) in decision.form.message.blocks.iter().zip(&original.blocks) {
                    match (now, was) {
                        (Block::Text(now), Block::Text(was)) => drop(follow(was, now)?),
                        (Block::ToolResult(now), Block::ToolResult(was)) => drop(follow(&was.text, &now.text)?),
                        (Block::ToolCall(now), Block::ToolCall(was)) => {
                            let (was, now) = (strings(&was.arguments), strings(&now.arguments));
                            for (was, now) in was.iter().zip(&now) {
                                follow(was, now)?;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    #[test]
    fn error_lines_survive_in_excerpts_and_stubs(
        session in session(), tokenizer in tokenizer(), policy in policy(), prices in prices()
    ) {
        let transcript = session.transcript(tokenizer);
        let Policy::Bounded(bounds) = &policy else { return Ok(()) };
        if bounds.intra_phase.preserve_errors == PreserveErrors::Off {
            return Ok(());
        }
        let shown: Vec<String> = transcript.entries().iter().map(|entry| entry.message.shown()).collect();
        for bounded in run(&transcript, &policy, &prices) {
            for (position, decision) in bounded.plan.decisions().iter().enumerate() {
                if !matches!(decision.treatment, Treatment::Excerpt | Treatment::Stub) {
                    continue;
                }
                for result in transcript.entries()[position].message.results() {
                    let now = result_of(&decision.form.message, result).expect("a result stays");
                    for line in result.text.lines().filter(|line| is_error_line(line)).take(5) {
                        // A line that stands elsewhere too may be left out here.
                        let unit = line.split(' ').find(|word| word.starts_with("unit_")).unwrap_or(line);
                        let times: usize = shown.iter().map(|text| text.matches(unit).count()).sum();
                        let kept = now.text.lines().any(|kept| kept == line);
                        prop_assert!(kept || times > 1 || line.len() > 300, "{}\nlost of\n{}", line, now.text);
                    }
                }
            }
        }
    }
}

fn hashes(bounded: &Bounded) -> Vec<ContentHash> {
    bounded.context.iter().map(|sent| ContentHash::of(&sent.message)).collect()
}

fn check_block(now: &Block, was: &Block) -> Result<(), TestCaseError> {
    match (now, was) {
        (Block::Text(now), Block::Text(was)) => prop_assert_eq!(now.is_empty(), was.is_empty()),
        (Block::ToolResult(now), Block::ToolResult(was)) => {
            prop_assert_eq!(&now.call_id, &was.call_id);
            prop_assert_eq!(now.is_error, was.is_error);
            prop_assert!(!now.text.is_empty() || was.text.is_empty());
        }
        (Block::ToolCall(now), Block::ToolCall(was)) => {
            prop_assert_eq!((&now.id, &now.name), (&was.id, &was.name));
            let keys = |text: &str| match serde_json::from_str(text) {
                Ok(serde_json::Value::Object(fields)) => {
                    Some(fields.keys().cloned().collect::<Vec<_>>())
                }
                _ => None,
            };
            if let Some(was) = keys(&was.arguments) {
                prop_assert_eq!(keys(&now.arguments), Some(was), "{}", now.arguments);
            }
            prop_assert!(!now.arguments.is_empty() || was.arguments.is_empty());
        }
        (now, was) => prop_assert_eq!(now, was),
    }
    Ok(())
}

/// Returns every string in arguments that are a JSON object, or the arguments where they are not JSON at all.
fn strings(arguments: &str) -> Vec<String> {
    match serde_json::from_str(arguments) {
        Ok(serde_json::Value::Object(fields)) => {
            fields.values().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        }
        Ok(_) => Vec::new(),
        Err(_) if arguments.starts_with('{') => Vec::new(),
        Err(_) => vec![arguments.to_owned()],
    }
}

/// The exact vocabulary goes through the same code, so one fixed session is enough to see that nothing else differs.
#[test]
fn exact_counts_hold_the_budget_too() {
    use crate::transcripts::{Kind, Matter};
    let mut messages = vec![Message::text(Role::User, "please fix the failing test")];
    for seed in 0..12 {
        let text = Matter { kind: Kind::Log, seed, lines: 80 }.text();
        messages.push(Message::text(
            Role::Assistant,
            Matter { kind: Kind::Prose, seed, lines: 5 }.text(),
        ));
        messages.push(Message::result("nobody", text));
    }
    messages.push(Message::text(Role::Assistant, "done"));
    let transcript = transcript(messages, Tokenizer::O200k { factor: 1.18 });
    let prices = plimsoll_core::cost::Pricing::shipped().of(None, None).prices.into();
    let bounds = plimsoll_core::policy::Bounds { budget: 9000.into(), ..Default::default() };
    for bounded in run(&transcript, &Policy::Bounded(bounds), &prices) {
        assert_eq!(bounded.receipt.tokens, recount(&transcript, &bounded));
        assert!(bounded.receipt.tokens <= 9000, "{}", bounded.receipt.tokens);
    }
}

#[test]
fn our_own_tools_and_lookups_count_in_the_budget_and_the_oldest_lookups_go_first() {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    for number in 0..9 {
        let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
        transcript.push(Message::text(role, format!("{number} {}", "words ".repeat(50))));
    }
    let around =
        Surroundings { own_tools: 100, put_back: vec![300, 40, 50], ..Surroundings::default() };
    let terms = Terms { around, ..Terms::new(Prices::PLAIN) };
    let run = |budget: u64| {
        let bounds = Bounds { budget: budget.into(), ..Bounds::default() };
        let (_, receipt) =
            bound(&transcript, 9, &Policy::Bounded(bounds), &terms, &mut State::default());
        let components = receipt.components;
        assert_eq!(
            (components.tools, receipt.over_budget),
            (100, receipt.tokens.saturating_sub(budget))
        );
        (receipt.over_budget, components.lookups, receipt.lookups_left_out)
    };
    assert_eq!(run(10_000), (0, 390, 0));
    // The task and the last question stay: about 130 tokens.
    assert_eq!(run(650), (0, 390, 0));
    assert_eq!(run(500), (0, 90, 1));
    assert_eq!(run(340), (0, 50, 2));
    let (over, lookups, left_out) = run(50);
    assert_eq!((lookups, left_out), (0, 3));
    assert!(over > 100, "{over}");
}
