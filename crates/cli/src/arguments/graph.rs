//! Arguments of `plimsoll graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How a cascade is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A Mermaid flowchart
    Mermaid,
    /// A picture that follows the light or dark of the screen
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArguments {
    /// The cascade
    pub(crate) file: PathBuf,
    /// The format; by default that of the name of `--out`, else `mermaid`
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file of `--out` where it exists
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
}
