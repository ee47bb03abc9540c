//! Arguments of `plimsoll models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 fine, 1 a provider that the configuration names can't be used, 2 wrong arguments or configuration."
)]
pub(crate) struct ModelsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Connect to no provider
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Show what models cost, or read prices from a list that others publish
    Prices(PricesArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Lists: https://models.dev/api.json, and model_prices_and_context_window.json of LiteLLM; download one and give the file.\nWhat a list does not say, such as how a model's cache works, stays as the table has it."
)]
pub(crate) struct PricesArguments {
    /// Only models whose name holds this text
    pub(crate) filter: Option<String>,
    /// Prices over the user's and the shipped ones
    #[arg(long, value_name = "FILE")]
    pub(crate) pricing: Option<PathBuf>,
    /// Read this list into `pricing.toml` in the user's configuration folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filter", "pricing"])]
    pub(crate) import: Option<PathBuf>,
    /// Write what `--import` read to this file instead
    #[arg(long, value_name = "FILE", requires = "import")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
