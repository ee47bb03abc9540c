//! Arguments of `plimsoll inspect`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_core::bill::Division;

use super::bill::{divisions, time};

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A recorded session, `FILE#1` for another conversation in its file, or a folder of them; without one, the places where agents keep theirs
    pub(crate) file: Option<PathBuf>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR` instead of by the session's model
    #[arg(long, value_name = "TOKENIZER")]
    pub(crate) tokens: Option<String>,
    /// Count as for this model instead of the recorded one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Read the whole session, as if the agent had never compacted its context
    #[arg(long)]
    pub(crate) no_compaction: bool,
    /// The context window in tokens, instead of the session's
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Add the sessions up by this, in one table of tokens and dollars, instead of listing them
    #[arg(long, value_name = "WHAT", value_parser = divisions())]
    pub(crate) by: Option<Division>,
    /// Count requests from this day or time on, `2026-01-31`
    #[arg(long, value_name = "DATE", value_parser = time, requires = "by")]
    pub(crate) since: Option<plimsoll_core::MillisSinceEpoch>,
    /// The most sessions to list
    #[arg(long, value_name = "N", default_value = "20")]
    pub(crate) limit: std::num::NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
