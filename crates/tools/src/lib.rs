//! Tools from outside: commands of the machine, and MCP servers over stdio and HTTP.

mod command;
mod config;
mod mcp;

pub use command::{Command, Commands};
pub use config::{CommandConfig, Environment, McpConfig, ToolConfigError, ToolsConfig};
pub use mcp::{McpServer, McpServers, Reached};
