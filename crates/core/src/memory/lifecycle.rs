//! Lifecycles: how events change a record, for each kind as in `memory-context.md`.
//!
//! A transition takes a record, an event and the time, and returns the changed record or an error. No event deletes a
//! record; the store keeps earlier states (`as of` a date).

mod censor;
mod chain;
mod decision;
mod episode;
mod fact;
mod procedure;

use serde::{Deserialize, Serialize};

pub use censor::{CensorLifecycle, Severity};
pub use chain::{BrokenChain, chain, check_supersession};
pub use decision::DecisionLifecycle;
pub use episode::EpisodeLifecycle;
pub use fact::FactLifecycle;
pub use procedure::ProcedureLifecycle;

use crate::MillisSinceEpoch;
use crate::memory::{MemoryState, Outcome};

/// Milliseconds of a day.
pub(crate) const DAY: i64 = 24 * 60 * 60 * 1000;

/// The numbers of the lifecycles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LifecycleSettings {
    /// Confirmations that make a fact core.
    pub confirmations_to_core: u32,
    /// Days after which an episode counts as older: its detail may go.
    pub summarize_after_days: u32,
    /// Days after which an episode is put away.
    pub archive_after_days: u32,
    /// Activations before the effectiveness of a procedure is computed.
    pub least_activations: u32,
    /// A procedure of more than this effectiveness is effective.
    pub effective_above: f64,
    /// A procedure of less than this effectiveness is flagged for review.
    pub ineffective_below: f64,
    /// Activations from which on a censor counts as regularly triggered.
    pub activations_to_active: u32,
    /// A censor with more activations than this is escalated.
    pub escalate_above: u32,
    /// A censor with more false positives than this is retired.
    pub retire_above_false_positives: u32,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            confirmations_to_core: 3,
            summarize_after_days: 30,
            archive_after_days: 90,
            least_activations: 5,
            effective_above: 0.6,
            ineffective_below: 0.4,
            // The document names no numbers for censors. Chosen: one activation may be chance; a censor escalates after as many
            // activations as rate a procedure; three false alarms are forgiven.
            activations_to_active: 2,
            escalate_above: 5,
            retire_above_false_positives: 3,
        }
    }
}

/// An event in the life of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A fact was met again.
    Confirmed,
    /// Somebody marked a fact as core.
    Marked,
    /// A newer record, by its id, contradicts or replaces it.
    SupersededBy(String),
    /// A record was proven wrong.
    Disproved,
    /// A procedure was used.
    Activated { worked: bool },
    /// A censor was triggered.
    Triggered,
    /// A censor was triggered wrongly.
    FalsePositive,
    /// Somebody took a record out of use.
    Retired,
    /// A decision was carried out.
    WorkDone,
    /// The outcome of a decision is known.
    Reviewed(Outcome),
    /// Time passed; every record accepts this event.
    TimePassed,
}

/// Why a record refuses an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {kind} that is {}: {why}", state.as_str())]
pub struct TransitionError {
    /// `fact`, `episode`, `procedure`, `censor` or `decision`.
    pub kind: &'static str,
    pub state: MemoryState,
    pub why: String,
}

/// The fields of a record that its lifecycle reads and changes.
///
/// Shape: the fields of each kind are those of a stored record's `details`; unknown fields there are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lifecycle {
    Fact(FactLifecycle),
    Episode(EpisodeLifecycle),
    Procedure(ProcedureLifecycle),
    Censor(CensorLifecycle),
    Decision(DecisionLifecycle),
}

