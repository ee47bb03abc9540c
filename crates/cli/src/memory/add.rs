//! `plimsoll memory add` and `supersede`.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::Severity;
use plimsoll_engine::MemoryId;
use plimsoll_engine::remember::{NewMemory, Novelty};

use super::{Desk, list, scope};
use crate::arguments::{AddArguments, SaidArguments, SupersedeArguments};
use crate::clock;
use crate::error::CommandError;
use crate::output;

pub(super) fn run(arguments: &AddArguments) -> Result<(), CommandError> {
    let new = said(&arguments.said)?;
    let desk = Desk::open(&arguments.plain)?;
    let (record, met) = desk.remember(async |remember, now| remember.add(new, now).await)?;
    if !arguments.plain.json {
        match met {
            Novelty::New => {}
            Novelty::Confirmed => output::note("it was known; it is confirmed"),
            Novelty::Known => output::note("it was known; nothing changed"),
            Novelty::Forgotten => output::note("it was forgotten, and stays so"),
        }
    }
    list::print(&record, arguments.plain.json)
}

pub(super) fn supersede(arguments: &SupersedeArguments) -> Result<(), CommandError> {
    let new = said(&arguments.said)?;
    let desk = Desk::open(&arguments.plain)?;
    let old = MemoryId(arguments.old.clone());
    let (before, next) =
        desk.remember(async |remember, now| remember.supersede(&old, new, now).await)?;
    list::print_all(&[next, before], arguments.plain.json)
}

fn said(arguments: &SaidArguments) -> Result<NewMemory, CommandError> {
    if let Some(confidence) = arguments.confidence
        && !(0.0..=1.0).contains(&confidence)
    {
        return Err(CommandError::usage(anyhow::anyhow!("--confidence is {confidence}"))
            .hint("give a share between 0 and 1"));
    }
    Ok(NewMemory {
        id: arguments.id.clone().map(MemoryId),
        scope: scope(&arguments.scope)?,
        name: arguments.name.clone(),
        points: arguments.points.clone(),
        summary: arguments.summary.clone(),
        full: arguments.full.clone(),
        origin: arguments.origin.clone(),
        confidence: arguments.confidence,
        source_ref: arguments.source.clone(),
        tags: arguments.tags.clone(),
        event_at: date(arguments.at.as_deref())?,
        expires_at: date(arguments.expires.as_deref())?,
        severity: if arguments.block { Severity::Block } else { Severity::Warn },
        outcome: arguments.outcome,
        ..NewMemory::new(arguments.kind, arguments.text.clone())
    })
}

/// Reads a date or a time in UTC.
pub(super) fn date(text: Option<&str>) -> Result<Option<MillisSinceEpoch>, CommandError> {
    let Some(text) = text else { return Ok(None) };
    clock::parse(text).map(Some).ok_or_else(|| {
        CommandError::usage(anyhow::anyhow!("`{text}` is no date"))
            .hint("such as 2026-01-31 or 2026-01-31T14:05:00Z")
    })
}
