//! Reads small sessions of every format, writes them back, and throws broken ones at the readers.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod fixtures;
mod reading;
mod reading_more;
mod recorded;
mod requests;
mod robustness;
mod writing;