impl Lifecycle {
    /// Returns the record after `event`.
    ///
    /// Errors: [`TransitionError`] if the kind has no such event, or not in this state; the record stays as it is.
    pub fn after(
        &self,
        event: &Event,
        now: MillisSinceEpoch,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        let own = |event| self.after_own(event, now, numbers);
        let is_out = matches!(self.state(), MemoryState::Inactive | MemoryState::Retired);
        let has_disproved = matches!(self, Self::Fact(_));
        let has_retired = matches!(self, Self::Procedure(_) | Self::Censor(_));
        let is_own = match self.state() {
            MemoryState::Inactive => has_disproved,
            MemoryState::Retired => has_retired,
            _ => true,
        };
        let out_of_use = || TransitionError {
            kind: self.kind(),
            state: self.state(),
            why: "it is out of use".to_owned(),
        };
        // A correction is for every kind: each may be wrong, and each may be of no use any more.
        let corrected = match event {
            Event::Disproved if !has_disproved => Some(MemoryState::Inactive),
            Event::Retired if !has_retired => Some(MemoryState::Retired),
            _ => None,
        };
        match (event, corrected) {
            (Event::TimePassed, _) if is_out && !is_own => Ok(self.clone()),
            (_, Some(_)) if is_out => Err(out_of_use()),
            (_, Some(state)) => own(&Event::TimePassed).map(|_| self.with_state(state)),
            _ if is_out && !is_own => Err(out_of_use()),
            _ => own(event),
        }
    }

