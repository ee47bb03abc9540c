//! Turns of the tasks that share a thread.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Wakes a task, and remembers that it did.
struct TurnWaker {
    task: Waker,
    is_over: AtomicBool,
}

impl Wake for TurnWaker {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

/// Returns when the tasks that can go on now have done so.
///
/// [`tokio::task::yield_now`] returns when it is polled again, and hyper polls a body more than once in one turn of its task.
pub(crate) async fn turn_of_others() {
    let mut turn: Option<Arc<TurnWaker>> = None;
    poll_fn(|context| match &turn {
        Some(turn) if turn.is_over.load(Ordering::Acquire) => Poll::Ready(()),
        // Another task polls it now, which nobody would wake.
        Some(turn) if !turn.task.will_wake(context.waker()) => Poll::Ready(()),
        Some(_) => Poll::Pending,
        None => {
            let waker = TurnWaker { task: context.waker().clone(), is_over: false.into() };
            let waker = turn.insert(Arc::new(waker)).clone();
            // It takes the waker when it is polled first.
            pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&Waker::from(waker)))
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[tokio::test]
    async fn others_have_their_turn_however_often_it_is_polled() {
        let done = Rc::new(Cell::new(false));
        let tasks = tokio::task::LocalSet::new();
        tasks
            .run_until(async {
                let other = done.clone();
                tokio::task::spawn_local(async move { other.set(true) });
                let mut turn = pin!(turn_of_others());
                poll_fn(|context| {
                    for _ in 0..3 {
                        if turn.as_mut().poll(context).is_ready() {
                            return Poll::Ready(());
                        }
                    }
                    Poll::Pending
                })
                .await;
                assert!(done.get());
            })
            .await;
    }
}
