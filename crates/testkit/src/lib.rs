//! For tests: a strict store in memory, the checks that every store passes, scripted servers and a manual clock.
//!
//! A backend runs the checks by [`history_conformance!`], [`knowledge_conformance!`], [`memory_conformance!`] and [`together_conformance!`], each
//! given an async function that makes a fresh store; every check becomes a test of its own.

pub mod conformance;
mod manual_clock;
mod memory_store;
pub mod provider;
pub mod sample;
pub mod upstream;

pub use manual_clock::ManualClock;
pub use memory_store::MemoryStore;
