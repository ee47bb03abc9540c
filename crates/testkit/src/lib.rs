//! For tests: a strict store in memory, and the checks that every store passes.
//!
//! A backend runs the checks by [`history_conformance!`], [`knowledge_conformance!`] and [`together_conformance!`], each
//! given an async function that makes a fresh store; every check becomes a test of its own.

pub mod conformance;
mod memory_store;
pub mod sample;

pub use memory_store::MemoryStore;
