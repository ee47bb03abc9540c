//! Arguments of `plimsoll learn`.

use std::path::PathBuf;

use clap::Args;

use super::PolicyArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "The file holds the settings in force with the learnt `[settle.need]`; `replay --config FILE` and `serve --config FILE` read it."
)]
pub(crate) struct LearnArguments {
    /// Recorded sessions, or folders of them; the content decides the format
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The file that gets the settings
    #[arg(long, value_name = "policy.toml")]
    pub(crate) out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// Groups of sessions that are left out in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) folds: u16,
    /// Price as this model instead of the recorded ones
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
