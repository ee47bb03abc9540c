//! Arguments of `plimsoll bill`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What a bill is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum By {
    /// The folder that an agent worked in
    Project,
    /// The model that was asked
    Model,
    /// The day of a request, in UTC
    Day,
    /// The session, its sub-agents included
    Session,
}

impl By {
    pub(crate) const ALL: [Self; 4] = [Self::Project, Self::Model, Self::Day, Self::Session];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Model => "model",
            Self::Day => "day",
            Self::Session => "session",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct BillArguments {
    /// Recorded sessions, or folders of them; without any, the places where agents keep theirs
    #[arg(value_name = "FILE|FOLDER")]
    pub(crate) paths: Vec<PathBuf>,
    /// Divide the bill by this only
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<By>,
    /// List all rows instead of the most expensive
    #[arg(long)]
    pub(crate) all: bool,
    /// Count requests from this day or time on, `2026-01-31`
    #[arg(long, value_name = "DATE", value_parser = time)]
    pub(crate) since: Option<plimsoll_core::MillisSinceEpoch>,
    /// A table of prices instead of the shipped one
    #[arg(long, value_name = "FILE")]
    pub(crate) pricing: Option<PathBuf>,
    /// Write the bill as one self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn time(text: &str) -> Result<plimsoll_core::MillisSinceEpoch, String> {
    crate::clock::parse(text).ok_or_else(|| "not a date such as 2026-01-31".to_owned())
}
