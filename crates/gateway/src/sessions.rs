//! Sessions in memory: each a copy of what the store has, and let go when there are too many.

use plimsoll_engine::live::Conversation;
use plimsoll_engine::{Copies, HistoryStore, OwnedMutexGuard, SessionId, StoreError, TenantId};

/// A conversation, or `None` until it is read from the store.
pub(crate) type Held = plimsoll_engine::Held<Option<Conversation>>;

/// The tenant and the name of a conversation.
pub(crate) type Key = (TenantId, SessionId);

/// All conversations in memory, by their bytes.
pub(crate) type Sessions = Copies<Key, Option<Conversation>>;

/// Waits for a conversation, and reads it where it is not in memory.
pub(crate) async fn read(
    held: Held,
    key: &Key,
    history: &dyn HistoryStore,
) -> Result<OwnedMutexGuard<Option<Conversation>>, StoreError> {
    let mut guard = held.lock_owned().await;
    if guard.is_none() {
        *guard = Some(Conversation::load(history, &key.0, key.1.clone()).await?);
    }
    Ok(guard)
}
