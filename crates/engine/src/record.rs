//! Recording: a transcript and its receipts as the records that history keeps.

use plimsoll_core::context::Receipt;
use plimsoll_core::plan::{Context, Plan, Treatment};
use plimsoll_core::{ContentHash, MillisSinceEpoch, Transcript};

use crate::history::{MessageRecord, ReceiptRecord, SelectionType};
use crate::id::SessionId;

/// Returns the messages of a transcript as records.
pub fn message_records(
    session: &SessionId,
    transcript: &Transcript,
    recorded_at: MillisSinceEpoch,
) -> Vec<MessageRecord> {
    transcript
        .entries()
        .iter()
        .enumerate()
        .map(|(position, entry)| MessageRecord {
            session: session.clone(),
            position: position as u32,
            hash: entry.hash,
            message: (*entry.message).clone(),
            tokens: entry.tokens,
            turn: entry.turn,
            recorded_at,
        })
        .collect()
}

/// Returns the record of one context decision.
///
/// Anchors are the messages that a pass protected, selected are those that were sent as they were said, masked those of
/// any other treatment. `strategy` is the policy's name.
pub fn receipt_record(
    session: &SessionId,
    strategy: &str,
    receipt: &Receipt,
    context: &Context,
    plan: &Plan,
    recorded_at: MillisSinceEpoch,
) -> ReceiptRecord {
    let decisions = plan.decisions();
    let hash = |hash: ContentHash| hash.short();
    let kept = |position: &usize| decisions[*position].treatment == Treatment::Keep;
    ReceiptRecord {
        session: session.clone(),
        turn: receipt.turn,
        trace_id: format!("{session}:{}:{strategy}", receipt.turn),
        cascade_id: None,
        selection_type: SelectionType::IntraPhase,
        strategy: strategy.to_owned(),
        full_history_size: receipt.full_messages as u32,
        context_size: receipt.messages as u32,
        masked_count: (0..decisions.len()).filter(|position| !kept(position)).count() as u32,
        anchor_hashes: (0..decisions.len())
            .filter(|&position| plan.is_protected(position))
            .map(|position| hash(decisions[position].whole.hash))
            .collect(),
        selected_hashes: context
            .iter()
            .filter(|sent| sent.position.is_some_and(|position| kept(&position)))
            .map(|sent| hash(sent.hash))
            .collect(),
        tokens_saved: receipt.full_tokens.cast_signed() - receipt.tokens.cast_signed(),
        bill: None,
        receipt: serde_json::to_string(receipt).unwrap_or_default(),
        recorded_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::context::{State, bound};
    use plimsoll_core::cost::Pricing;
    use plimsoll_core::policy::Policy;
    use plimsoll_core::{Message, Role, Tokenizer};

    #[test]
    fn a_receipt_tells_what_was_sent_whole() {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "the task"));
        transcript.push(Message::text(Role::Assistant, "a first answer"));
        transcript.push(Message::text(Role::User, "more"));
        let terms = Pricing::shipped().of(None, None).prices.into();
        let mut state = State::default();
        let (context, receipt) = bound(&transcript, 3, &Policy::plimsoll(), &terms, &mut state);
        let session = SessionId::new("s").expect("an id");
        let at = MillisSinceEpoch(7);
        let record = receipt_record(&session, "plimsoll", &receipt, &context, state.plan(), at);
        assert_eq!((record.full_history_size, record.context_size), (3, 3));
        assert_eq!((record.masked_count, record.tokens_saved), (0, 0));
        assert_eq!(record.selected_hashes.len(), 3);
        let anchors = [0, 2].map(|at: usize| transcript.entries()[at].hash.short());
        assert_eq!(record.anchor_hashes, anchors);
        assert_eq!(message_records(&session, &transcript, at).len(), 3);
    }
}
