//! Arguments of `plimsoll run-agent`.

use clap::Args;

use super::{PolicyArguments, StorePlaceArguments};

#[derive(Debug, Args)]
#[command(
    after_help = "A gateway that runs where `listen` says is used; without one, one is started for as long as the client runs.\nThe exit code is the client's."
)]
pub(crate) struct RunAgentArguments {
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    #[command(flatten)]
    pub(crate) store: StorePlaceArguments,
    /// The client and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}
