//! A progress bar on a terminal, for work that takes longer than a second.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no bar.
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
    /// Shows `done` finished steps of work whose total is unknown.
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
