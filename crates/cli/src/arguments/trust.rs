//! Arguments of `plimsoll trust`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The folder with the `plimsoll.toml`, instead of the current one
    pub(crate) folder: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Show whether it is trusted, and the settings that need it
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
}
