//! Settings of runs, and the tools that the operator declares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_cascade::run::Settings;
use plimsoll_tools::{Command, McpServer, Reached};
use serde::Deserialize;

use crate::config::environment;
use crate::error::CommandError;

/// Settings of `plimsoll run`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunConfig {
    /// The model of phases that name none.
    pub(crate) model: Option<String>,
    pub(crate) max_turns: u32,
    pub(crate) max_attempts: u32,
    pub(crate) max_depth: u32,
    pub(crate) max_tokens: u32,
    /// Results of more characters become artefacts.
    pub(crate) artefact_from: usize,
    /// The feature flags of contexts within a phase and between phases.
    pub(crate) intra_phase_enabled: bool,
    pub(crate) inter_phase_enabled: bool,
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolsConfig {
    /// Programs, by the name of the tool.
    pub(crate) commands: BTreeMap<String, CommandConfig>,
    /// MCP servers, by a name of their own.
    pub(crate) mcp: BTreeMap<String, McpConfig>,
}

/// A program that is a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandConfig {
    /// The program and its arguments; `{name}` is filled with the call's argument of that name.
    command: Vec<String>,
    #[serde(default)]
    description: String,
    /// The JSON Schema of the arguments.
    #[serde(default)]
    parameters: Option<toml::Value>,
    #[serde(default)]
    folder: Option<PathBuf>,
    /// Variables of the environment that it is given, by name.
    #[serde(default)]
    env: Vec<String>,
    #[serde(default = "sixty")]
    timeout_seconds: f64,
    /// Bytes.
    #[serde(default = "output_limit")]
    output_limit: usize,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpConfig {
    /// Starts it; else `url` says where it is.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    folder: Option<PathBuf>,
    /// Variables of the environment that it is given, by name.
    #[serde(default)]
    env: Vec<String>,
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
    pub(super) fn commands(&self) -> Result<BTreeMap<String, Command>, CommandError> {
        let commands = self.commands.iter().map(|(name, command)| {
            let schema = match &command.parameters {
                Some(schema) => serde_json::to_string(schema).map_err(CommandError::usage)?,
                None => r#"{"type":"object"}"#.to_owned(),
            };
            let made = Command {
                description: command.description.clone(),
                schema,
                program: command.command.clone(),
                folder: command.folder.clone(),
                environment: given(&command.env),
                timeout: seconds(name, command.timeout_seconds)?,
                output_limit: command.output_limit,
            };
            Ok((name.clone(), made))
        });
        commands.collect()
    }

    pub(super) fn servers(&self) -> Result<BTreeMap<String, McpServer>, CommandError> {
        let servers = self.mcp.iter().map(|(name, server)| {
            let reached = match (&server.url, server.command.split_first()) {
                (Some(url), None) => Reached::Http { url: url.clone() },
                (None, Some((program, arguments))) => Reached::Stdio {
                    program: program.clone(),
                    arguments: arguments.to_vec(),
                    folder: server.folder.clone(),
                    environment: given(&server.env),
                },
                _ => {
                    let said = anyhow::anyhow!("the MCP server `{name}` needs a command or a url");
                    return Err(CommandError::usage(said).hint("one of them, not both"));
                }
            };
            let timeout = seconds(name, server.timeout_seconds)?;
            Ok((name.clone(), McpServer { reached, timeout }))
        });
        servers.collect()
    }
}
