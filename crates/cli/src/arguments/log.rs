//! Arguments of `plimsoll log`.

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// `stats`: the efficiency of the contexts, and the bills of providers
    #[arg(value_parser = ["stats"])]
    pub(crate) what: Option<String>,
    /// A row of `stats` for each cascade or each session
    #[arg(long, value_name = "WHAT", value_parser = ["cascade", "session"], default_value = "cascade")]
    pub(crate) by: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only rows of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only `message` or `context_selection` rows
    #[arg(long, value_name = "TYPE", value_parser = ["message", "context_selection"])]
    pub(crate) node_type: Option<String>,
    /// The most rows
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
