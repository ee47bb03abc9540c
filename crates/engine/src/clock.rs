//! The clock port: time is asked for, never taken.

use plimsoll_core::MillisSinceEpoch;

/// Tells the time; the real one is built by the command line only.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the present time.
    fn now(&self) -> MillisSinceEpoch;
}
