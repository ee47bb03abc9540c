//! Wards: checks before, after and between the turns of a phase.

use plimsoll_core::Role;

use super::Run;
use super::error::RunError;
use super::journal::Journal;
use super::state::{RunState, output_of};
use super::turns::{Talk, own_message};
use super::validate::Verdict;
use crate::definition::{Phase, Ward, WardMode};

impl Run {
    /// Runs checks; one that blocks fails the phase.
    pub(crate) async fn wards(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        wards: &[Ward],
        text: &str,
    ) -> Result<Verdict, RunError> {
        let mut verdict = Verdict::valid();
        for ward in wards {
            let one = self.validated(phase, past, journal, &ward.validator, text, 1).await?;
            if one.valid {
                continue;
            }
            match ward.mode {
                WardMode::Blocking => {
                    let why = format!("a check failed: {}", one.reason);
                    return Err(RunError::Failed { phase: phase.name.to_string(), why });
                }
                WardMode::Advisory => {
                    self.note(phase.name.as_str(), format!("a check failed: {}", one.reason));
                }
                WardMode::Retry => verdict = one,
            }
        }
        Ok(verdict)
    }

    /// Checks a turn; what a further turn may mend is told to the model.
    pub(crate) async fn turn_wards(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        talk: &mut Talk,
    ) -> Result<(), RunError> {
        if phase.wards.turn.is_empty() {
            return Ok(());
        }
        let text = output_of(&talk.own());
        let verdict = self.wards(phase, past, journal, &phase.wards.turn, &text).await?;
        if !verdict.valid {
            let text = format!("[Validation Failed]\n{}", verdict.reason);
            talk.hear(journal.say(own_message(phase, Role::User, text)).await?);
        }
        Ok(())
    }
}
