//! Arguments of `plimsoll import`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "A dialogue has a JSON object in each line: {\"id\", \"session\", \"speaker\", \"time\", \"text\"}, of which only `text` must be there.\nWhat is in the store already is not added again."
)]
pub(crate) struct ImportArguments {
    /// Dialogues and sessions; the content decides the format
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The session of lines without one, instead of the file's name
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
