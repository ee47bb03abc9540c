//! `plimsoll pressure`: how full a session makes its context window.

use plimsoll_core::{PressureLevel, pressure, statistics};

use crate::arguments::{PressureArguments, PressureFormat};
use crate::context_config::context_budget;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::inspect::session_tokens;
use crate::load::{compaction, load};
use crate::output;

pub(crate) fn run(arguments: &PressureArguments) -> Result<(), CommandError> {
    let loaded = load(
        &arguments.session.file,
        &arguments.session.reading,
        compaction(arguments.no_compaction),
    )?;
    let budget = context_budget(&arguments.window, &loaded.session)?;
    let tokens = session_tokens(&statistics(&loaded.counted.transcript));
    let found = pressure(tokens, &budget);
    match arguments.format {
        PressureFormat::Json => output::json(&found),
        _ if arguments.json => output::json(&found),
        // The footer is appended to an answer as it is, so nothing may follow it.
        PressureFormat::Markdown => output::data(&found.markdown()),
        PressureFormat::Text if found.level == PressureLevel::Hidden => {
            output::note(&format!(
                "{}% of {} tokens, shown from {:.0}% on",
                found.percent,
                thousands(found.total_tokens),
                100.0 * budget.show_pressure_above
            ));
            Ok(())
        }
        PressureFormat::Text => output::data(&(found.text() + "\n")),
    }
}
