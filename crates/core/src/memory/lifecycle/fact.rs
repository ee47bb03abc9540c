//! Facts: new, confirmed, core, superseded, inactive.

use serde::{Deserialize, Serialize};

use super::{Event, LifecycleSettings, TransitionError, check_state};
use crate::MillisSinceEpoch;
use crate::memory::MemoryState;

/// The lifecycle fields of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FactLifecycle {
    pub state: MemoryState,
    /// How often another source confirmed it.
    pub confirmations: u32,
    pub last_confirmed: Option<MillisSinceEpoch>,
    /// The id of the newer fact that contradicts it.
    pub superseded_by: Option<String>,
}

impl Default for FactLifecycle {
    fn default() -> Self {
        Self {
            state: MemoryState::New,
            confirmations: 0,
            last_confirmed: None,
            superseded_by: None,
        }
    }
}

impl FactLifecycle {
    /// Returns the fact without its last confirmation, whose source is gone, and in the state before it if that raised the state.
    #[must_use]
    pub fn unconfirmed(&self, numbers: &LifecycleSettings) -> Self {
        use MemoryState::{Confirmed, Core, New};
        let mut fact = self.clone();
        fact.confirmations = self.confirmations.saturating_sub(1);
        match self.state {
            Core if self.confirmations == numbers.confirmations_to_core => fact.state = Confirmed,
            Confirmed if fact.confirmations == 0 => fact.state = New,
            _ => {}
        }
        fact
    }

    pub(super) fn after(
        &self,
        event: &Event,
        now: MillisSinceEpoch,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        use MemoryState::{Confirmed, Core, Inactive, New, Superseded};
        check_state("fact", self.state, &[New, Confirmed, Core, Superseded, Inactive])?;
        let refuse = |why: String| Err(TransitionError { kind: "fact", state: self.state, why });
        let mut fact = self.clone();
        match event {
            Event::TimePassed => return Ok(fact),
            Event::Disproved if self.state != Inactive => fact.state = Inactive,
            Event::Confirmed | Event::Marked | Event::SupersededBy(_) | Event::Disproved => {
                match (self.state, &self.superseded_by) {
                    (Inactive, _) => return refuse("it was proven wrong".into()),
                    (Superseded, Some(by)) => return refuse(format!("`{by}` stands in its place")),
                    (Superseded, None) => return refuse("a newer one stands in its place".into()),
                    _ => {}
                }
            }
            Event::Activated { .. }
            | Event::Triggered
            | Event::FalsePositive
            | Event::Retired
            | Event::WorkDone
            | Event::Reviewed(_) => {
                return refuse(
                    "it can be confirmed, marked, superseded or disproved, nothing else".into(),
                );
            }
        }
        match event {
            Event::Confirmed => {
                fact.confirmations = self.confirmations.saturating_add(1);
                fact.last_confirmed = Some(now);
                if fact.confirmations >= numbers.confirmations_to_core {
                    fact.state = Core;
                } else if self.state == New {
                    fact.state = Confirmed;
                }
            }
            Event::Marked => fact.state = Core,
            Event::SupersededBy(by) => {
                fact.state = Superseded;
                fact.superseded_by = Some(by.clone());
            }
            _ => {}
        }
        Ok(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(numbers: &LifecycleSettings) -> Vec<MemoryState> {
        let mut fact = FactLifecycle::default();
        (1..=4)
            .map(|n| {
                fact = fact.after(&Event::Confirmed, MillisSinceEpoch(n), numbers).expect("drawn");
                assert_eq!(fact.last_confirmed, Some(MillisSinceEpoch(n)));
                fact.state
            })
            .collect()
    }

    #[test]
    fn three_confirmations_make_a_fact_core() {
        use MemoryState::{Confirmed, Core};
        assert_eq!(states(&LifecycleSettings::default()), [Confirmed, Confirmed, Core, Core]);
        let two = LifecycleSettings { confirmations_to_core: 2, ..LifecycleSettings::default() };
        assert_eq!(states(&two), [Confirmed, Core, Core, Core]);
    }

    #[test]
    fn a_confirmation_that_is_taken_back_takes_its_state_along() {
        use MemoryState::{Confirmed, Core, New};
        let numbers = LifecycleSettings::default();
        let with = |state, confirmations| FactLifecycle {
            state,
            confirmations,
            ..FactLifecycle::default()
        };
        for (before, after) in [
            (with(Core, 3), with(Confirmed, 2)),
            (with(Core, 4), with(Core, 3)),
            (with(Confirmed, 2), with(Confirmed, 1)),
            (with(Confirmed, 1), with(New, 0)),
            // Marked by somebody, and not by being met.
            (with(Core, 1), with(Core, 0)),
            (with(New, 0), with(New, 0)),
        ] {
            assert_eq!(before.unconfirmed(&numbers), after);
        }
    }

    #[test]
    fn a_superseded_fact_names_the_newer_and_is_superseded_once() {
        let now = MillisSinceEpoch(0);
        let numbers = LifecycleSettings::default();
        let by = |id: &str| Event::SupersededBy(id.into());
        let fact = FactLifecycle::default().after(&by("b"), now, &numbers).expect("drawn");
        assert_eq!(fact.superseded_by.as_deref(), Some("b"));
        let refused = fact.after(&by("c"), now, &numbers).expect_err("once");
        assert_eq!(refused.why, "`b` stands in its place");
    }
}
