//! Use cases on the store in memory, with models that say what a test tells them.

mod ab;
mod answers;
mod cards;
mod expand;
mod import;
mod memories;
mod models;
mod page;
mod recall;
mod remember;
mod selection;
mod tenants;
mod tool_registry;
