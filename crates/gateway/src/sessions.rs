//! Sessions in memory: each a copy of what the store has. The oldest are dropped when there are too many.

use plimsoll_engine::live::{Conversation, LiveSession};
use plimsoll_engine::{Copies, HistoryStore, OwnedMutexGuard, SessionId, StoreError, TenantId};

/// A conversation, or `None` until it is read from the store.
pub(crate) type Held = plimsoll_engine::Held<Option<Conversation>>;

/// The tenant and the name of a conversation.
pub(crate) type SessionKey = (TenantId, SessionId);

/// All conversations in memory, by their bytes.
pub(crate) type Sessions = Copies<SessionKey, Option<Conversation>>;

/// A branch of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct SessionBranch {
    pub(crate) key: SessionKey,
    pub(crate) held: Held,
    /// The number of the branch in its conversation.
    pub(crate) number: usize,
}

impl SessionBranch {
    /// Reads the branch; `None` where the conversation is not in memory.
    pub(crate) async fn read<T>(&self, read: impl FnOnce(&LiveSession) -> T) -> Option<T> {
        let guard = self.held.lock().await;
        guard.as_ref()?.branch(self.number).map(read)
    }
}

/// Waits for a conversation, and reads it where it is not in memory.
pub(crate) async fn read(
    held: Held,
    key: &SessionKey,
    history: &dyn HistoryStore,
) -> Result<OwnedMutexGuard<Option<Conversation>>, StoreError> {
    let mut guard = held.lock_owned().await;
    if guard.is_none() {
        *guard = Some(Conversation::load(history, &key.0, key.1.clone()).await?);
    }
    Ok(guard)
}
