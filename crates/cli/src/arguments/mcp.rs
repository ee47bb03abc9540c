//! Arguments of `plimsoll mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "Without `--http` the client starts the server and speaks over standard input and output.\nIt serves the versions of the protocol from 2024-11-05 to 2026-07-28."
)]
pub(crate) struct McpArguments {
    /// Serve streamable HTTP at this address of loopback; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// A further value of the `Host` header to answer, with its port; those of loopback are answered always
    #[arg(long, value_name = "HOST:PORT", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose pages may call the server: `https://example.org`; without one no page of a browser may
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}
