//! Tasks: work with a stack of its own.

use std::panic::resume_unwind;

use tokio::task::JoinSet;

/// Runs `work` as a task of its own, which ends with the caller; `None` if the runtime ended first.
///
/// A panic of the task goes on in the caller.
pub async fn on_own_stack<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await? {
        Ok(done) => Some(done),
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}
