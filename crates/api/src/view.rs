//! A stored session as it is looked at: read once, and held as long as it does not change.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plimsoll_core::counted_session::{CountedSession, MessageStretch};
use plimsoll_core::{Message, MillisSinceEpoch};
use plimsoll_engine::live::LiveSession;
use plimsoll_engine::{
    HistoryStore, ReceiptRecord, SessionId, SessionSummary, StoreError, TenantId,
};
use serde_json::Value;

/// Sessions that are held (chosen: what one person has open, at some megabytes each).
const HELD: usize = 4;

/// Messages that are read at once.
const PAGE: usize = 10_000;

/// What tells whether a session changed since it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ViewKey {
    tenant: TenantId,
    session: SessionId,
    messages: u32,
    last_at: MillisSinceEpoch,
    receipts: usize,
}

/// A session with its receipts.
#[derive(Debug)]
pub(crate) struct SessionView {
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) receipts: Vec<ReceiptRecord>,
    /// The session, if its receipts say how each request was made.
    pub(crate) live: Option<LiveSession>,
    counted: OnceLock<CountedSession>,
    /// Its turns as lists show them, once somebody asked for them.
    turns: OnceLock<Arc<WrittenTurns>>,
}

/// The turns of a session, written for a list.
#[derive(Debug)]
pub(crate) struct WrittenTurns {
    pub(crate) basis: &'static str,
    pub(crate) items: Vec<(u32, Value)>,
}

impl SessionView {
    /// Makes the view of messages that no store has.
    pub(crate) fn of_messages(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages,
            receipts: Vec::new(),
            live: None,
            counted: OnceLock::new(),
            turns: OnceLock::new(),
        }
    }

    /// Returns the model that most of its answers name first.
    pub(crate) fn model(&self) -> Option<&str> {
        self.messages.iter().find_map(|message| message.model.as_deref())
    }

    /// Returns its turns, which `write` writes where nobody asked for them before.
    pub(crate) fn turns(&self, write: impl FnOnce() -> WrittenTurns) -> Arc<WrittenTurns> {
        self.turns.get_or_init(|| Arc::new(write())).clone()
    }

    /// Returns the session counted by its own reports, as a replay needs it.
    pub(crate) fn counted(&self) -> &CountedSession {
        self.counted.get_or_init(|| {
            let all = MessageStretch { messages: &self.messages, known: 0 };
            CountedSession::count(&[], all, None, self.model(), |_| 0.0)
        })
    }
}

/// The sessions that were looked at last.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<(ViewKey, Arc<SessionView>)>>);

impl Views {
    fn held(&self, key: &ViewKey) -> Option<Arc<SessionView>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|(known, _)| known == key).map(|(_, view)| view.clone())
    }

    fn hold(&self, key: ViewKey, view: &Arc<SessionView>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(known, _)| (&known.tenant, &known.session) != (&key.tenant, &key.session));
        held.truncate(HELD - 1);
        held.insert(0, (key, view.clone()));
    }
}

/// Returns a session as it is now.
pub(crate) async fn view(
    views: &Views,
    history: &dyn HistoryStore,
    tenant: &TenantId,
    summary: SessionSummary,
) -> Result<Arc<SessionView>, StoreError> {
    let receipts = history.receipts(tenant, &summary.session).await?;
    let key = ViewKey {
        tenant: tenant.clone(),
        session: summary.session.clone(),
        messages: summary.messages,
        last_at: summary.last_at,
        receipts: receipts.len(),
    };
    if let Some(view) = views.held(&key) {
        return Ok(view);
    }
    let mut messages = Vec::new();
    loop {
        let from = messages.len() as u32;
        let records = history.messages(tenant, &summary.session, from, PAGE).await?;
        let is_last = records.len() < PAGE;
        messages.extend(records.into_iter().map(|record| Arc::new(record.message)));
        if is_last {
            break;
        }
    }
    let live = LiveSession::stored(history, tenant, &summary.session).await?;
    let live = live.filter(LiveSession::has_requests);
    let view = Arc::new(SessionView {
        messages,
        receipts,
        live,
        counted: OnceLock::new(),
        turns: OnceLock::new(),
    });
    views.hold(key, &view);
    Ok(view)
}
