//! `plimsoll-load`: load on a gateway in front of `plimsoll-upstream --plain`.
//!
//! The generator, the upstream and the gateway share a machine: pin them (`e2e/load` does) and say so beside the figures.

mod arrivals;
mod chance;
mod client;
mod compare;
mod conversation;
mod figures;
mod forms;
mod kill;
mod overload;
mod process;
mod sessions;
mod streams;

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) type LoadError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Parser)]
#[command(
    name = "plimsoll-load",
    about = "Load on a gateway, measured from the intended start of every request"
)]
struct LoadArguments {
    /// Also write the figures as JSON to this file.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
    #[command(subcommand)]
    mode: LoadMode,
}

#[derive(Debug, Subcommand)]
enum LoadMode {
    /// The time that the gateway adds: the same load straight to the upstream and through the gateway, in turn.
    Compare(compare::CompareArguments),
    /// Many open streams at once.
    Streams(streams::StreamsArguments),
    /// More than the gateway can do.
    Overload(overload::OverloadArguments),
    /// Kills the gateway while it works; all that was acknowledged must be in its store.
    Kill(kill::KillArguments),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LoadError> {
    let arguments = LoadArguments::parse();
    let (text, figures) = match &arguments.mode {
        LoadMode::Compare(arguments) => compare::run(arguments).await?,
        LoadMode::Streams(arguments) => streams::run(arguments).await?,
        LoadMode::Overload(arguments) => overload::run(arguments).await?,
        LoadMode::Kill(arguments) => kill::run(arguments).await?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(path) = arguments.json {
        std::fs::write(path, format!("{figures:#}\n"))?;
    }
    Ok(())
}
