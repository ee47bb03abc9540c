//! Arguments of `plimsoll run-agent`.

use clap::Args;

use super::{PolicyArguments, StorePlaceArguments};

#[derive(Debug, Args)]
#[command(
    after_help = "A gateway that runs where `listen` says is used; without one, and with --forward, one is started for as long as the client runs.\nThe exit code is the client's."
)]
pub(crate) struct RunAgentArguments {
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    #[command(flatten)]
    pub(crate) store: StorePlaceArguments,
    /// Leave the client's base URL alone, and read its requests as a proxy that ends TLS for the provider's host only, with a
    /// certificate authority for this run
    #[arg(long)]
    pub(crate) forward: bool,
    /// The upstream whose host --forward reads; by default that of the client
    #[arg(long, value_name = "NAME", requires = "forward")]
    pub(crate) upstream: Option<String>,
    /// The client and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}
