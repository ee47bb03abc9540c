//! Tools from outside, with real processes.

mod clocks;
mod commands;
mod mcp;
mod starters;
