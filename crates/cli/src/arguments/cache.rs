//! Arguments of `plimsoll cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List cached answers, newest first
    List {
        #[command(flatten)]
        store: StoreArguments,
        /// The most answers
        #[arg(long, value_name = "N", default_value_t = 40)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a cached answer, by its key or the beginning of it
    Show {
        key: String,
        #[command(flatten)]
        store: StoreArguments,
        /// Print JSON: the answer with its question, refs and hits
        #[arg(long)]
        json: bool,
    },
    /// Remove a cached answer that was wrong, or those that rest on a ref
    Evict {
        #[arg(required_unless_present = "used_ref", conflicts_with = "used_ref")]
        key: Option<String>,
        /// Remove every answer that rests on this ref
        #[arg(long = "ref", value_name = "REF")]
        used_ref: Option<String>,
        #[command(flatten)]
        store: StoreArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the number and size of cached answers, and how often they were served
    Stats {
        #[command(flatten)]
        store: StoreArguments,
        /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the guard on labelled pairs of questions: how often it would serve, and how often wrongly
    Check(CheckArguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "A line of the file is `1` or `0`, a tab, a question, a tab, another question; 1 means that both ask the same.\nSettings: [answers] of plimsoll.toml."
)]
pub(crate) struct CheckArguments {
    /// Labelled pairs
    pub(crate) file: PathBuf,
    /// Check the odd and the even lines separately too, so that settings made on one half are judged on the other
    #[arg(long)]
    pub(crate) halves: bool,
    /// List the pairs that would be served though they are labelled different
    #[arg(long)]
    pub(crate) wrong: bool,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
