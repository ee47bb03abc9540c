//! A session from the store: the same requests bounded again, each when only what it knew is there.

use std::sync::Arc;

use plimsoll_core::Position;
use plimsoll_core::context::{State, bound};
use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::Policy;
use serde::Deserialize;

use super::note::Mark;
use super::request::LastDecision;
use super::{CacheRead, LiveSession, Note, RequestAgain};
use crate::error::StoreError;
use crate::history::{Bills, HistoryStore, ReceiptRecord};
use crate::id::{SessionId, TenantId};

/// Messages that are read at once.
const PAGE: usize = 10_000;

/// The part of a receipt that rebuilding reads.
#[derive(Debug, Deserialize)]
struct StoredRequest {
    position: Position,
    request: Note,
}

/// The receipt of a read that kept the cache warm.
#[derive(Debug, Deserialize)]
struct KeptWarm {
    kept_warm: CacheRead,
}

/// Reads a session; `None` where the store has none of this name.
pub(super) async fn load(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    id: SessionId,
) -> Result<Option<LiveSession>, StoreError> {
    let mut records = history.messages(tenant, &id, 0, PAGE).await?;
    if records.is_empty() {
        return Ok(None);
    }
    while records.len() % PAGE == 0 {
        let more = history.messages(tenant, &id, records.len() as u32, PAGE).await?;
        if more.is_empty() {
            break;
        }
        records.extend(more);
    }
    let mut marks: Vec<Mark> = Vec::new();
    let mut carried = Vec::new();
    let (mut bills, mut reads) = (Bills::default(), Vec::new());
    for record in history.receipts(tenant, &id).await? {
        if let Some(bill) = &record.bill {
            bills.add(bill);
        }
        if let Ok(kept) = serde_json::from_str::<KeptWarm>(&record.receipt) {
            reads.push(kept.kept_warm);
        }
        // A session that was imported, or replayed into the store, has receipts without requests.
        let Ok(kept) = serde_json::from_str::<StoredRequest>(&record.receipt) else { continue };
        // Two gateways number the turns of one session apart: of what goes back, the first that was kept counts.
        if marks.last().is_some_and(|last: &Mark| last.position > kept.position) {
            continue;
        }
        let before = marks.last().map(|mark| &mark.policy);
        let policy = kept.request.policy.clone().or_else(|| before.cloned());
        let before = marks.last().map(|mark| &mark.around);
        let around = kept.request.around.clone().or_else(|| before.cloned());
        carried.extend(kept.request.carried.iter().cloned());
        marks.push(Mark {
            position: kept.position,
            policy: policy.unwrap_or(Policy::Full),
            around: around.unwrap_or_default(),
            strategy: record.strategy,
            note: kept.request,
            is_kept: true,
        });
    }
    let model = marks.first().and_then(|mark| mark.note.model.clone());
    let mut session = LiveSession::new(id, model.as_deref());
    for record in records {
        session.push_known(Arc::new(record.message), record.hash, record.tokens);
    }
    session.kept = session.transcript.entries().len();
    session.marks = marks;
    session.carried = carried;
    session.bills = bills;
    reads.sort_by_key(|read| read.at);
    session.reads = reads;
    session.state = None;
    Ok(Some(session))
}

impl LiveSession {
    /// Makes sure that the session knows what it knew when it was last asked.
    ///
    /// Messages behind a request's place are there already and do not matter: later messages decide nothing.
    pub(super) fn wake(&mut self, pricing: &Pricing) {
        if self.state.is_none() {
            self.wake_with(pricing, &mut |_| {});
        }
    }

    /// Bounds all requests so far again; `each` sees them.
    pub(super) fn wake_with(&mut self, pricing: &Pricing, each: &mut dyn FnMut(RequestAgain<'_>)) {
        let mut state = State::default();
        let marks = std::mem::take(&mut self.marks);
        let mut before: Option<&Mark> = None;
        for mark in &marks {
            let again =
                |before: &Mark| (before.position, &before.policy) == (mark.position, &mark.policy);
            if mark.position <= self.transcript.entries().len() && !before.is_some_and(again) {
                let model = mark.note.model.as_deref();
                let terms = self.terms(pricing, model, mark.position, &mark.around);
                self.charge_in_full(&terms, mark.position);
                state.offer(mark.note.added.clone());
                state.wish(mark.note.wishes.iter().cloned());
                state.show_again(mark.note.again.iter().cloned());
                let (context, receipt) =
                    bound(&self.transcript, mark.position, &mark.policy, &terms, &mut state);
                each(RequestAgain {
                    number: mark.note.number,
                    strategy: &mark.strategy,
                    model,
                    position: mark.position,
                    transcript: &self.transcript,
                    context: &context,
                    receipt: &receipt,
                    state: &state,
                    went_out_as_it_came: mark.note.observed || mark.note.late,
                });
                let at = self.transcript.time_before(mark.position).unwrap_or_default();
                let (id, plan) = (&self.id, state.plan());
                let record =
                    ReceiptRecord::of_context(id, &mark.strategy, &receipt, &context, plan, at);
                self.last = Some(LastDecision { position: mark.position, receipt, record });
            }
            for read in self.reads.iter().filter(|read| read.after == mark.note.number) {
                let model = mark.note.model.as_deref();
                state.read_again(&pricing.of(model, Some(read.at)).prices, read.at);
            }
            before = Some(mark);
        }
        self.marks = marks;
        self.state = Some(state);
    }
}
