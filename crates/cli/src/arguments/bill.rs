//! Arguments of `plimsoll bill`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_core::bill::Division;

#[derive(Debug, Args)]
pub(crate) struct BillArguments {
    /// Recorded sessions, or folders of them; without any, the places where agents keep theirs
    #[arg(value_name = "FILE|FOLDER")]
    pub(crate) paths: Vec<PathBuf>,
    /// Divide the bill by this only
    #[arg(long, value_name = "WHAT", value_parser = divisions())]
    pub(crate) by: Option<Division>,
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

pub(super) fn time(text: &str) -> Result<plimsoll_core::MillisSinceEpoch, String> {
    crate::clock::parse(text).ok_or_else(|| "not a date such as 2026-01-31".to_owned())
}

pub(super) fn divisions() -> impl TypedValueParser<Value = Division> {
    let values = Division::ALL.map(|by| {
        PossibleValue::new(by.as_str()).help(match by {
            Division::Project => "The folder that an agent worked in",
            Division::Model => "The model that was asked",
            Division::Day => "The day of a request, in UTC",
            Division::Session => "The session, its sub-agents included",
        })
    });
    PossibleValuesParser::new(values).try_map(|name| {
        Division::ALL.into_iter().find(|by| by.as_str() == name).ok_or("no such division")
    })
}
