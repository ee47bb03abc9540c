//! Arguments of `plimsoll doctor`.

use std::path::PathBuf;

use clap::Args;

use super::StorePlaceArguments;

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all is fine, 1 something is not.")]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) store: StorePlaceArguments,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check only that a gateway answers, for the health check of a container
    #[arg(long)]
    pub(crate) running: bool,
    /// Connect to no upstream
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
