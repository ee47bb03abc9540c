//! Sessions that requests take turns in: one request of each at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::conversation::LoadConversation;

/// Conversations that wait for their next request, longest first.
#[derive(Debug, Clone)]
pub(crate) struct SessionQueue {
    waiting: Arc<Mutex<VecDeque<LoadConversation>>>,
    room: Arc<Semaphore>,
}

impl SessionQueue {
    pub(crate) fn new(conversations: impl IntoIterator<Item = LoadConversation>) -> Self {
        let waiting: VecDeque<_> = conversations.into_iter().collect();
        let room = Arc::new(Semaphore::new(waiting.len()));
        Self { waiting: Arc::new(Mutex::new(waiting)), room }
    }

    /// Waits for a conversation that nobody is using.
    pub(crate) async fn take(&self) -> Option<(LoadConversation, OwnedSemaphorePermit)> {
        let permit = self.room.clone().acquire_owned().await.ok()?;
        let next = self.waiting.lock().expect("nothing panics while it holds this").pop_front()?;
        Some((next, permit))
    }

    /// Returns a conversation to the end of the line.
    pub(crate) fn give_back(&self, conversation: LoadConversation, permit: OwnedSemaphorePermit) {
        let waiting = &mut *self.waiting.lock().expect("nothing panics while it holds this");
        waiting.push_back(conversation);
        drop(permit);
    }
}
