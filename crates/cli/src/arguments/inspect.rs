//! Arguments of `plimsoll inspect`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A recorded session, or a folder of them; without one, the places where agents keep theirs
    pub(crate) file: Option<PathBuf>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR` instead of by the session's model
    #[arg(long, value_name = "TOKENIZER")]
    pub(crate) tokens: Option<String>,
    /// Count as for this model instead of the recorded one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Read the agent's context after its compactions, instead of the whole session
    #[arg(long)]
    pub(crate) honour_compaction: bool,
    /// The context window in tokens, instead of the session's
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The most sessions to list
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: std::num::NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
