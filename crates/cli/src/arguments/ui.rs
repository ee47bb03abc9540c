//! Arguments of `plimsoll ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::StorePlaceArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "Without files it shows the store that the gateway and `plimsoll import` fill.\nIt stops on SIGTERM or Ctrl-C."
)]
pub(crate) struct UiArguments {
    /// Recorded sessions, or folders of them, to show instead of a store
    #[arg(value_name = "FILE|FOLDER", conflicts_with_all = ["store", "history"])]
    pub(crate) files: Vec<PathBuf>,
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7435")]
    pub(crate) listen: SocketAddr,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StorePlaceArguments,
}
