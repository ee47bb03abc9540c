//! The use cases, on the strict store in memory.

mod import;
mod recall;
