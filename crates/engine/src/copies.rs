//! Copies of what a store has, in memory: each behind a lock of its own, and dropped when all are too large together.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};

use futures_util::lock::Mutex;

/// A copy, alive for as long as somebody uses it.
pub type SharedCopy<V> = Arc<Mutex<V>>;

/// Copies by key; whoever waits for the store with one of them holds up nobody else.
#[derive(Debug)]
pub struct Copies<K, V> {
    all: SyncMutex<All<K, V>>,
    most: usize,
}

#[derive(Debug)]
struct All<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// The key of each slot by its last use.
    order: BTreeMap<u64, K>,
    uses: u64,
    size: usize,
}

#[derive(Debug)]
struct Slot<V> {
    held: SharedCopy<V>,
    used: u64,
    size: usize,
}

impl<K: Clone + Eq + Hash, V> Copies<K, V> {
    /// Makes room for copies of the size `most` together, as far as none of them is in use.
    pub fn new(most: usize) -> Self {
        let all = All { slots: HashMap::new(), order: BTreeMap::new(), uses: 0, size: 0 };
        Self { all: SyncMutex::new(all), most }
    }

    fn all(&self) -> MutexGuard<'_, All<K, V>> {
        // No holder can leave it half changed.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of copies and their size.
    pub fn size(&self) -> (usize, usize) {
        let all = self.all();
        (all.slots.len(), all.size)
    }

    /// Returns whether there is a copy of this key.
    pub fn has(&self, key: &K) -> bool {
        self.all().slots.contains_key(key)
    }

    /// Returns the copy of a key; `new` makes it where there is none.
    pub fn get(&self, key: &K, new: impl FnOnce() -> V) -> SharedCopy<V> {
        let mut guard = self.all();
        let all = &mut *guard;
        all.uses += 1;
        let slot = all.slots.entry(key.clone()).or_insert_with(|| Slot {
            held: Arc::new(Mutex::new(new())),
            used: all.uses,
            size: 0,
        });
        let before = std::mem::replace(&mut slot.used, all.uses);
        all.order.remove(&before);
        all.order.insert(all.uses, key.clone());
        slot.held.clone()
    }

    /// Sets the size of a copy, and drops those that were not used for longest where all are too large.
    pub fn resize(&self, key: &K, size: usize) {
        let mut all = self.all();
        let Some(slot) = all.slots.get_mut(key) else { return };
        let before = std::mem::replace(&mut slot.size, size);
        all.size = all.size - before + size;
        let mut left = Vec::new();
        while all.size > self.most {
            let is_idle = |key: &&K| {
                all.slots.get(*key).is_some_and(|slot| Arc::strong_count(&slot.held) == 1)
            };
            let Some(oldest) = all.order.values().find(is_idle).cloned() else { break };
            left.extend(all.remove(&oldest));
        }
        // Freeing a long session takes a while, in which others need theirs.
        drop(all);
        drop(left);
    }

    /// Drops a copy that is no longer what the store has.
    pub fn forget(&self, key: &K) {
        let left = self.all().remove(key);
        drop(left);
    }
}

impl<K: Eq + Hash, V> All<K, V> {
    fn remove(&mut self, key: &K) -> Option<Slot<V>> {
        let slot = self.slots.remove(key)?;
        self.order.remove(&slot.used);
        self.size -= slot.size;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_that_was_not_used_for_longest_goes_first() {
        let copies = Copies::<&str, ()>::new(100);
        let get = |name| copies.get(&name, || ());
        for name in ["a", "b"] {
            drop(get(name));
            copies.resize(&name, 50);
        }
        drop(get("a"));
        let in_use = get("c");
        copies.resize(&"c", 60);
        assert!(!copies.has(&"b"));
        assert!(!copies.has(&"a"), "110 are still too many");
        assert_eq!(copies.size(), (1, 60));
        copies.resize(&"c", 200);
        assert!(copies.has(&"c"), "what is in use stays");
        drop(in_use);
        copies.forget(&"c");
        assert_eq!(copies.size(), (0, 0));
    }

    #[test]
    fn others_get_theirs_while_a_copy_is_freed() {
        struct Freed(std::sync::Weak<Copies<u8, Self>>, std::sync::mpsc::Sender<bool>);
        impl Drop for Freed {
            fn drop(&mut self) {
                let Some(copies) = self.0.upgrade() else { return };
                let _ = self.1.send(copies.all.try_lock().is_ok());
            }
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        let copies = Arc::new(Copies::new(100));
        for key in 0..3 {
            drop(copies.get(&key, || Freed(Arc::downgrade(&copies), sender.clone())));
            copies.resize(&key, 60);
        }
        copies.forget(&2);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [true, true, true]);
    }
}
