//! Arguments of `plimsoll assemble`.

use std::path::PathBuf;

use clap::Args;

use super::{PlainArguments, ScopeArguments};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct AssembleArguments {
    /// The user's message; by default the session's newest messages are the turn
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) turn: String,
    /// `question`, `decision`, `debugging`, `task`, `creative`, `conversation`, `quick_capture`, `context_lookup`, `deep_analysis`,
    /// `planning`, or one of your own; without it the turn decides
    #[arg(long, visible_alias = "intent", value_name = "NAME")]
    pub(crate) frame: Option<String>,
    /// The ceiling in tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// Print the memory only, as a system prompt: no header, no messages
    #[arg(long)]
    pub(crate) memory_only: bool,
    /// The current task, instead of the session's
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,
    /// Only records with this tag; once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Something is about to be decided or done
    #[arg(long)]
    pub(crate) about_to_act: bool,
    /// Rebuild the memory even if the previous one still holds
    #[arg(long)]
    pub(crate) force_refresh: bool,
    /// The output of an earlier call with `--json`: items that still hold keep their text and place
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<PathBuf>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR`
    #[arg(long, value_name = "TOKENIZER", default_value = "o200k")]
    pub(crate) tokens: String,
    /// Print why each record is included or not
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}
