//! Cascades, run with a scripted model.

mod contexts;
mod harness;
mod resuming;
mod running;
