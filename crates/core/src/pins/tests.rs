use super::*;
use crate::context::{Receipt, State, bound};
use crate::cost::Prices;
use crate::message::{Block, Message, ToolCall};
use crate::plan::{Context, Treatment};
use crate::policy::{Bounds, Budget, Cadence, IntraPhase, Policy, RequestSettings, Settle};
use crate::terms::Terms;
use crate::tokens::Tokenizer;

fn call(id: &str, name: &str, arguments: &str) -> Message {
    let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
    Message::new(Role::Assistant, vec![Block::ToolCall(call)])
}

fn lines(of: &str, count: usize) -> String {
    (0..count).map(|line| format!("{of} line {line} says something of its own\n")).collect()
}

/// A session of reads, each of another file, and at its end a question.
fn reads(paths: &[&str]) -> Transcript {
    let mut transcript = Transcript::new(Tokenizer::Estimate);
    transcript.push(Message::text(Role::User, "Read all of it."));
    for (number, path) in paths.iter().enumerate() {
        let id = format!("call_{number}");
        transcript.push(call(&id, "read", &format!(r#"{{"path":"{path}"}}"#)));
        transcript.push(Message::result(id, lines(path, 150)));
    }
    transcript.push(Message::text(Role::User, "And now?"));
    transcript
}

const PATHS: [&str; 6] = ["a.rs", "docs/CLAUDE.md", "b.rs", "c.rs", "d.rs", "e.rs"];

/// Bounds each request of a transcript; returns the last.
fn last(
    transcript: &Transcript,
    policy: &Policy,
    terms: &Terms,
    wishes: &[Wish],
) -> (Context, Receipt, State) {
    let mut state = State::default();
    state.wish(wishes.iter().cloned());
    for position in transcript.requests().skip_while(|at| *at == 0) {
        bound(transcript, position, policy, terms, &mut state);
    }
    let end = transcript.entries().len();
    let (context, receipt) = bound(transcript, end, policy, terms, &mut state);
    (context, receipt, state)
}

fn wish(kind: WishKind, transcript: &Transcript, position: Position) -> Wish {
    let reference = Ref::message(transcript.entries()[position].hash).to_string();
    Wish::of_user(kind, &reference).expect("a ref")
}

/// Policies that change something in [`reads`], each with as much room as it needs.
fn policies() -> Vec<Policy> {
    let every_turn = IntraPhase {
        cadence: Cadence::EveryTurn,
        window: 1,
        mask_observations_after: 1,
        ..IntraPhase::default()
    };
    let bounds = Bounds { pin: PinSettings::none(), ..Bounds::default() };
    vec![
        Policy::Bounded(Bounds { intra_phase: every_turn, ..bounds.clone() }),
        Policy::Bounded(Bounds { budget: Budget::Tokens(5_000), ..bounds }),
        Policy::ClearToolUses { trigger: 3_000, keep: 1 },
        Policy::Newest { budget: 5_000 },
        Policy::WorkingSet(RequestSettings { total: 5_000, ..RequestSettings::default() }),
    ]
}

#[test]
fn a_pinned_message_stays_whole_in_every_policy() {
    let transcript = reads(&PATHS);
    let terms = Prices::PLAIN.into();
    for policy in policies() {
        let (_, _, state) = last(&transcript, &policy, &terms, &[]);
        assert_ne!(state.plan().decisions()[2].treatment, Treatment::Keep, "{policy:?}");
        let pin = wish(WishKind::Pin, &transcript, 2);
        let (_, receipt, state) = last(&transcript, &policy, &terms, &[pin]);
        let decision = &state.plan().decisions()[2];
        assert_eq!((decision.treatment, decision.reason), (Treatment::Keep, Reason::Pinned));
        assert_eq!(receipt.pins.pinned.len(), 1, "{policy:?}");
        assert_eq!(receipt.over_budget, 0, "{policy:?}");
    }
}

#[test]
fn a_pin_gives_way_only_to_the_ceiling_and_then_for_good() {
    let transcript = reads(&PATHS);
    let terms = Prices::PLAIN.into();
    let budget = Budget::Tokens(900);
    let policy = Policy::Bounded(Bounds { budget, ..Bounds::default() });
    let mut state = State::default();
    state.wish([wish(WishKind::Pin, &transcript, 2)]);
    let mut lifted = false;
    for position in transcript.requests() {
        let (_, receipt) = bound(&transcript, position, &policy, &terms, &mut state);
        let fresh: u64 = transcript.entries()[position - 1..position]
            .iter()
            .map(|entry| u64::from(entry.tokens))
            .sum();
        assert!(receipt.over_budget <= fresh, "{}", receipt.over_budget);
        let is_whole =
            state.plan().decisions().get(2).is_none_or(|one| one.treatment == Treatment::Keep);
        assert!(!(lifted && is_whole), "it does not come back");
        lifted |= !is_whole;
    }
    assert!(lifted);
}

#[test]
fn the_newest_showing_of_an_instruction_file_and_of_the_list_is_pinned() {
    let mut transcript = reads(&PATHS);
    transcript.push(call("t1", "TodoWrite", r#"{"todos":["one"]}"#));
    transcript.push(Message::result("t1", "ok"));
    transcript.push(call("r1", "bash", r#"{"command":"cat docs/CLAUDE.md"}"#));
    transcript.push(Message::result("r1", lines("again", 20)));
    transcript.push(call("t2", "update_plan", r#"{"plan":["one","two"]}"#));
    transcript.push(Message::result("t2", "ok"));
    let mut pins = Pins::default();
    let settings = PinSettings::default();
    let end = transcript.entries().len();
    let before = pins.sort(&transcript, end - 2, Some(&settings)).pinned;
    let list = |from| [(from, Reason::ToDo), (from + 1, Reason::ToDo)];
    let files = [(17, Reason::Instructions)];
    assert_eq!(before.into_iter().collect::<Vec<_>>(), [&list(14)[..], &files].concat());
    let now = pins.sort(&transcript, end, Some(&settings)).pinned;
    assert_eq!(now.into_iter().collect::<Vec<_>>(), [&files[..], &list(18)].concat());
    assert!(pins.sort(&transcript, end, Some(&PinSettings::none())).pinned.is_empty());
}

#[test]
fn a_message_of_the_user_that_introduces_a_file_is_pinned() {
    let settings = PinSettings::default();
    for (text, is_pinned) in [
        ("<system-reminder>\nContents of /w/CLAUDE.md (project instructions):\nx", true),
        ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x", true),
        ("please read CLAUDE.md first", false),
    ] {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, text));
        let sorted = Pins::default().sort(&transcript, 1, Some(&settings));
        assert_eq!(!sorted.pinned.is_empty(), is_pinned, "{text}");
    }
}

#[test]
fn what_is_dropped_goes_first_and_the_user_overrules_the_settings() {
    let transcript = reads(&PATHS);
    let terms = Prices::PLAIN.into();
    // Room for all but one of the reads.
    let all: u64 = transcript.tokens();
    let policy = |budget| {
        Policy::Bounded(Bounds {
            budget: Budget::Tokens(budget),
            settle: Settle { enabled: false, ..Settle::default() },
            ..Bounds::default()
        })
    };
    let drop = wish(WishKind::Drop, &transcript, 4);
    let (_, receipt, state) =
        last(&transcript, &policy(all - 500), &terms, std::slice::from_ref(&drop));
    let changed: Vec<Position> = receipt.changes.iter().map(|one| one.position).collect();
    assert!(changed.is_empty() || changed == [4], "{changed:?}");
    let treatments = state.plan().decisions().iter().map(|one| one.treatment);
    let changed = treatments.enumerate().filter(|(_, one)| *one != Treatment::Keep);
    assert_eq!(changed.collect::<Vec<_>>(), [(4, Treatment::Stub)]);
    assert_eq!(receipt.pins.dropped[0].position, 4);
    assert!(receipt.pins.pinned.is_empty(), "it is an instruction file");
    let undone = [drop, wish(WishKind::Undo, &transcript, 4)];
    let (_, receipt, _) = last(&transcript, &policy(u64::MAX), &terms, &undone);
    assert!(receipt.pins.dropped.is_empty());
    assert_eq!(receipt.pins.pinned[0].reason, Reason::Instructions);
}

#[test]
fn a_drop_waits_until_it_pays_and_never_changes_what_thinking_is_bound_to() {
    let transcript = reads(&PATHS);
    let end = transcript.entries().len();
    let settle = Settle { enabled: false, ..Settle::default() };
    let policy = Policy::Bounded(Bounds { settle, ..Bounds::default() });
    let run = |terms: &Terms, at: Position| {
        let mut state = State::default();
        let mut changed = Vec::new();
        for position in transcript.requests().chain([end]) {
            if position + 2 > end {
                state.wish([wish(WishKind::Drop, &transcript, at)]);
            }
            let (_, receipt) = bound(&transcript, position, &policy, terms, &mut state);
            changed.extend(receipt.changes.iter().map(|one| one.position));
        }
        changed
    };
    // Ten further calls are expected: what stands far behind is written again for less than that saves.
    let cached = Prices { cache_read: 0.1, cache_write: 1.25, ..Prices::PLAIN };
    let mut terms: Terms = cached.into();
    assert_eq!(run(&terms, 10), [10]);
    assert!(run(&terms, 2).is_empty(), "five reads would be written again");
    terms.append_only = true;
    assert!(run(&terms, 10).is_empty());
}

#[test]
fn a_dropped_call_takes_its_results_with_it() {
    let transcript = reads(&PATHS);
    let mut pins = Pins::default();
    pins.wish([wish(WishKind::Drop, &transcript, 3)]);
    let sorted = pins.sort(&transcript, transcript.entries().len(), None);
    assert_eq!(sorted.dropped.into_iter().collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn what_a_compaction_took_stands_behind_the_summary_and_keeps_its_bytes() {
    let transcript = reads(&PATHS);
    let (policy, terms) = (Policy::plimsoll(), Prices::PLAIN.into());
    let pin = wish(WishKind::Pin, &transcript, 2);
    let (_, _, mut state) = last(&transcript, &policy, &terms, &[pin]);
    let texts = state.pinned_texts(&transcript, &policy);
    assert_eq!(texts.len(), 2);
    let summary = Message::text(Role::User, "This session is being continued.");
    let shown =
        [Arc::new(summary.clone()), Arc::new(Message::text(Role::User, lines("a.rs", 150)))];
    assert_eq!(missing(texts.clone(), &shown).len(), 1, "a text that is shown is not missing");
    let mut after = Transcript::new(Tokenizer::Estimate);
    after.push(summary);
    let mut state = State::default();
    state.show_again(missing(texts.clone(), &shown[..1]));
    let (first, receipt) = bound(&after, 1, &policy, &terms, &mut state);
    let said = first[0].message.shown();
    assert!(said.contains("a.rs line 149") && said.contains("docs/CLAUDE.md line 149"), "{said}");
    assert_eq!(receipt.pins.again.len(), 2);
    assert!(receipt.components.pinned > 0);
    after.push(Message::text(Role::Assistant, "Going on."));
    after.push(Message::text(Role::User, "Go on."));
    let (second, _) = bound(&after, 3, &policy, &terms, &mut state);
    assert_eq!(second[0].hash, first[0].hash);
    assert!(!second[2].message.shown().contains("Pinned"));
    let again = state.pinned_texts(&after, &policy);
    assert_eq!(again.len(), 2, "a second compaction finds them too");
}

#[test]
fn a_preview_tells_of_large_changes_only() {
    let transcript = reads(&PATHS);
    let terms = Prices::PLAIN.into();
    let (_, mut receipt, _) = last(&transcript, &policies()[3], &terms, &[]);
    let (_, whole, _) = last(&transcript, &Policy::Full, &terms, &[]);
    assert_eq!(whole.preview(), None);
    receipt.changes.clear();
    assert_eq!(receipt.preview(), None);
    let mut state = State::default();
    let end = transcript.entries().len();
    let (_, receipt) = bound(&transcript, end, &policies()[3], &terms, &mut state);
    let preview = receipt.preview().expect("a large change");
    assert_eq!(preview.tokens, receipt.full_tokens - receipt.tokens);
    assert_eq!(preview.messages.len(), receipt.changes.len());
}
