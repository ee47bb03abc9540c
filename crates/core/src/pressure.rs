//! Shows how full a context window is, as a bar, a footer and a record.

use serde::Serialize;

use crate::allocation::ContextBudget;

/// Cells of the bar; each stands for 5 %.
const CELLS: u32 = 20;
/// Above this percentage the window is nearly full.
const NEARLY_FULL: u32 = 80;

const SUMMARISING: &str =
    "ℹ️ Older conversation turns are being summarized to preserve context quality.";
const FULL: &str = "⚠️ Context is nearly full. Consider starting a new issue for fresh context, or I'll start compressing older conversation turns.";

/// How close a window is to being full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PressureLevel {
    /// Below `showPressureAbove`: nothing is shown.
    Hidden,
    /// The bar alone.
    Normal,
    /// Above `compressionThreshold`: older turns are being summarised.
    Compressing,
    /// Above 80 %.
    NearlyFull,
}

/// The fill of a window, ready to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pressure {
    pub session_tokens: u64,
    pub total_tokens: u64,
    /// Rounded; may be above 100.
    pub percent: u32,
    pub level: PressureLevel,
    /// Twenty cells, filled from the left; full from 100 % on.
    pub bar: String,
    /// A message for the user.
    pub message: Option<&'static str>,
}

/// Measures `session_tokens` against the window of `budget`.
///
/// The line about summarised turns appears above `compressionThreshold`, not above the fixed 60 % of the document, so that it
/// stays true if the setting changes.
/// Source: `context-window.md`, step 6.
pub fn pressure(session_tokens: u64, budget: &ContextBudget) -> Pressure {
    let usage = session_tokens as f64 / budget.total_tokens as f64;
    // The cast saturates and makes 0 of 0/0, so an unchecked window of 0 does no harm.
    let percent = (usage * 100.0).round() as u32;
    let above = |part: f64| f64::from(percent) > part * 100.0 + TOLERANCE;
    let (level, message) = if f64::from(percent) < budget.show_pressure_above * 100.0 - TOLERANCE {
        (PressureLevel::Hidden, None)
    } else if percent > NEARLY_FULL {
        (PressureLevel::NearlyFull, Some(FULL))
    } else if above(budget.compression_threshold) {
        (PressureLevel::Compressing, Some(SUMMARISING))
    } else {
        (PressureLevel::Normal, None)
    };
    let filled = (percent / (100 / CELLS)).min(CELLS) as usize;
    let bar = "█".repeat(filled) + &"░".repeat(CELLS as usize - filled);
    Pressure { session_tokens, total_tokens: budget.total_tokens, percent, level, bar, message }
}

/// A threshold such as 0.07 is 7.000000000000001 %.
const TOLERANCE: f64 = 1e-9;

impl Pressure {
    /// Returns the bar with its percentage, and the message on a line of its own; empty where hidden.
    pub fn text(&self) -> String {
        if self.level == PressureLevel::Hidden {
            return String::new();
        }
        let mut text = format!("📊 Context: {} {}%", self.bar, self.percent);
        if let Some(message) = self.message {
            text.push('\n');
            text.push_str(message);
        }
        text
    }

    /// Returns the footer to append to an answer in Markdown; empty where hidden.
    ///
    /// Source: `context-window.md`, step 6.
    pub fn markdown(&self) -> String {
        match self.text() {
            text if text.is_empty() => text,
            text => format!("\n\n<sub>{text}</sub>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_percent(percent: u64) -> Pressure {
        pressure(percent * 2000, &ContextBudget::default())
    }

    #[test]
    fn the_footer_is_the_documents() {
        assert_eq!(of_percent(0).markdown(), "");
        assert_eq!(of_percent(29).markdown(), "");
        insta::assert_snapshot!(of_percent(30).text(), @"📊 Context: ██████░░░░░░░░░░░░░░ 30%");
        assert_eq!(
            of_percent(60).markdown(),
            "\n\n<sub>📊 Context: ████████████░░░░░░░░ 60%</sub>"
        );
        assert_eq!(
            of_percent(61).markdown(),
            "\n\n<sub>📊 Context: ████████████░░░░░░░░ 61%\nℹ️ Older conversation turns are being \
             summarized to preserve context quality.</sub>"
        );
        assert_eq!(of_percent(80).level, PressureLevel::Compressing);
        assert_eq!(
            of_percent(81).markdown(),
            "\n\n<sub>📊 Context: ████████████████░░░░ 81%\n⚠️ Context is nearly full. Consider \
             starting a new issue for fresh context, or I'll start compressing older conversation \
             turns.</sub>"
        );
    }

    #[test]
    fn over_full_is_a_full_bar() {
        assert_eq!(of_percent(99).bar.matches('░').count(), 1);
        for percent in [100, 101, 250, u64::MAX / 2000] {
            assert_eq!(of_percent(percent).bar, "█".repeat(20), "{percent}");
        }
        assert_eq!(of_percent(250).percent, 250);
        let empty = ContextBudget { total_tokens: 0, ..ContextBudget::default() };
        assert_eq!(pressure(0, &empty).percent, 0);
        assert_eq!(pressure(1, &empty).bar, "█".repeat(20));
    }

    #[test]
    fn every_setting_shows() {
        let default = ContextBudget::default();
        let show = |budget: ContextBudget| pressure(100_000, &budget).level;
        assert_eq!(show(default), PressureLevel::Normal);
        assert_eq!(
            show(ContextBudget { show_pressure_above: 0.51, ..default }),
            PressureLevel::Hidden
        );
        assert_eq!(
            show(ContextBudget { compression_threshold: 0.49, ..default }),
            PressureLevel::Compressing
        );
        assert_eq!(
            show(ContextBudget { total_tokens: 110_000, ..default }),
            PressureLevel::NearlyFull
        );
        let seven = ContextBudget { show_pressure_above: 0.07, ..default };
        assert_eq!(pressure(14_000, &seven).level, PressureLevel::Normal);
    }

    #[test]
    fn the_record_is_plain_json() {
        let record = serde_json::to_string(&of_percent(29)).expect("plain data");
        insta::assert_snapshot!(record, @r#"{"session_tokens":58000,"total_tokens":200000,"percent":29,"level":"hidden","bar":"█████░░░░░░░░░░░░░░░","message":null}"#);
    }
}
