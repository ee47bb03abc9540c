//! The MCP server: recall, memory, refs and receipts of a store as tools, resources and prompts.
//!
//! **Invariant:** each result fits a budget of tokens and says how to read on.
//! **Invariant:** a client of MCP never writes a record as the operator.

mod bounded;
mod failure;
mod parts;
mod prompts;
mod resources;
mod server;
mod tools;
mod transport;

pub use parts::ServerParts;
pub use server::ContextServer;
pub use transport::{HttpSettings, McpServeError, serve_http, serve_stdio, serve_stream};
