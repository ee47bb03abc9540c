//! Arguments of `plimsoll tenant`.

use clap::{Args, Subcommand};

use super::StorePlaceArguments;

#[derive(Debug, Args)]
pub(crate) struct TenantArguments {
    #[command(subcommand)]
    pub(crate) command: TenantCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// List the tenants, with the sessions and messages of each
    List {
        #[command(flatten)]
        store: StorePlaceArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all that a tenant has, as JSON lines
    Export {
        /// The tenant
        name: String,
        #[command(flatten)]
        store: StorePlaceArguments,
    },
    /// Remove all that a tenant has, and look that nothing is left
    Erase {
        /// The tenant
        name: String,
        #[command(flatten)]
        store: StorePlaceArguments,
        /// Erase it without asking
        #[arg(long)]
        yes: bool,
    },
}
