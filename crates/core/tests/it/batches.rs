//! Batches of settled results: what they save, and that they never cost more than they may.

use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::{Policy, Settle};
use plimsoll_core::terms::Terms;
use plimsoll_core::{Block, Message, MillisSinceEpoch, Role, Tokenizer, ToolCall, Transcript};

use crate::transcripts::{run, transcript};

/// A session that lists one folder after the other and never comes back to what it saw.
fn session(steps: usize) -> Transcript {
    let mut messages = vec![Message::text(Role::User, "Rename every quay.")];
    for step in 0..steps {
        let id = format!("call-{step}");
        let arguments = format!("{{\"command\":\"rg quay crates/harbour_{step}\"}}");
        let call =
            ToolCall { id: id.as_str().into(), name: "bash".into(), arguments: arguments.into() };
        messages.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        let lines = (0..60).map(|line| {
            format!("crates/harbour_{step}/src/berth_{line}.rs: quay = {}\n", step * 100 + line)
        });
        messages.push(Message::result(id.as_str(), lines.collect::<String>()));
    }
    messages.push(Message::text(Role::Assistant, "All quays are renamed."));
    for (order, message) in messages.iter_mut().enumerate() {
        message.time = Some(MillisSinceEpoch(i64::try_from(order).unwrap_or(0) * 5000));
    }
    transcript(messages, Tokenizer::Characters { per_token: 3.3 })
}

fn cost(session: &Transcript, policy: &Policy, terms: &Terms) -> f64 {
    run(session, policy, terms).iter().map(|turn| turn.receipt.cost).sum()
}

#[test]
fn many_batches_cost_no_more_than_they_may() {
    let allowance = Settle::default().allowance;
    for model in ["claude-sonnet-4-5", "gpt-5.6-sol", "gpt-5.1", "gemini-3.1-pro"] {
        let terms: Terms = Pricing::shipped().of(Some(model), None).prices.into();
        for steps in [10, 20, 40, 80] {
            let session = session(steps);
            let full = cost(&session, &Policy::Full, &terms);
            let bounded = cost(&session, &Policy::plimsoll(), &terms);
            assert!(bounded <= full * (1.0 + allowance), "{model}, {steps}: {bounded} of {full}");
            // Measured: .81 of the full cost after 40 calls, .57 after 80, with entries at marks; less with other caches.
            if steps >= 40 {
                assert!(bounded <= full * 0.85, "{model}, {steps}: {bounded} of {full}");
            }
        }
    }
}

#[test]
fn a_batch_leaves_an_entry_that_the_next_one_reads() {
    let session = session(40);
    let terms: Terms = Pricing::shipped().of(Some("claude-sonnet-4-5"), None).prices.into();
    let mut entry: Option<(usize, f64)> = None;
    let mut batches = 0;
    for turn in run(&session, &Policy::plimsoll(), &terms) {
        let receipt = &turn.receipt;
        let Some(first) = receipt.changes.iter().map(|change| change.position).min() else {
            continue;
        };
        batches += 1;
        if let Some((mark, tokens)) = entry
            && first > mark
        {
            assert!(receipt.charge.cached >= tokens, "turn {}: {receipt:?}", receipt.turn);
        }
        let Some(&mark) = receipt.marks.last() else { panic!("turn {} has no mark", receipt.turn) };
        let before = turn.context.iter().take_while(|sent| sent.position <= Some(mark));
        entry = Some((mark, before.map(|sent| f64::from(sent.tokens)).sum()));
    }
    assert!(batches > 2, "{batches}");
}
