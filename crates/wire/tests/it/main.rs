//! Reads, rewrites and checks requests of every wire, and puts answers and replies together.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bodies;
mod checks;
mod replies;
mod requests;
