//! The sessions that pause: which of them are kept warm, and how much memory their requests take.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::sessions::SessionKey;

/// The most bytes of all requests that are held to be read again (chosen: two of the largest).
const MOST_BYTES: usize = 64 << 20;

/// The sessions that pause.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<OpenPauses>);

#[derive(Debug, Default)]
struct OpenPauses {
    all: HashMap<SessionKey, OpenPause>,
    bytes: usize,
    begun: u64,
}

/// A pause; its reads end when this is dropped.
#[derive(Debug)]
struct OpenPause {
    number: u64,
    bytes: usize,
    _over: oneshot::Sender<()>,
}

impl OpenPauses {
    fn remove(&mut self, key: &SessionKey) {
        if let Some(pause) = self.all.remove(key) {
            self.bytes -= pause.bytes;
        }
    }
}

impl Pauses {
    fn open(&self) -> MutexGuard<'_, OpenPauses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the pause of a session that its client goes on with.
    pub(crate) fn end(&self, key: &SessionKey) {
        self.open().remove(key);
    }

    /// Begins a pause of a request of so many bytes; `None` where `most` sessions pause or the memory is used up.
    ///
    /// Returns the number of the pause, and a receiver that is ready when the pause is over.
    pub(crate) fn begin(
        &self,
        key: &SessionKey,
        bytes: usize,
        most: usize,
    ) -> Option<(u64, oneshot::Receiver<()>)> {
        let mut open = self.open();
        open.remove(key);
        if open.all.len() >= most || open.bytes + bytes > MOST_BYTES {
            return None;
        }
        let (over, is_over) = oneshot::channel();
        open.begun += 1;
        open.bytes += bytes;
        let number = open.begun;
        open.all.insert(key.clone(), OpenPause { number, bytes, _over: over });
        Some((number, is_over))
    }

    /// Removes a pause that has no further reads, unless the session pauses anew.
    pub(crate) fn done(&self, key: &SessionKey, number: u64) {
        let mut open = self.open();
        if open.all.get(key).is_some_and(|pause| pause.number == number) {
            open.remove(key);
        }
    }
}
