//! Arguments of `plimsoll search`.

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Words to search for, each taken literally
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only messages of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// The most hits
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
