//! Wards: checks before, after and between the turns of a phase.

use plimsoll_core::Role;

use super::conversation::Conversation;
use super::error::RunError;
use super::state::output_of;
use super::validate::Validation;
use super::visit::Visit;
use crate::definition::{Ward, WardMode};

impl Visit<'_> {
    /// Runs checks; a blocking one fails the phase.
    pub(crate) async fn wards(
        &mut self,
        wards: &[Ward],
        text: &str,
    ) -> Result<Validation, RunError> {
        let mut result = Validation::valid();
        for ward in wards {
            let validation = self.validate(&ward.validator, text, 1).await?;
            if validation.valid {
                continue;
            }
            let why = format!("a check failed: {}", validation.reason);
            match ward.mode {
                WardMode::Blocking => return Err(self.failed(why)),
                WardMode::Advisory => self.note(why),
                WardMode::Retry => result = validation,
            }
        }
        Ok(result)
    }

    /// Checks a turn; the model is told of a failure that a further turn may correct.
    pub(crate) async fn turn_wards(
        &mut self,
        conversation: &mut Conversation,
    ) -> Result<(), RunError> {
        if self.phase.wards.turn.is_empty() {
            return Ok(());
        }
        let text = output_of(conversation.own_messages());
        let validation = self.wards(&self.phase.wards.turn, &text).await?;
        if !validation.valid {
            let text = format!("[Validation Failed]\n{}", validation.reason);
            conversation.push(self.say(Role::User, text).await?);
        }
        Ok(())
    }
}
