//! Tools from outside: commands of the machine, and MCP servers over stdio and HTTP.

mod command;
mod mcp;

pub use command::{Command, Commands};
pub use mcp::{McpServer, McpServers, Reached};
