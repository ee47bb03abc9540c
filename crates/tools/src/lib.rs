//! Tools from outside: commands of the machine, MCP servers over stdio and HTTP, and the tools that come with Plimsoll.

mod command;
mod config;
mod declared;
mod mcp;
mod starter;

pub use command::{Command, Commands};
pub use config::{CommandConfig, McpConfig, ToolsConfig};
pub use declared::{Environment, ToolConfigError};
pub use mcp::{McpServer, McpServers, Reached};
pub use starter::{StarterConfig, StarterTools};
