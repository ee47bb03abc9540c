//! Procedures: active, effective, ineffective, retired.

use serde::{Deserialize, Serialize};

use super::{Event, LifecycleSettings, TransitionError, check_state};
use crate::memory::MemoryState;

/// The lifecycle fields of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcedureLifecycle {
    pub state: MemoryState,
    pub activations: u32,
    /// Activations that worked.
    pub successes: u32,
    /// The id of the procedure that replaced it.
    pub superseded_by: Option<String>,
}

impl Default for ProcedureLifecycle {
    fn default() -> Self {
        Self { state: MemoryState::Active, activations: 0, successes: 0, superseded_by: None }
    }
}

impl ProcedureLifecycle {
    /// Returns the share of activations that worked; `None` before there are enough activations.
    pub fn effectiveness(&self, numbers: &LifecycleSettings) -> Option<f64> {
        (self.activations >= numbers.least_activations.max(1))
            .then(|| f64::from(self.successes.min(self.activations)) / f64::from(self.activations))
    }

    pub(super) fn after(
        &self,
        event: &Event,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        use MemoryState::{Active, Effective, Ineffective, Retired};
        check_state("procedure", self.state, &[Active, Effective, Ineffective, Retired])?;
        let refuse = |why: &str| {
            Err(TransitionError { kind: "procedure", state: self.state, why: why.to_owned() })
        };
        let mut procedure = self.clone();
        match event {
            Event::TimePassed => {}
            Event::Activated { .. } | Event::Retired | Event::SupersededBy(_)
                if self.state == Retired =>
            {
                return refuse("it is out of use");
            }
            Event::Activated { worked } => {
                procedure.activations = self.activations.saturating_add(1);
                procedure.successes = self.successes.saturating_add(u32::from(*worked));
                // Between the two limits the state stays: one that flips at every use is of no use.
                match procedure.effectiveness(numbers) {
                    Some(share) if share > numbers.effective_above => procedure.state = Effective,
                    Some(share) if share < numbers.ineffective_below => {
                        procedure.state = Ineffective;
                    }
                    _ => {}
                }
            }
            Event::Retired => procedure.state = Retired,
            Event::SupersededBy(by) => {
                procedure.state = Retired;
                procedure.superseded_by = Some(by.clone());
            }
            _ => return refuse("it can be activated, superseded or retired, nothing else"),
        }
        Ok(procedure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryState::{Active, Effective, Ineffective};

    /// One `+` or `-` for each activation.
    fn check(uses: &str, numbers: &LifecycleSettings, expected: MemoryState) {
        let procedure = uses.chars().fold(ProcedureLifecycle::default(), |procedure, sign| {
            let event = Event::Activated { worked: sign == '+' };
            procedure.after(&event, numbers).expect("in use")
        });
        assert_eq!(procedure.state, expected, "{uses}");
    }

    #[test]
    fn effectiveness_counts_from_the_fifth_activation() {
        let numbers = LifecycleSettings::default();
        check("++++", &numbers, Active);
        check("+++++", &numbers, Effective);
        check("+++--", &numbers, Active);
        check("++++-", &numbers, Effective);
        check("++---", &numbers, Active);
        check("+----", &numbers, Ineffective);
        check("----", &numbers, Active);
        // Exactly 0.6 and 0.4 are between the marks, and there it stays what it was.
        check("++++---", &numbers, Effective);
        check("+----++", &numbers, Ineffective);
        check("+----+++++", &numbers, Ineffective);
        check("+----++++++", &numbers, Effective);
    }

    #[test]
    fn each_number_matters() {
        let numbers = LifecycleSettings::default();
        check("+++", &LifecycleSettings { least_activations: 3, ..numbers.clone() }, Effective);
        check("+++++", &LifecycleSettings { effective_above: 1.0, ..numbers.clone() }, Active);
        check(
            "++---",
            &LifecycleSettings { ineffective_below: 0.5, ..numbers.clone() },
            Ineffective,
        );
        let never = LifecycleSettings { least_activations: 0, ..numbers };
        assert_eq!(ProcedureLifecycle::default().effectiveness(&never), None);
    }
}
