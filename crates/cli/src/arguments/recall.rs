//! Arguments of `plimsoll recall`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "`--batch` reads lines {\"id\", \"query\"}, with a \"session\" where only that one is asked, and writes lines {\"id\", \"ids\"}: the ids of messages, best first.\nWhere several sessions are asked, \"sessions\" stands beside them."
)]
pub(crate) struct RecallArguments {
    /// The question
    #[arg(long, value_name = "TEXT", required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) query: Option<String>,
    /// The most tokens of recalled messages, headers included
    #[arg(long, value_name = "TOKENS", default_value_t = 4000, conflicts_with = "batch")]
    pub(crate) budget: u64,
    /// Rank the messages for each question of this file
    #[arg(long, value_name = "QUERIES.jsonl", requires = "out")]
    pub(crate) batch: Option<PathBuf>,
    /// The file for the rankings of `--batch`; an existing one is replaced
    #[arg(long, value_name = "RESULTS.jsonl", requires = "batch")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only messages of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Count tokens by `o200k`, `cl100k`, `claude`, `chars:N` or `o200k:FACTOR` instead of by an estimate
    #[arg(long, value_name = "TOKENIZER", default_value = "estimate")]
    pub(crate) tokens: String,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "batch")]
    pub(crate) json: bool,
    /// Print the parts of each score
    #[arg(long, conflicts_with = "batch")]
    pub(crate) explain: bool,
}
