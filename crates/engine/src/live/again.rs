//! The requests of a stored session, bounded again one after the other for somebody who looks at them.

use plimsoll_core::context::{Receipt, State};
use plimsoll_core::cost::Pricing;
use plimsoll_core::plan::Context;
use plimsoll_core::{Position, Transcript};

use super::{LiveSession, rebuild};
use crate::error::StoreError;
use crate::history::HistoryStore;
use crate::id::{SessionId, TenantId};

/// A request as it was bounded.
#[derive(Debug)]
pub struct RequestAgain<'a> {
    /// Its number, by which its receipt is stored as the turn.
    pub number: u32,
    pub strategy: &'a str,
    pub model: Option<&'a str>,
    pub position: Position,
    pub transcript: &'a Transcript,
    pub context: &'a Context,
    pub receipt: &'a Receipt,
    pub state: &'a State,
    /// Whether the request went out as it came, so that the context was not sent.
    pub went_out_as_it_came: bool,
}

impl LiveSession {
    /// Reads a session to look at; `None` where the store has no messages of it.
    pub async fn stored(
        history: &dyn HistoryStore,
        tenant: &TenantId,
        id: &SessionId,
    ) -> Result<Option<Self>, StoreError> {
        rebuild::load(history, tenant, id.clone()).await
    }

    /// Returns whether its receipts say how each request was made; those of an imported session do not.
    pub fn has_requests(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Bounds its requests again, oldest first; one that repeats the request before is passed over.
    pub fn requests_again(mut self, pricing: &Pricing, mut each: impl FnMut(RequestAgain<'_>)) {
        self.wake_with(pricing, &mut each);
    }
}
