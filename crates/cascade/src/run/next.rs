//! The order of the phases: which one comes next.

use super::CascadeRun;
use super::error::RunError;
use super::event::RunEvent;
use super::journal::Journal;
use super::phase::PhaseEnd;
use super::state::RunState;
use super::visit::Visit;
use crate::definition::{Cascade, Phase};

impl CascadeRun {
    /// Runs phases until none comes next.
    pub(crate) async fn phases(
        &self,
        past: &mut RunState,
        journal: &mut Journal,
    ) -> Result<(), RunError> {
        let mut next = self.cascade.phases.first();
        while let Some(phase) = next {
            let name = phase.name.as_str();
            let visits = past.visits(name);
            let mut visit = Visit::new(self, phase, past, journal);
            if visits >= self.cascade.max_visits as usize {
                return Err(visit.failed(format!(
                    "it ran {visits} times; handoffs lead in a circle (`max_visits` of the cascade bounds them)"
                )));
            }
            if !visit.holds(phase.condition.as_ref())? {
                visit.note("passed over: its condition is false");
                next = after(&self.cascade, phase);
                continue;
            }
            let end = visit.run().await?;
            if let Some(run) = past.runs.last() {
                let output = run.output.clone();
                self.tell(&RunEvent::PhaseEnded { phase: name.to_owned(), output });
            }
            next = match end {
                PhaseEnd::GoTo(target) => self.target(phase, &target)?,
                PhaseEnd::Through => after(&self.cascade, phase),
            };
        }
        Ok(())
    }

    /// Returns the phase of this name; routes have words for the end, the next phase and the same one.
    fn target(&self, from: &Phase, name: &str) -> Result<Option<&Phase>, RunError> {
        if let Some(phase) = self.cascade.phase(name) {
            return Ok(Some(phase));
        }
        match name {
            "end" | "stop" | "done" | "exit" | "none" => Ok(None),
            "next" | "continue" => Ok(after(&self.cascade, from)),
            "self" | "retry" => Ok(self.cascade.phase(from.name.as_str())),
            _ => Err(RunError::Failed {
                phase: from.name.to_string(),
                why: format!("it goes on to `{name}`, and there is no such phase"),
            }),
        }
    }
}

/// Returns the phase that follows where the model chose none.
///
/// That is the first handoff. Without handoffs it is the next in the file, unless a handoff of another phase leads there:
/// then the file has branches, and this one ends.
pub(crate) fn after<'a>(cascade: &'a Cascade, phase: &Phase) -> Option<&'a Phase> {
    if let Some(handoff) = phase.handoffs.first() {
        return cascade.phase(&handoff.target.name);
    }
    let place = cascade.phases.iter().position(|one| one.name == phase.name)?;
    let next = cascade.phases.get(place + 1)?;
    let is_branch = cascade.phases.iter().any(|other| {
        other.handoffs.iter().any(|handoff| handoff.target.name == next.name.as_str())
    });
    (!is_branch).then_some(next)
}
