//! Calibration: the agreement of recorded confidence with recorded outcomes.

use serde::{Deserialize, Serialize};

use crate::memory::Outcome;

/// The confidence and the outcome of a reviewed decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReviewedDecision {
    /// 0 to 1, as recorded before the work.
    pub confidence: f64,
    pub outcome: Outcome,
}

/// Settings of the calibration note; the document gives the note and no numbers, these are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalibrationSettings {
    /// With fewer reviewed decisions nothing is said.
    pub least_reviewed: usize,
    /// A mean confidence that is off by more than this is slightly off.
    pub slight: f64,
    /// A mean confidence that is off by more than this is off.
    pub marked: f64,
}

impl Default for CalibrationSettings {
    fn default() -> Self {
        Self { least_reviewed: 5, slight: 0.05, marked: 0.15 }
    }
}

/// How well confidence predicted outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceCalibration {
    pub reviewed: usize,
    /// The mean of outcomes: a success is 1, a partial one ½.
    pub accuracy: f64,
    /// The mean squared distance of confidence and outcome; 0 is perfect, a constant ½ gives ¼.
    ///
    /// Source: Brier, Verification of forecasts expressed in terms of probability, 1950; with outcomes of 0 and 1.
    pub brier: f64,
    /// Mean confidence less accuracy: positive is overconfident.
    pub bias: f64,
}

/// Measures reviewed decisions; pending ones are ignored.
///
/// Shape: `None` with fewer than `least_reviewed`, or none.
pub fn calibration(
    decisions: impl IntoIterator<Item = ReviewedDecision>,
    settings: &CalibrationSettings,
) -> Option<ConfidenceCalibration> {
    let (mut reviewed, mut accuracy, mut brier, mut confidence) = (0_usize, 0.0, 0.0, 0.0);
    for decision in decisions {
        let outcome = match decision.outcome {
            Outcome::Success => 1.0,
            Outcome::Partial => 0.5,
            Outcome::Failure => 0.0,
            Outcome::Pending => continue,
        };
        if decision.confidence.is_nan() {
            continue;
        }
        let confident = decision.confidence.clamp(0.0, 1.0);
        reviewed += 1;
        accuracy += outcome;
        confidence += confident;
        brier += (confident - outcome).powi(2);
    }
    if reviewed == 0 || reviewed < settings.least_reviewed {
        return None;
    }
    let count = reviewed as f64;
    let accuracy = accuracy / count;
    Some(ConfidenceCalibration {
        reviewed,
        accuracy,
        brier: brier / count,
        bias: confidence / count - accuracy,
    })
}

impl ConfidenceCalibration {
    /// Returns the note for the model.
    pub fn advice(&self, settings: &CalibrationSettings) -> String {
        let off = self.bias.abs();
        let advice = match (off > settings.slight, off > settings.marked, self.bias > 0.0) {
            (false, _, _) => "Well calibrated — keep saying what you think.",
            (_, false, false) => "Slightly underconfident — trust your analysis.",
            (_, true, false) => "Underconfident — your analysis is better than you say.",
            (_, false, true) => "Slightly overconfident — check once more before you commit.",
            (_, true, true) => "Overconfident — look for what speaks against it before you commit.",
        };
        let accuracy = self.accuracy * 100.0;
        format!("Recent accuracy: {accuracy:.0}%. Brier: {:.3}. {advice}", self.brier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(pairs: &[(f64, Outcome)], settings: &CalibrationSettings) -> Option<String> {
        let decisions =
            pairs.iter().map(|&(confidence, outcome)| ReviewedDecision { confidence, outcome });
        calibration(decisions, settings).map(|found| found.advice(settings))
    }

    #[test]
    fn accuracy_and_brier_score_are_those_of_the_outcomes() {
        use Outcome::{Failure, Partial, Pending, Success};
        let mut pairs = vec![(0.5, Success), (0.5, Failure), (1.0, Success), (0.5, Partial)];
        let settings = CalibrationSettings::default();
        assert_eq!(advice(&pairs, &settings), None);
        pairs.extend([(0.9, Pending), (f64::NAN, Success), (0.5, Failure)]);
        assert_eq!(
            advice(&pairs, &settings).as_deref(),
            Some(
                "Recent accuracy: 50%. Brier: 0.150. \
                 Slightly overconfident — check once more before you commit."
            )
        );
        let sure = [(0.9, Success); 5];
        assert_eq!(
            advice(&sure, &settings).as_deref(),
            Some(
                "Recent accuracy: 100%. Brier: 0.010. Slightly underconfident — trust your analysis."
            )
        );
        assert!(
            advice(&[(0.9, Failure); 5], &settings).expect("enough").contains(" Overconfident")
        );
        assert!(
            advice(&[(0.5, Success); 5], &settings).expect("enough").contains(" Underconfident")
        );
        assert!(
            advice(&[(1.0, Success); 5], &settings).expect("enough").contains("Well calibrated")
        );
    }

    #[test]
    fn every_setting_changes_the_note() {
        let base = CalibrationSettings::default();
        let pairs = [(0.9, Outcome::Success); 5];
        for changed in [
            CalibrationSettings { least_reviewed: 6, ..base.clone() },
            CalibrationSettings { slight: 0.11, ..base.clone() },
            CalibrationSettings { marked: 0.09, ..base.clone() },
        ] {
            assert_ne!(advice(&pairs, &base), advice(&pairs, &changed), "{changed:?}");
        }
        let none = CalibrationSettings { least_reviewed: 0, ..base };
        assert_eq!(advice(&[], &none), None);
    }
}
