//! Settings of runs, and the tools that the operator declares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_cascade::run::Settings;
use plimsoll_tools::{Command, McpServer, Reached};
use serde::{Deserialize, Serialize};

use crate::config::environment;
use crate::error::CommandError;

/// Settings of `plimsoll run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunConfig {
    /// The model of phases that name none.
    pub(crate) model: Option<String>,
    /// The most turns of a phase with tools whose rules name no limit.
    pub(crate) max_turns: u32,
    /// The most attempts of a loop that names no limit.
    pub(crate) max_attempts: u32,
    /// The most levels of cascades inside cascades.
    pub(crate) max_depth: u32,
    /// The most tokens of an answer.
    pub(crate) max_tokens: u32,
    /// Characters above which the result of a tool becomes an artefact.
    pub(crate) artefact_from: usize,
    /// Whether a phase's own old messages may be shortened.
    pub(crate) intra_phase_enabled: bool,
    /// Whether a phase sees a selection of earlier phases.
    pub(crate) inter_phase_enabled: bool,
    /// Whether a model may choose messages; off makes such strategies use the heuristic.
    pub(crate) llm_selection_enabled: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            model: None,
            max_turns: settings.max_turns,
            max_attempts: settings.max_attempts,
            max_depth: settings.max_depth,
            max_tokens: settings.max_tokens,
            artefact_from: settings.artefact_from,
            intra_phase_enabled: settings.intra_phase_enabled,
            inter_phase_enabled: settings.inter_phase_enabled,
            llm_selection_enabled: settings.llm_selection_enabled,
        }
    }
}

impl RunConfig {
    pub(super) fn settings(&self) -> Settings {
        Settings {
            max_turns: self.max_turns,
            max_attempts: self.max_attempts,
            max_depth: self.max_depth,
            max_tokens: self.max_tokens,
            artefact_from: self.artefact_from,
            intra_phase_enabled: self.intra_phase_enabled,
            inter_phase_enabled: self.inter_phase_enabled,
            llm_selection_enabled: self.llm_selection_enabled,
            ..Settings::default()
        }
    }
}

/// Tools that cascades may call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolsConfig {
    /// Programs, by the name of the tool.
    pub(crate) commands: BTreeMap<String, CommandConfig>,
    /// MCP servers, by a name of their own.
    pub(crate) mcp: BTreeMap<String, McpConfig>,
}

/// A program that is a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandConfig {
    /// The program and its arguments; `{name}` is filled with the call's argument of that name.
    command: Vec<String>,
    /// The description of the tool, as the model reads it.
    #[serde(default)]
    description: String,
    /// The JSON Schema of the arguments.
    #[serde(default)]
    parameters: Option<toml::Value>,
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
pub(crate) struct McpConfig {
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

/// Seconds that a tool may take where nothing is said; chosen, as clients of MCP do.
fn sixty() -> f64 {
    60.0
}

/// Bytes that a tool may say where nothing is said; chosen: about 30,000 tokens.
fn output_limit() -> usize {
    100_000
}

/// Variables that every program is given: where programs are, where to write, which language.
const GIVEN: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TERM"];

fn given(names: &[String]) -> BTreeMap<String, String> {
    let all = GIVEN.into_iter().chain(names.iter().map(String::as_str));
    all.filter_map(|name| Some((name.to_owned(), environment(name)?))).collect()
}

fn seconds(name: &str, seconds: f64) -> Result<Duration, CommandError> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(|| {
        CommandError::usage(anyhow::anyhow!("`timeout_seconds` of the tool `{name}` is {seconds}"))
    })
}

impl ToolsConfig {
    /// Returns the path of each tool that cannot be called as it is declared, and why.
    pub(crate) fn faults(&self) -> Vec<([&str; 3], CommandError)> {
        let commands = self.commands.iter().filter_map(|(name, command)| {
            Some((["tools", "commands", name], command.declared(name).err()?))
        });
        let servers = self.mcp.iter().filter_map(|(name, server)| {
            Some((["tools", "mcp", name], server.declared(name).err()?))
        });
        commands.chain(servers).collect()
    }

    pub(super) fn commands(&self) -> Result<BTreeMap<String, Command>, CommandError> {
        let commands = self.commands.iter();
        commands.map(|(name, command)| Ok((name.clone(), command.declared(name)?))).collect()
    }

    pub(super) fn servers(&self) -> Result<BTreeMap<String, McpServer>, CommandError> {
        let servers = self.mcp.iter();
        servers.map(|(name, server)| Ok((name.clone(), server.declared(name)?))).collect()
    }
}

impl CommandConfig {
    fn declared(&self, name: &str) -> Result<Command, CommandError> {
        let schema = match &self.parameters {
            Some(schema) => serde_json::to_string(schema).map_err(CommandError::usage)?,
            None => r#"{"type":"object"}"#.to_owned(),
        };
        Ok(Command {
            description: self.description.clone(),
            schema,
            program: self.command.clone(),
            folder: self.folder.clone(),
            environment: given(&self.env),
            timeout: seconds(name, self.timeout_seconds)?,
            output_limit: self.output_limit,
        })
    }
}

impl McpConfig {
    fn declared(&self, name: &str) -> Result<McpServer, CommandError> {
        let reached = match (&self.url, self.command.split_first()) {
            (Some(url), None) => Reached::Http { url: url.clone() },
            (None, Some((program, arguments))) => Reached::Stdio {
                program: program.clone(),
                arguments: arguments.to_vec(),
                folder: self.folder.clone(),
                environment: given(&self.env),
            },
            _ => {
                let error = anyhow::anyhow!("the MCP server `{name}` needs a command or a url");
                return Err(CommandError::usage(error).hint("one of them, not both"));
            }
        };
        Ok(McpServer { reached, timeout: seconds(name, self.timeout_seconds)? })
    }
}
