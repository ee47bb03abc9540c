//! Arguments of `plimsoll explain`.

use clap::Args;

use super::{PolicyArguments, SessionArguments};

#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// As if the agent had never compacted its context, as for `replay`
    #[arg(long)]
    pub(crate) no_compaction: bool,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// The turn, counted from 0; the last one where none is given
    #[arg(long)]
    pub(crate) turn: Option<u32>,
    /// As for `replay`
    #[arg(long, value_name = "POLICY", default_value = "plimsoll")]
    pub(crate) policy: String,
    /// As if the user had pinned this message before the first turn; may be given again
    #[arg(long, value_name = "REF")]
    pub(crate) pin: Vec<String>,
    /// As if the user had dropped this message, or a call with its results; may be given again
    #[arg(long, value_name = "REF")]
    pub(crate) drop: Vec<String>,
    /// Print a message as it was sent, or the original behind a ref
    #[arg(long, value_name = "MESSAGE|REF")]
    pub(crate) show: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
