//! Decisions: recorded, pending, reviewed; permanent.

use serde::{Deserialize, Serialize};

use super::{Event, TransitionError, check_state};
use crate::MillisSinceEpoch;
use crate::memory::{MemoryState, Outcome};

/// The lifecycle fields of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionLifecycle {
    pub state: MemoryState,
    pub outcome: Outcome,
    pub reviewed_at: Option<MillisSinceEpoch>,
    /// The id of a newer decision on the same question; the state stays, since the decision was taken.
    pub superseded_by: Option<String>,
}

impl Default for DecisionLifecycle {
    fn default() -> Self {
        Self {
            state: MemoryState::Recorded,
            outcome: Outcome::Pending,
            reviewed_at: None,
            superseded_by: None,
        }
    }
}

impl DecisionLifecycle {
    pub(super) fn after(
        &self,
        event: &Event,
        now: MillisSinceEpoch,
    ) -> Result<Self, TransitionError> {
        use MemoryState::{Pending, Recorded, Reviewed};
        check_state("decision", self.state, &[Recorded, Pending, Reviewed])?;
        let refuse =
            |why: String| Err(TransitionError { kind: "decision", state: self.state, why });
        let mut decision = self.clone();
        match (event, self.state) {
            (Event::TimePassed, _) => {}
            (Event::WorkDone, Recorded) => decision.state = Pending,
            (Event::WorkDone, _) => return refuse("the work is done already".into()),
            (Event::Reviewed(Outcome::Pending), _) => {
                return refuse("`pending` is not an outcome".into());
            }
            (Event::Reviewed(outcome), Pending) => {
                decision.state = Reviewed;
                decision.outcome = *outcome;
                decision.reviewed_at = Some(now);
            }
            (Event::Reviewed(_), Recorded) => {
                return refuse("there is no outcome before the work is done".into());
            }
            (Event::Reviewed(_), _) => return refuse("its outcome is logged already".into()),
            (Event::SupersededBy(by), _) => match &self.superseded_by {
                Some(earlier) => return refuse(format!("`{earlier}` stands in its place")),
                None => decision.superseded_by = Some(by.clone()),
            },
            _ => {
                return refuse(
                    "decisions are permanent; record a newer one that supersedes it".into(),
                );
            }
        }
        Ok(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_logged_once_and_after_the_work() {
        let now = MillisSinceEpoch(7);
        let failed = Event::Reviewed(Outcome::Failure);
        let recorded = DecisionLifecycle::default();
        assert!(recorded.after(&failed, now).is_err());
        let pending = recorded.after(&Event::WorkDone, now).expect("drawn");
        assert!(pending.after(&Event::Reviewed(Outcome::Pending), now).is_err());
        let reviewed = pending.after(&failed, now).expect("drawn");
        assert_eq!((reviewed.outcome, reviewed.reviewed_at), (Outcome::Failure, Some(now)));
        assert!(reviewed.after(&Event::Reviewed(Outcome::Success), now).is_err());
    }
}
