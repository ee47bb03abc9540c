//! Arguments of `plimsoll store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::StorePlaceArguments;

#[derive(Debug, Args)]
pub(crate) struct StoreCommandArguments {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check the file, and every message, receipt, card, record, answer and artefact of every tenant against its hash
    Check {
        #[command(flatten)]
        store: StorePlaceArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a new file of all that can still be read and is as it was stored; the damaged file is kept beside it
    Repair {
        #[command(flatten)]
        store: StorePlaceArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Copy the store to a new file while others use it
    Backup {
        /// The copy
        file: PathBuf,
        #[command(flatten)]
        store: StorePlaceArguments,
    },
}
