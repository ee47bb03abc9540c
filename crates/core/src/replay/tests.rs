use std::sync::Arc;

use super::*;
use crate::cost::Prices;
use crate::message::{Role, Usage};
use crate::policy::Policy;
use crate::terms::Surroundings;
use crate::tokens::Tokenizer;

fn transcript(said: &[(Role, &str, i64)]) -> Transcript {
    let mut transcript = Transcript::new(Tokenizer::Characters { per_token: 1.0 });
    for (role, text, seconds) in said {
        let mut message = Message::text(*role, *text);
        message.time = Some(MillisSinceEpoch(seconds * 1000));
        transcript.push(message);
    }
    transcript
}

fn terms() -> Terms {
    let around = Surroundings { before: 1000.0, ..Surroundings::default() };
    let prices = Prices { cache: CacheKind::Marks, cache_least: 0, ..Prices::PLAIN };
    Terms { around, ..Terms::new(prices) }
}

#[test]
fn every_answer_is_replayed_with_the_context_of_its_time() {
    let before = transcript(&[
        (Role::User, "one", 0),
        (Role::Assistant, "two", 1),
        (Role::User, "three", 2),
        (Role::Assistant, "four", 3),
    ]);
    let after = transcript(&[
        (Role::User, "summary", 4),
        (Role::Assistant, "four", 3),
        (Role::User, "five", 5),
        (Role::Assistant, "six", 6),
    ]);
    for pause in [false, true] {
        let mut late = Transcript::new(after.tokenizer());
        for entry in after.entries() {
            let mut message = (*entry.message).clone();
            message.time = message.time.map(|time| {
                MillisSinceEpoch(time.0 + if pause && time.0 > 3000 { 900_000 } else { 0 })
            });
            late.push(message);
        }
        let stretches = [Stretch::from(&before), Stretch { transcript: &late, known: 2 }];
        let mut contexts = Vec::new();
        let replay = replay_stretches(
            stretches,
            &Policy::Full,
            0.0,
            |_| terms(),
            |turn| {
                let texts =
                    turn.context.iter().map(|sent| sent.message.shown()).collect::<Vec<_>>();
                contexts.push((turn.receipt.turn, turn.stretch, texts.join(" ")));
            },
        );
        let expected = [(0, 0, "one"), (1, 0, "one two three"), (2, 1, "summary four five")];
        assert_eq!(
            contexts,
            expected.map(|(turn, stretch, text)| (turn, stretch, text.to_owned()))
        );
        let last = replay.receipts[2].charge;
        let read = if pause { 0.0 } else { 1000.0 };
        assert!((last.cached - read).abs() < 1e-9, "tools and system prompt stay: {last:?}");
        assert_eq!(replay.totals.turns, 3);
    }
}

#[test]
fn the_bill_is_that_of_the_usage_and_stands_beside_the_policy() {
    let mut transcript = Transcript::new(Tokenizer::Characters { per_token: 1.0 });
    transcript.push(Message::text(Role::User, "go"));
    let mut answer = Message::text(Role::Assistant, "done");
    answer.usage = Some(Usage { prompt_tokens: 2000, output_tokens: 100, ..Usage::default() });
    transcript.push(Arc::new(answer));
    transcript.push(Message::text(Role::User, "on"));
    transcript.push(Message::text(Role::Assistant, "again"));
    let totals = replay(&transcript, &Policy::Full, &terms(), |_| ()).totals;
    let dollars = totals.dollars;
    assert_eq!((totals.turns, dollars.billed_turns), (2, 1));
    assert!((dollars.billed - (2000.0 + 500.0) / 1e6).abs() < 1e-12);
    // 1,006 tokens are written at 1.25.
    assert!((dollars.beside - (1006.0 * 1.25 + 500.0) / 1e6).abs() < 1e-12, "{dollars:?}");
    assert!(dollars.of_bill().is_some_and(|part| part < 1.0));
}
