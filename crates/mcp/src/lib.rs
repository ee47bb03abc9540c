//! The MCP server: recall, memory, refs and receipts of a store as tools, resources and prompts.
//!
//! **Invariant:** each result fits a budget of tokens and says how to read on.
//! **Invariant:** a client of MCP never writes a record as the operator.

mod bounded;
mod failure;
mod prompts;
mod resources;
mod server;
mod tools;
mod transport;

pub use server::{ContextServer, Parts};
pub use transport::{HttpSettings, ServeError, serve_http, serve_stdio};
