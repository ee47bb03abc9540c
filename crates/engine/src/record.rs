//! Messages and decisions as the records that history keeps.

use plimsoll_core::context::Receipt;
use plimsoll_core::plan::{Context, Plan, Treatment};
use plimsoll_core::select::{SelectedMessage, Selection};
use plimsoll_core::{MillisSinceEpoch, Position, Transcript};
use serde::Serialize;

use crate::error::StoreError;
use crate::history::{HistoryBatch, HistoryStore, MessageRecord, ReceiptRecord, SelectionType};
use crate::id::{SessionId, TenantId};

/// Returns the messages of a transcript as records.
pub fn message_records(
    session: &SessionId,
    transcript: &Transcript,
    recorded_at: MillisSinceEpoch,
) -> Vec<MessageRecord> {
    records_from(session, transcript, 0, recorded_at)
}

/// Returns the messages of a transcript from a position on as records.
pub(crate) fn records_from(
    session: &SessionId,
    transcript: &Transcript,
    from: Position,
    recorded_at: MillisSinceEpoch,
) -> Vec<MessageRecord> {
    let entries = transcript.entries().iter().enumerate().skip(from);
    let records = entries.map(|(position, entry)| MessageRecord {
        session: session.clone(),
        position: position as u32,
        hash: entry.hash,
        message: (*entry.message).clone(),
        tokens: entry.tokens,
        turn: entry.turn,
        recorded_at,
    });
    records.collect()
}

impl ReceiptRecord {
    /// Makes the record of a decision; its figures are 0 and its hashes empty until they are set.
    pub fn new(
        session: &SessionId,
        turn: u32,
        selection_type: SelectionType,
        strategy: &str,
        receipt: &impl Serialize,
        recorded_at: MillisSinceEpoch,
    ) -> Self {
        Self {
            session: session.clone(),
            turn,
            trace_id: format!("{session}:{turn}:{strategy}"),
            cascade_id: None,
            selection_type,
            strategy: strategy.to_owned(),
            full_history_size: 0,
            context_size: 0,
            masked_count: 0,
            anchor_hashes: Vec::new(),
            selected_hashes: Vec::new(),
            tokens_saved: 0,
            bill: None,
            receipt: serde_json::to_string(receipt).unwrap_or_default(),
            recorded_at,
        }
    }

    /// Makes the record of a bounded context; `strategy` is the policy's name.
    ///
    /// Anchors are the messages that a pass protected, selected those that were sent unchanged, masked those of any other
    /// treatment.
    pub fn of_context(
        session: &SessionId,
        strategy: &str,
        receipt: &Receipt,
        context: &Context,
        plan: &Plan,
        recorded_at: MillisSinceEpoch,
    ) -> Self {
        let decisions = plan.decisions();
        let is_whole = |position: usize| decisions[position].treatment == Treatment::Keep;
        let positions = 0..decisions.len();
        let whole = context.iter().filter(|sent| sent.position.is_some_and(is_whole));
        let kind = SelectionType::IntraPhase;
        Self {
            full_history_size: receipt.full_messages as u32,
            context_size: receipt.messages as u32,
            masked_count: positions.clone().filter(|&position| !is_whole(position)).count() as u32,
            anchor_hashes: positions
                .filter(|&position| plan.is_protected(position))
                .map(|position| decisions[position].whole.hash.short())
                .collect(),
            selected_hashes: whole.map(|sent| sent.hash.short()).collect(),
            tokens_saved: receipt.full_tokens.cast_signed() - receipt.tokens.cast_signed(),
            ..Self::new(session, receipt.turn, kind, strategy, receipt, recorded_at)
        }
    }

    /// Makes the record of a selection among `candidates` messages.
    pub fn of_selection(
        session: &SessionId,
        turn: u32,
        selection: &Selection,
        candidates: usize,
        recorded_at: MillisSinceEpoch,
    ) -> Self {
        let hashes =
            |chosen: &[SelectedMessage]| chosen.iter().map(|one| one.hash.clone()).collect();
        let (kind, strategy) = (SelectionType::InterPhase, selection.used.as_str());
        Self {
            trace_id: format!("{session}:{turn}:{}:{strategy}", kind.as_str()),
            full_history_size: candidates as u32,
            context_size: (selection.anchors.len() + selection.chosen.len()) as u32,
            anchor_hashes: hashes(&selection.anchors),
            selected_hashes: hashes(&selection.chosen),
            ..Self::new(session, turn, kind, strategy, selection, recorded_at)
        }
    }

    /// Returns it with the number that its session gives it.
    #[must_use]
    pub fn with_turn(mut self, turn: u32) -> Self {
        self.turn = turn;
        self.trace_id = format!("{}:{turn}:{}", self.session, self.strategy);
        self
    }

    /// Returns it as a branch has it, of a request that was made before the branch began: what it saved and cost stands with the
    /// session that the branch left.
    #[must_use]
    pub fn inherited(mut self, branch: &SessionId) -> Self {
        self.session = branch.clone();
        self.bill = None;
        self.tokens_saved = 0;
        self
    }

    /// Appends it as the next of its strategy in its session.
    pub async fn append_next(
        self,
        history: &dyn HistoryStore,
        tenant: &TenantId,
    ) -> Result<(), StoreError> {
        let earlier = history.receipts(tenant, &self.session).await?;
        let turn = earlier.iter().filter(|one| one.strategy == self.strategy).count() as u32;
        let batch =
            HistoryBatch { receipts: vec![self.with_turn(turn)], ..HistoryBatch::default() };
        history.append(tenant, batch).await.map(|_| ())
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
        let plan = state.plan();
        let record = ReceiptRecord::of_context(&session, "plimsoll", &receipt, &context, plan, at);
        assert_eq!((record.full_history_size, record.context_size), (3, 3));
        assert_eq!((record.masked_count, record.tokens_saved), (0, 0));
        assert_eq!(record.selected_hashes.len(), 3);
        let anchors = [0, 2].map(|at: usize| transcript.entries()[at].hash.short());
        assert_eq!(record.anchor_hashes, anchors);
        assert_eq!(message_records(&session, &transcript, at).len(), 3);
    }
}
