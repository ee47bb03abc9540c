//! Signals while a client runs: they are the client's, and we outlive it to clean up.

/// Passes a request to end on to a process, until it is dropped.
///
/// An interrupt from the terminal reaches the client by itself; here it only must not end us first.
#[cfg(unix)]
pub(super) async fn pass_on(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupts), Ok(mut ends)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = ends.recv() => {
                if let Some(process) = process {
                    let _ = kill_process(process, Signal::TERM);
                }
            }
        }
    }
}

#[cfg(not(unix))]
pub(super) async fn pass_on(_process: u32) {
    while tokio::signal::ctrl_c().await.is_ok() {}
}
