//! Arguments of `plimsoll pressure`.

use clap::{Args, ValueEnum};

use super::{SessionArguments, WindowArguments};

/// How the pressure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PressureFormat {
    /// The bar and its message
    Text,
    /// A footer for an agent's answer
    Markdown,
    /// The figures
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Below `showPressureAbove` of context.json (30 % by default) text and Markdown are empty."
)]
pub(crate) struct PressureArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Read the whole session, as if the agent had never compacted its context
    #[arg(long)]
    pub(crate) no_compaction: bool,
    #[command(flatten)]
    pub(crate) window: WindowArguments,
    /// How to print it
    #[arg(long, value_enum, default_value_t = PressureFormat::Text)]
    pub(crate) format: PressureFormat,
    /// Print JSON, as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}
