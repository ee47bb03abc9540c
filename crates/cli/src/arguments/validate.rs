//! Arguments of `plimsoll validate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no errors, 1 at least one error, 2 wrong arguments.\nOf folders, every .json, .yaml and .yml file with phases is checked."
)]
pub(crate) struct ValidateArguments {
    /// Cascades, or folders of them
    #[arg(required_unless_present = "schema")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat unknown keys as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of cascades instead
    #[arg(long, conflicts_with_all = ["files", "strict", "json"])]
    pub(crate) schema: bool,
}
