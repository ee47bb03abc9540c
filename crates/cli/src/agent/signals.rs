//! Signals while a client runs: they are the client's, and we outlive it to clean up.

#[cfg(unix)]
use rustix::process::Signal;

/// The signals that ask us to end, from now on; without somebody who takes them they would end us, and the client would be left
/// with an address where nobody answers.
pub(super) struct Signals(#[cfg(unix)] Vec<(Signal, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Signals {
    /// Begins to take them; needs the context of a runtime.
    pub(super) fn take() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let taken = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM]
            .into_iter()
            .map(|kind| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?)));
        taken.collect::<std::io::Result<_>>().map(Self)
    }

    /// Passes them on to a process, until it is dropped.
    pub(super) async fn pass_on(mut self, process: u32) {
        use rustix::process::{Pid, kill_process};
        let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
        loop {
            let next = self
                .0
                .iter_mut()
                .map(|(kind, signals)| Box::pin(async { signals.recv().await.map(|()| *kind) }));
            let (Some(kind), ..) = futures_util::future::select_all(next).await else { return };
            if !(matches!(kind, Signal::INT | Signal::QUIT) && is_from_terminal()) {
                let _ = kill_process(process, kind);
            }
        }
    }
}

/// Returns whether keys of a terminal reach us: then they reach the client too, and twice would be once too often.
///
/// A signal that was sent to us alone looks the same there; the sender cannot be told without `unsafe`.
#[cfg(unix)]
fn is_from_terminal() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn take() -> std::io::Result<Self> {
        Ok(Self())
    }

    pub(super) async fn pass_on(self, _process: u32) {
        while tokio::signal::ctrl_c().await.is_ok() {}
    }
}
