//! Sessions in memory: each a copy of what the store has, and let go when there are too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_engine::live::{Conversation, LiveSession};
use plimsoll_engine::{HistoryStore, SessionId, StoreError, TenantId};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A conversation, or `None` until it is read from the store.
pub(crate) type Held = Arc<AsyncMutex<Option<Conversation>>>;

/// The key of a conversation.
pub(crate) type SessionKey = (TenantId, SessionId);

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

/// All conversations in memory.
#[derive(Debug)]
pub(crate) struct Sessions {
    all: Mutex<All>,
    most: usize,
}

#[derive(Debug, Default)]
struct All {
    slots: HashMap<SessionKey, Slot>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    held: Held,
    used: u64,
    bytes: usize,
}

impl Sessions {
    /// Makes a place for conversations of at most `most` bytes together, as far as none of them is in use.
    pub(crate) fn new(most: usize) -> Self {
        Self { all: Mutex::default(), most }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, All> {
        // Nothing that holds it can leave it half changed.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many there are and about how much memory they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let all = self.all();
        (all.slots.len(), all.bytes)
    }

    /// Tells whether a conversation is in memory.
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.all().slots.contains_key(key)
    }

    /// Returns a conversation, to be read by [`read`] where it is not there yet.
    pub(crate) fn get(&self, key: &SessionKey) -> Held {
        let mut all = self.all();
        all.uses += 1;
        let used = all.uses;
        let slot = all.slots.entry(key.clone()).or_insert_with(|| Slot {
            held: Held::default(),
            used,
            bytes: 0,
        });
        slot.used = used;
        slot.held.clone()
    }

    /// Takes note of a conversation's size, and lets go what was not used for longest where there is too much.
    pub(crate) fn resize(&self, key: &SessionKey, bytes: usize) {
        let mut all = self.all();
        let Some(slot) = all.slots.get_mut(key) else { return };
        let before = std::mem::replace(&mut slot.bytes, bytes);
        all.bytes = all.bytes - before + bytes;
        while all.bytes > self.most {
            let idle = all.slots.iter().filter(|(_, slot)| Arc::strong_count(&slot.held) == 1);
            let Some(oldest) = idle.min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone())
            else {
                break;
            };
            if let Some(slot) = all.slots.remove(&oldest) {
                all.bytes -= slot.bytes;
            }
        }
    }

    /// Forgets a conversation that is no longer what the store has.
    pub(crate) fn forget(&self, key: &SessionKey) {
        let mut all = self.all();
        if let Some(slot) = all.slots.remove(key) {
            all.bytes -= slot.bytes;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SessionKey {
        (TenantId::default(), SessionId::new(name).expect("an id"))
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let sessions = Sessions::new(100);
        for name in ["a", "b"] {
            drop(sessions.get(&key(name)));
            sessions.resize(&key(name), 50);
        }
        drop(sessions.get(&key("a")));
        let in_use = sessions.get(&key("c"));
        sessions.resize(&key("c"), 60);
        assert!(!sessions.has(&key("b")));
        assert!(!sessions.has(&key("a")), "110 bytes are still too many");
        assert_eq!(sessions.size(), (1, 60));
        sessions.resize(&key("c"), 200);
        assert!(sessions.has(&key("c")), "what is in use stays");
        drop(in_use);
        sessions.forget(&key("c"));
        assert_eq!(sessions.size(), (0, 0));
    }
}
