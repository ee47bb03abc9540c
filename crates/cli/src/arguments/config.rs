//! Arguments of `plimsoll config`.

use clap::{Args, Subcommand};

use super::PolicyArguments;

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the settings that a file, the environment or a flag sets, as TOML, each with its origin
    Show {
        #[command(flatten)]
        settings: PolicyArguments,
        /// Print the defaults too
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print where settings are read from; each place overrides those below it
    Path {
        #[command(flatten)]
        settings: PolicyArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check all files of settings and print every error with its line
    #[command(after_help = "Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.")]
    Check {
        #[command(flatten)]
        settings: PolicyArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
