//! The guard on labelled pairs of questions: how often it would serve an answer, and how often a wrong one.

use serde::Serialize;

use super::{AgreementRules, AnswerSettings, Reading, Verdict, same_question, upper_bound};

/// Similarities that are tried beside the configured one (chosen).
const TRIED: [f64; 4] = [0.9, 0.95, 0.97, 0.99];

/// A labelled pair, with the similarities of the questions as they are asked and as they are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelledPair<'a> {
    /// Whether both ask the same.
    pub is_same: bool,
    pub questions: [&'a str; 2],
    pub as_asked: f64,
    pub as_read: f64,
}

/// The conditions between similarity and serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardLevel {
    /// Similarity alone decides.
    Off,
    /// All that must agree, while other words may differ.
    Agreement,
    /// The settings as they are.
    Configured,
}

/// How one guard did on some pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardScore {
    /// `all`, `odd` or `even`.
    pub lines: &'static str,
    pub guard: GuardLevel,
    pub similarity: f64,
    pub pairs: u64,
    pub served: u64,
    pub wrong: u64,
    /// Right ones among those that are served.
    pub precision: f64,
    /// Rightly served ones among those labelled the same.
    pub hit_rate: f64,
    /// Wrong ones among those served: at most this, with 95 % confidence.
    pub wrong_at_most: f64,
}

impl<'a> LabelledPair<'a> {
    /// Reads a line, `1` or `0`, a question and a question between tabs; `None` for any other line.
    pub fn parse(
        line: &'a str,
        settings: &AnswerSettings,
        similarity: impl Fn(&str, &str) -> f64,
    ) -> Option<Self> {
        let mut parts = line.trim_end_matches('\r').split('\t');
        let is_same = match parts.next()? {
            "1" => true,
            "0" => false,
            _ => return None,
        };
        let questions @ [a, b] = [parts.next()?, parts.next()?];
        let read = |question: &str| Reading::of(question, &settings.alike).text();
        parts.next().is_none().then(|| Self {
            is_same,
            questions,
            as_asked: similarity(a, b),
            as_read: similarity(&read(a), &read(b)),
        })
    }

    /// Returns whether a guard serves the answer to one question for the other.
    pub fn is_served(&self, guard: GuardLevel, similarity: f64, settings: &AnswerSettings) -> bool {
        let [a, b] = self.questions;
        let mut settings = AnswerSettings { similarity_threshold: similarity, ..settings.clone() };
        match guard {
            GuardLevel::Off => return self.as_asked >= similarity,
            GuardLevel::Agreement => {
                settings.agree = AgreementRules { words: false, ..settings.agree.clone() };
            }
            GuardLevel::Configured => {}
        }
        same_question(a, b, self.as_read, &settings) == Verdict::Serve
    }
}

/// Scores each guard at each similarity on all pairs; with `halves` on the odd and the even lines by themselves too.
pub fn guard_scores(
    pairs: &[LabelledPair<'_>],
    settings: &AnswerSettings,
    halves: bool,
) -> Vec<GuardScore> {
    let mut tried: Vec<(GuardLevel, f64)> = Vec::new();
    for guard in [GuardLevel::Off, GuardLevel::Agreement] {
        tried.extend(TRIED.map(|similarity| (guard, similarity)));
    }
    tried.push((GuardLevel::Configured, settings.similarity_threshold));
    let parts: &[(&str, usize, usize)] =
        if halves { &[("all", 0, 1), ("odd", 0, 2), ("even", 1, 2)] } else { &[("all", 0, 1)] };
    let mut scores = Vec::new();
    for (lines, first, step) in parts {
        let pairs = || pairs.iter().skip(*first).step_by(*step);
        scores.extend(
            tried
                .iter()
                .map(|(guard, similarity)| score(lines, *guard, *similarity, pairs(), settings)),
        );
    }
    scores
}

fn score<'p, 'a: 'p>(
    lines: &'static str,
    guard: GuardLevel,
    similarity: f64,
    tried: impl Iterator<Item = &'p LabelledPair<'a>>,
    settings: &AnswerSettings,
) -> GuardScore {
    let (mut pairs, mut same, mut served, mut wrong) = (0, 0, 0, 0);
    for pair in tried {
        pairs += 1;
        same += u64::from(pair.is_same);
        if pair.is_served(guard, similarity, settings) {
            served += 1;
            wrong += u64::from(!pair.is_same);
        }
    }
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    GuardScore {
        lines,
        guard,
        similarity,
        pairs,
        served,
        wrong,
        precision: share(served - wrong, served),
        hit_rate: share(served - wrong, same),
        wrong_at_most: upper_bound(wrong, served),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_scored_on_all_lines_and_on_halves() {
        let settings = AnswerSettings::default();
        let alike = |_: &str, _: &str| 0.96;
        let lines = ["1\twho am I\twho am I", "0\tsell 3 boats\tsell 4 boats\r"];
        let pairs: Vec<_> = lines
            .iter()
            .map(|line| LabelledPair::parse(line, &settings, alike).expect("a pair"))
            .collect();
        let scores = guard_scores(&pairs, &settings, true);
        assert_eq!(scores.len(), 27);
        let off = &scores[1];
        assert_eq!((off.similarity, off.served, off.wrong, off.precision), (0.95, 2, 1, 0.5));
        assert_eq!(scores[2].served, 0, "0.96 is below 0.97");
        let [odd, even] = [&scores[10], &scores[19]];
        assert_eq!((odd.lines, odd.wrong, even.lines, even.wrong), ("odd", 0, "even", 1));
        assert_eq!(scores[5].wrong, 0, "numbers must agree");
    }

    #[test]
    fn other_lines_are_no_pairs() {
        let settings = AnswerSettings::default();
        for line in ["", "2\ta\tb", "1\ta", "1\ta\tb\tc"] {
            assert_eq!(LabelledPair::parse(line, &settings, |_, _| 1.0), None, "{line}");
        }
    }
}
