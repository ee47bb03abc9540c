//! Arguments of `plimsoll serve`.

use clap::Args;

use super::{PolicyArguments, StorePlaceArguments};

#[derive(Debug, Args)]
#[command(
    after_help = "Settings: [gateway] of plimsoll.toml; docs/gateway.md says what each client needs.\nWhere it listens is printed on standard output. It stops on SIGTERM or Ctrl-C, once the answers under way have ended."
)]
pub(crate) struct ServeArguments {
    /// The address to listen on, instead of `listen`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// How requests are handled, instead of `mode`
    #[arg(long, value_parser = ["on", "observe", "off"])]
    pub(crate) mode: Option<String>,
    /// The policy, instead of `policy`; as for `replay`
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    #[command(flatten)]
    pub(crate) store: StorePlaceArguments,
}
