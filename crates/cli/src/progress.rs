//! A bar for work that takes longer than a moment, where somebody sits at the terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is done sooner shows no bar: one that flashes up tells nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error; silent where that is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    is_shown: bool,
}

impl Progress {
    /// Begins work of `steps` steps.
    pub(crate) fn new(what: &'static str, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        // A template that does not parse leaves the default style.
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style.progress_chars("█▌░"));
        }
        bar.set_message(what);
        Self { bar, is_shown: false }
    }

    /// Counts one step.
    pub(crate) fn step(&mut self) {
        self.bar.inc(1);
        if !self.is_shown && self.bar.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.is_shown = true;
        }
    }
}

impl Progress {
    /// Tells that `done` steps are over, of work whose end nobody knows.
    pub(crate) fn at(&mut self, done: u64) {
        self.bar.set_length(done);
        self.bar.set_position(done);
        if !self.is_shown && self.bar.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.is_shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