    fn after_own(
        &self,
        event: &Event,
        now: MillisSinceEpoch,
        numbers: &LifecycleSettings,
    ) -> Result<Self, TransitionError> {
        Ok(match self {
            Self::Fact(fact) => Self::Fact(fact.after(event, now, numbers)?),
            Self::Episode(episode) => Self::Episode(episode.after(event, now, numbers)?),
            Self::Procedure(procedure) => Self::Procedure(procedure.after(event, numbers)?),
            Self::Censor(censor) => Self::Censor(censor.after(event, numbers)?),
            Self::Decision(decision) => Self::Decision(decision.after(event, now)?),
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Fact(_) => "fact",
            Self::Episode(_) => "episode",
            Self::Procedure(_) => "procedure",
            Self::Censor(_) => "censor",
            Self::Decision(_) => "decision",
        }
    }

    fn with_state(&self, state: MemoryState) -> Self {
        let mut life = self.clone();
        *match &mut life {
            Self::Fact(fact) => &mut fact.state,
            Self::Episode(episode) => &mut episode.state,
            Self::Procedure(procedure) => &mut procedure.state,
            Self::Censor(censor) => &mut censor.state,
            Self::Decision(decision) => &mut decision.state,
        } = state;
        life
    }

    /// Returns the state of the record.
    pub fn state(&self) -> MemoryState {
        match self {
            Self::Fact(fact) => fact.state,
            Self::Episode(episode) => episode.state,
            Self::Procedure(procedure) => procedure.state,
            Self::Censor(censor) => censor.state,
            Self::Decision(decision) => decision.state,
        }
    }
}

/// Refuses a state that `kind` does not have, as a damaged record may.
fn check_state(
    kind: &'static str,
    state: MemoryState,
    own: &[MemoryState],
) -> Result<(), TransitionError> {
    if own.contains(&state) {
        return Ok(());
    }
    Err(TransitionError { kind, state, why: format!("a {kind} has no such state") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryState::{
        Active, Archived, Confirmed, Core, Created, Effective, Escalated, Inactive, Ineffective,
        New, Pending, Recorded, Retired, Reviewed, Summarized, Superseded,
    };

    const NOW: MillisSinceEpoch = MillisSinceEpoch(1_700_000_000_000);

    fn events() -> Vec<(&'static str, Event)> {
        vec![
            ("confirmed", Event::Confirmed),
            ("marked", Event::Marked),
            ("superseded", Event::SupersededBy("newer".into())),
            ("disproved", Event::Disproved),
            ("activated", Event::Activated { worked: true }),
            ("triggered", Event::Triggered),
            ("false positive", Event::FalsePositive),
            ("retired", Event::Retired),
            ("work done", Event::WorkDone),
            ("reviewed", Event::Reviewed(Outcome::Success)),
            ("time", Event::TimePassed),
        ]
    }

    fn in_state(kind: &str, state: MemoryState) -> Lifecycle {
        match kind {
            "fact" => Lifecycle::Fact(FactLifecycle { state, ..FactLifecycle::default() }),
            "episode" => Lifecycle::Episode(EpisodeLifecycle {
                state,
                happened_at: NOW,
                ..EpisodeLifecycle::default()
            }),
            "procedure" => {
                Lifecycle::Procedure(ProcedureLifecycle { state, ..ProcedureLifecycle::default() })
            }
            "censor" => Lifecycle::Censor(CensorLifecycle { state, ..CensorLifecycle::default() }),
            _ => Lifecycle::Decision(DecisionLifecycle { state, ..DecisionLifecycle::default() }),
        }
    }

    /// All that may happen: kind, from, event, to. What is not listed is refused.
    fn allowed(kind: &str, from: MemoryState, event: &str) -> Option<MemoryState> {
        Some(match (kind, from, event) {
            ("fact", New, "confirmed") => Confirmed,
            ("fact", New | Confirmed | Core, "marked") => Core,
            ("fact", New | Confirmed | Core, "superseded") => Superseded,
            ("fact", New | Confirmed | Core | Superseded, "disproved")
            | ("procedure", Active | Effective | Ineffective, "disproved")
            | ("censor", Created | Active | Escalated, "disproved")
            | ("decision", Recorded | Pending | Reviewed, "disproved")
            | ("episode", Active | Summarized | Archived, "disproved") => Inactive,
            ("procedure", Active | Effective | Ineffective, "retired" | "superseded")
            | ("censor", Created | Active | Escalated, "retired" | "superseded")
            | ("fact", New | Confirmed | Core | Superseded, "retired")
            | ("decision", Recorded | Pending | Reviewed, "retired")
            | ("episode", Active | Summarized | Archived, "retired") => Retired,
            ("decision", Recorded, "work done") => Pending,
            ("decision", Pending, "reviewed") => Reviewed,
            // Counted, or nothing but time.
            (_, Inactive | Retired, "time")
            | ("fact", Confirmed | Core, "confirmed" | "time")
            | ("fact", New | Superseded, "time")
            | ("procedure", Active | Effective | Ineffective, "activated" | "time")
            | ("censor", Created | Active | Escalated, "triggered" | "false positive" | "time")
            | ("decision", Recorded | Pending | Reviewed, "superseded" | "time")
            | ("episode", Active | Summarized | Archived, "time") => from,
            _ => return None,
        })
    }

    #[test]
    fn every_event_in_every_state_does_what_is_drawn_or_is_refused() {
        for kind in ["fact", "episode", "procedure", "censor", "decision"] {
            for &state in MemoryState::ALL {
                for (name, event) in events() {
                    let life = in_state(kind, state);
                    let found = life.after(&event, NOW, &LifecycleSettings::default());
                    match (found, allowed(kind, state, name)) {
                        (Ok(after), Some(to)) => {
                            assert_eq!(after.state(), to, "{kind} {state:?} {name}");
                        }
                        (Err(refused), None) => assert!(!refused.why.is_empty()),
                        (found, allowed) => {
                            panic!("{kind} {state:?} {name}: {found:?}, drawn {allowed:?}")
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_refusal_says_why() {
        let decision = in_state("decision", Retired);
        let refused = decision.after(&Event::Disproved, NOW, &LifecycleSettings::default());
        assert_eq!(
            refused.expect_err("out of use").to_string(),
            "a decision that is retired: it is out of use"
        );
    }

    #[test]
    fn an_unknown_number_is_refused() {
        assert!(serde_json::from_str::<LifecycleSettings>(r#"{"archive_after_days": 1}"#).is_ok());
        assert!(
            serde_json::from_str::<LifecycleSettings>(r#"{"archive_after_weeks": 1}"#).is_err()
        );
    }
}
