//! Arguments of `plimsoll pin` and `plimsoll drop`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct PinArguments {
    /// The session, as the header `x-plimsoll-session` and `plimsoll log` name it
    pub(crate) session: String,
    /// `ref:message:<hex>`, or at least 8 of its hex digits
    pub(crate) reference: String,
    /// Take back what was wished for the message before
    #[arg(long)]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
