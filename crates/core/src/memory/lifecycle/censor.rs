//! Censors: created, active, escalated, retired.

use serde::{Deserialize, Serialize};

use super::{Event, LifecycleSettings, TransitionError, check_state};
use crate::memory::MemoryState;

/// The effect of a censor whose pattern matches.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Warn,
    Block,
}

/// The lifecycle fields of a censor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CensorLifecycle {
    pub state: MemoryState,
    pub severity: Severity,
    pub activations: u32,
    pub false_positives: u32,
    /// The id of the censor that replaced it.
    pub superseded_by: Option<String>,
}

impl Default for CensorLifecycle {
    fn default() -> Self {
        Self {
            state: MemoryState::Created,
            severity: Severity::Warn,
            activations: 0,
            false_positives: 0,
            superseded_by: None,
        }
    }
}

impl CensorLifecycle {
    pub(super) fn after(
        &self,
        event: &Event,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        use MemoryState::{Active, Created, Escalated, Retired};
        check_state("censor", self.state, &[Created, Active, Escalated, Retired])?;
        let refuse = |why: &str| {
            Err(TransitionError { kind: "censor", state: self.state, why: why.to_owned() })
        };
        let mut censor = self.clone();
        match event {
            Event::TimePassed => {}
            Event::Triggered | Event::FalsePositive | Event::Retired | Event::SupersededBy(_)
                if self.state == Retired =>
            {
                return refuse("it is out of use");
            }
            Event::Triggered => {
                censor.activations = self.activations.saturating_add(1);
                if self.state == Created && censor.activations >= numbers.activations_to_active {
                    censor.state = Active;
                }
                if censor.activations > numbers.escalate_above {
                    censor.state = Escalated;
                    censor.severity = Severity::Block;
                }
            }
            Event::FalsePositive => {
                censor.false_positives = self.false_positives.saturating_add(1);
                if censor.false_positives > numbers.retire_above_false_positives {
                    censor.state = Retired;
                }
            }
            Event::Retired => censor.state = Retired,
            Event::SupersededBy(by) => {
                censor.state = Retired;
                censor.superseded_by = Some(by.clone());
            }
            _ => {
                return refuse(
                    "it can be triggered, found wrong, superseded or retired, nothing else",
                );
            }
        }
        Ok(censor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryState::{Active, Created, Escalated, Retired};

    fn after(event: &Event, times: usize, numbers: &LifecycleSettings) -> CensorLifecycle {
        (0..times).fold(CensorLifecycle::default(), |censor, _| {
            censor.after(event, numbers).expect("in use")
        })
    }

    #[test]
    fn activations_make_it_active_and_then_a_block() {
        let numbers = LifecycleSettings::default();
        for (times, state, severity) in [
            (0, Created, Severity::Warn),
            (1, Created, Severity::Warn),
            (2, Active, Severity::Warn),
            (5, Active, Severity::Warn),
            (6, Escalated, Severity::Block),
            (7, Escalated, Severity::Block),
        ] {
            let censor = after(&Event::Triggered, times, &numbers);
            assert_eq!((censor.state, censor.severity), (state, severity), "{times}");
        }
        let at_once = LifecycleSettings { activations_to_active: 1, ..numbers.clone() };
        assert_eq!(after(&Event::Triggered, 1, &at_once).state, Active);
        let sooner = LifecycleSettings { escalate_above: 2, ..numbers };
        assert_eq!(after(&Event::Triggered, 3, &sooner).state, Escalated);
    }

    #[test]
    fn too_many_false_positives_retire_it() {
        let numbers = LifecycleSettings::default();
        assert_eq!(after(&Event::FalsePositive, 3, &numbers).state, Created);
        assert_eq!(after(&Event::FalsePositive, 4, &numbers).state, Retired);
        let strict = LifecycleSettings { retire_above_false_positives: 0, ..numbers };
        assert_eq!(after(&Event::FalsePositive, 1, &strict).state, Retired);
    }
}
