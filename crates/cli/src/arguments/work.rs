//! Arguments of `plimsoll work`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "Without `--once` it goes on until it is stopped; what it was at is taken up again by the next.\nExit codes: 0 done, 1 jobs were parked or the store failed, 2 wrong arguments or settings."
)]
pub(crate) struct WorkArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Stop when no job is due
    #[arg(long)]
    pub(crate) once: bool,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, one line each time the jobs are done
    #[arg(long)]
    pub(crate) json: bool,
}
