//! Work on requests: as much of it at a time as there are processors, so that connections are served beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

/// Bodies up to this size are worked on where they came in (measured: 8 KiB take about as long as to hand them to a thread).
const SMALL: usize = 8 << 10;

/// Bodies up to so many times [`SMALL`] are read where they came in (measured: to read 64 KiB takes 0.12 ms, about as long as to hand
/// them to a thread).
const READING: usize = 8;

/// Requests for each processor that are prepared at a time before others are refused: whoever is refused waits behind the work on
/// these (chosen: a few milliseconds of small ones).
const PREPARED: usize = 16;

/// The processors that work on requests, and the number of requests that wait for one.
#[derive(Debug)]
pub(crate) struct Work {
    processors: Arc<Semaphore>,
    waiting: AtomicUsize,
    most: usize,
    prepared: AtomicUsize,
    most_prepared: usize,
}

/// The work broke off by a panic, which its thread has reported.
#[derive(Debug, thiserror::Error)]
#[error("our own work broke off")]
pub(crate) struct BrokeOff;

impl Work {
    /// Makes room for as much work as there are processors, and for `most` requests that wait for one.
    pub(crate) fn new(most: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            processors: Arc::new(Semaphore::new(processors)),
            waiting: AtomicUsize::new(0),
            most,
            prepared: AtomicUsize::new(0),
            most_prepared: PREPARED * processors,
        }
    }

    /// Returns whether so many requests wait or are prepared that one more would wait in vain.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.most
            || self.prepared.load(Ordering::Relaxed) >= self.most_prepared
    }

    /// Counts a request that is prepared, until the result is dropped.
    pub(crate) fn prepares(&self) -> impl Drop + '_ {
        Counted::new(&self.prepared)
    }

    /// Reads so many bytes: the same as [`Work::run`], with less work for each.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        size: usize,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokeOff> {
        self.run(size / READING, read).await
    }

    /// Does work on so many bytes: here where it is little, else on another thread as soon as a processor is free.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokeOff> {
        if size <= SMALL {
            return Ok(work());
        }
        let waits = Counted::new(&self.waiting);
        let processor = self.processors.clone().acquire_owned().await.map_err(|_| BrokeOff)?;
        drop(waits);
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(processor);
            done
        });
        done.await.map_err(|_| BrokeOff)
    }
}

/// One that is counted, also where its client leaves meanwhile.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_full_when_enough_wait_and_not_when_they_have_left() {
        let work = Work::new(1);
        let all = work.processors.available_permits() as u32;
        let busy = work.processors.clone().acquire_many_owned(all).await.expect("open");
        let mut waiting = Box::pin(work.run(SMALL + 1, || 7));
        tokio::select! {
            biased;
            _ = waiting.as_mut() => panic!("every processor is busy"),
            () = std::future::ready(()) => {}
        }
        assert!(work.is_full());
        assert_eq!(work.run(SMALL, || 8).await.expect("done"), 8, "little work waits for nobody");
        drop(waiting);
        assert!(!work.is_full());
        let prepared: Vec<_> = (0..PREPARED * all as usize).map(|_| work.prepares()).collect();
        assert!(work.is_full());
        drop(prepared);
        assert!(!work.is_full());
        drop(busy);
        assert_eq!(work.run(SMALL + 1, || 9).await.expect("done"), 9);
        assert!(work.run(SMALL + 1, || panic!("on purpose")).await.is_err());
        assert_eq!(work.run(SMALL + 1, || 10).await.expect("a processor is free again"), 10);
    }
}
