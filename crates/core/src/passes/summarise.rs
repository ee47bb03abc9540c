//! The session trimmer as a policy: turns of high priority stay, and a summary stands for the rest.

use std::sync::Arc;

use crate::allocation::ContextBudget;
use crate::choose::Reason;
use crate::message::{Message, Role};
use crate::pins::SortedPins;
use crate::plan::{Plan, Sent, Treatment};
use crate::transcript::{Position, Transcript};
use crate::trim::{TrimSettings, trim};

/// Trims the first `end` messages if that is due; returns a warning if the turns that are always kept exceed the budget.
///
/// Between two trims the plan stays as it is, as a trimmed session file does.
pub(crate) fn summarise(
    transcript: &Transcript,
    end: Position,
    budget: &ContextBudget,
    pins: &SortedPins,
    plan: &mut Plan,
) -> Option<String> {
    if !budget.trimming_due(plan.tokens()) {
        return None;
    }
    let before = plan.reset();
    pins.protect_exchanges(transcript, plan);
    let session = trim(&transcript.beginning(end), &TrimSettings::from(budget));
    let tokenizer = transcript.tokenizer();
    let place = session.kept.get(session.summary_at).map_or(end, |turn| turn.position);
    for turn in &session.kept {
        plan.explain(turn.position, turn.reason);
        if turn.compressed {
            let form = Sent::rendered(Some(turn.position), (*turn.message).clone(), tokenizer);
            let form = Arc::new(form);
            plan.reduce(transcript, turn.position, Treatment::Excerpt, turn.reason, form);
        }
    }
    for &position in &session.summarized {
        let form = plan.decisions()[position].form.clone();
        plan.reduce(transcript, position, Treatment::Omit, Reason::Summarised, form);
    }
    if !session.summary.is_empty() {
        let summary = Message::text(Role::User, session.summary.as_str());
        plan.insert(place, Sent::rendered(None, summary, tokenizer));
    }
    plan.compare(transcript, &before);
    let over = session.over_ceiling;
    (over > 0).then(|| format!("the turns that are always kept exceed the budget by {over} tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{State, bound};
    use crate::cost::Prices;
    use crate::policy::Policy;
    use crate::tokens::Tokenizer;

    #[test]
    fn a_session_is_trimmed_when_it_is_due_and_keeps_its_bytes_until_it_is_due_again() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for number in 0..120 {
            let role = if number % 2 == 0 { Role::User } else { Role::Assistant };
            let text = format!("Turn {number} goes on about things. {}", "And more. ".repeat(9));
            transcript.push(Message::text(role, text));
        }
        let budget = ContextBudget { total_tokens: 3000, ..ContextBudget::default() };
        let (policy, terms) = (Policy::Trim(budget), Prices::PLAIN.into());
        let mut state = State::default();
        let (mut trims, mut before) = (Vec::new(), Vec::new());
        for position in transcript.requests() {
            let (context, receipt) = bound(&transcript, position, &policy, &terms, &mut state);
            let hashes: Vec<_> = context.iter().map(|sent| sent.hash).collect();
            let tokens: u64 = context.iter().map(|sent| u64::from(sent.tokens)).sum();
            assert_eq!(receipt.tokens, tokens);
            if hashes.starts_with(&before) {
                assert!(!budget.trimming_due(tokens), "{tokens} at {position}");
            } else {
                trims.push(position);
                assert!(tokens <= budget.session_budget(), "{tokens} at {position}");
                let summary = context.iter().find(|sent| sent.position.is_none());
                let text = summary.expect("a summary").message.shown();
                assert!(text.starts_with("[Earlier conversation summary"), "{text}");
            }
            before = hashes;
        }
        assert!((2..30).contains(&trims.len()), "{trims:?}");
    }
}
