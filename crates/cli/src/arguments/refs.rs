//! Arguments of `plimsoll ref`.

use clap::{Args, Subcommand};

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct RefArguments {
    #[command(subcommand)]
    pub(crate) command: RefCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RefCommand {
    /// Print the content behind a ref, or a part of it
    Get(RefGetArguments),
    /// List the refs of artefacts, newest first
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// The most refs
        #[arg(long, value_name = "N", default_value_t = 40)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove expired refs
    Gc {
        #[command(flatten)]
        store: StoreArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RefGetArguments {
    /// `ref:<kind>:<hex>`, or at least 8 of its hex digits
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Only this field of a JSON content, such as `items[0].title` or `items[*].id`; may be given again
    #[arg(long = "field", value_name = "PATH")]
    pub(crate) fields: Vec<String>,
    /// Only these lines, `FIRST-LAST`, counted from 1
    #[arg(long, value_name = "FIRST-LAST", conflicts_with_all = ["search", "slice"])]
    pub(crate) lines: Option<String>,
    /// Only lines that hold this text
    #[arg(long, value_name = "TEXT", conflicts_with = "slice")]
    pub(crate) search: Option<String>,
    /// Only a slice of a list's elements or a text's characters, `OFFSET:LIMIT`, counted from 0
    #[arg(long, value_name = "OFFSET:LIMIT")]
    pub(crate) slice: Option<String>,
    /// Print JSON: the text, the full size, and the offset of the next part
    #[arg(long)]
    pub(crate) json: bool,
}
