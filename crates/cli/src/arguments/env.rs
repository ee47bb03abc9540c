//! Arguments of `plimsoll env`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct EnvArguments {
    /// The client
    #[arg(value_enum)]
    pub(crate) client: crate::client::Client,
    /// The address of the gateway, instead of `listen`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
