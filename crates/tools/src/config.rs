//! Settings of tools: the programs and MCP servers that the operator declares.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::declared::{Environment, ToolConfigError, given, timeout};
use crate::{Command, McpServer, Reached, StarterConfig};

/// Tools that cascades may call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Programs, by the name of the tool.
    pub commands: BTreeMap<String, CommandConfig>,
    /// MCP servers, by a name of their own.
    pub mcp: BTreeMap<String, McpConfig>,
    /// The tools that come with Plimsoll, off by default.
    pub starter: StarterConfig,
}

/// A program that is a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program and its arguments; `{name}` is filled with the call's argument of that name.
    command: Vec<String>,
    /// The description of the tool, as the model reads it.
    #[serde(default)]
    description: String,
    /// The JSON Schema of the arguments.
    #[serde(default)]
    parameters: Option<serde_json::Value>,
    /// The folder in which the program runs; by default the current one.
    #[serde(default)]
    folder: Option<PathBuf>,
    /// Names of the variables of the environment that the program gets.
    #[serde(default)]
    env: Vec<String>,
    /// Seconds after which a call fails.
    #[serde(default = "sixty")]
    timeout_seconds: f64,
    /// The most bytes of output that a call returns.
    #[serde(default = "output_limit")]
    output_limit: usize,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The program that is the server, and its arguments; else `url` says where it is.
    #[serde(default)]
    command: Vec<String>,
    /// The address of a server that is reached over HTTP, instead of `command`.
    #[serde(default)]
    url: Option<String>,
    /// The folder in which the server runs; by default the current one.
    #[serde(default)]
    folder: Option<PathBuf>,
    /// Names of the variables of the environment that the server gets.
    #[serde(default)]
    env: Vec<String>,
    /// Seconds after which a call fails.
    #[serde(default = "sixty")]
    timeout_seconds: f64,
}

/// Seconds that a tool may take by default (chosen, as clients of MCP do).
fn sixty() -> f64 {
    60.0
}

/// Bytes that a tool may return by default (chosen: about 30,000 tokens).
fn output_limit() -> usize {
    100_000
}

impl ToolsConfig {
    /// Returns the path of each tool that cannot be called as it is declared, and why.
    pub fn faults(&self) -> Vec<([&str; 3], ToolConfigError)> {
        let none: Environment<'_> = &|_| None;
        let commands = self.commands.iter().filter_map(|(name, command)| {
            Some((["tools", "commands", name], command.declared(name, none).err()?))
        });
        let servers = self.mcp.iter().filter_map(|(name, server)| {
            Some((["tools", "mcp", name], server.declared(name, none).err()?))
        });
        let starter = self.starter.fault();
        let starter = starter.map(|(key, error)| (["tools", "starter", key], error));
        commands.chain(servers).chain(starter).collect()
    }

    /// Returns the commands by name, each with the variables that it gets of `environment`.
    pub fn commands(
        &self,
        environment: Environment<'_>,
    ) -> Result<BTreeMap<String, Command>, ToolConfigError> {
        let commands = self.commands.iter();
        commands
            .map(|(name, command)| Ok((name.clone(), command.declared(name, environment)?)))
            .collect()
    }

    /// Returns the MCP servers by name, each with the variables that it gets of `environment`.
    pub fn servers(
        &self,
        environment: Environment<'_>,
    ) -> Result<BTreeMap<String, McpServer>, ToolConfigError> {
        let servers = self.mcp.iter();
        servers
            .map(|(name, server)| Ok((name.clone(), server.declared(name, environment)?)))
            .collect()
    }
}

impl CommandConfig {
    fn declared(
        &self,
        name: &str,
        environment: Environment<'_>,
    ) -> Result<Command, ToolConfigError> {
        let schema = self.parameters.as_ref().map(ToString::to_string);
        Ok(Command {
            description: self.description.clone(),
            schema: schema.unwrap_or_else(|| r#"{"type":"object"}"#.to_owned()),
            program: self.command.clone(),
            folder: self.folder.clone(),
            environment: given(&self.env, environment),
            timeout: timeout(name, self.timeout_seconds)?,
            output_limit: self.output_limit,
        })
    }
}

impl McpConfig {
    fn declared(
        &self,
        name: &str,
        environment: Environment<'_>,
    ) -> Result<McpServer, ToolConfigError> {
        let reached = match (&self.url, self.command.split_first()) {
            (Some(url), None) => Reached::Http { url: url.clone() },
            (None, Some((program, arguments))) => Reached::Stdio {
                program: program.clone(),
                arguments: arguments.to_vec(),
                folder: self.folder.clone(),
                environment: given(&self.env, environment),
            },
            _ => return Err(ToolConfigError::Reached(name.to_owned())),
        };
        Ok(McpServer { reached, timeout: timeout(name, self.timeout_seconds)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ToolsConfig {
        serde_json::from_str(text).expect("settings")
    }

    #[test]
    fn programs_get_the_variables_that_they_name() {
        let config = config(r#"{"commands": {"a": {"command": ["a"], "env": ["KEY"]}}}"#);
        let all = |name: &str| ["PATH", "KEY", "OTHER"].contains(&name).then(|| name.to_owned());
        let commands = config.commands(&all).expect("commands");
        assert_eq!(commands["a"].environment.keys().collect::<Vec<_>>(), ["KEY", "PATH"]);
        assert_eq!(commands["a"].schema, r#"{"type":"object"}"#);
    }

    #[test]
    fn tools_that_cannot_be_called_are_named() {
        let config = config(
            r#"{"commands": {"slow": {"command": ["a"], "timeout_seconds": 0}},
                "mcp": {"both": {"command": ["a"], "url": "http://a"}, "none": {}, "one": {"url": "http://a"}}}"#,
        );
        let found: Vec<_> = config.faults().into_iter().map(|(path, _)| path[2]).collect();
        assert_eq!(found, ["slow", "both", "none"]);
        assert!(config.servers(&|_| None).is_err());
    }
}
