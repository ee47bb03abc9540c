//! Arguments of `plimsoll cards`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(after_help = "Settings: [cards], [selection] and [safety] of plimsoll.toml.")]
pub(crate) struct CardsArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only cards of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Make the missing cards, and work until no job waits
    #[arg(long)]
    pub(crate) make: bool,
    /// Show what would be selected of the session for this task, and why
    #[arg(long, value_name = "TASK", requires = "session")]
    pub(crate) task: Option<String>,
    /// The most cards
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
