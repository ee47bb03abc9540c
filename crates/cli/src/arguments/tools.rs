//! Arguments of `plimsoll tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the registered tools with their versions and tokens
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Register tools: a JSON list of definitions in the form of any provider, or of MCP's `tools/list`
    Add {
        file: PathBuf,
        #[command(flatten)]
        store: StoreArguments,
        /// The name of the tools' server, instead of the file's name
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Count tokens by `o200k`, `cl100k`, `claude`, `chars:N` or `o200k:FACTOR` instead of by an estimate
        #[arg(long, value_name = "TOKENIZER", default_value = "estimate")]
        tokens: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a tool as `describe_tool` shows it to a model
    Show {
        name: String,
        #[command(flatten)]
        store: StoreArguments,
        /// The server of the tool, if several have a tool of this name
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the directory that replaces schemas in a request: names, intents and savings
    #[command(after_help = "Settings: [lazy_tools] of plimsoll.toml.")]
    Directory {
        #[command(flatten)]
        store: StoreArguments,
        /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Count tokens by `o200k`, `cl100k`, `claude`, `chars:N` or `o200k:FACTOR` instead of by an estimate
        #[arg(long, value_name = "TOKENIZER", default_value = "estimate")]
        tokens: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
