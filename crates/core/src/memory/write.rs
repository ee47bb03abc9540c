//! Writes the levels of a record for a context: one line, and a few lines (`memory-context.md`, Memory Record Sizes).
//!
//! They are made when a record is written and when its outcome is known, never at a query. A summary by the caller replaces
//! the one that is made here.

use crate::memory::{MemoryKind, Outcome};

/// A caller's statement of a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statement<'a> {
    /// The decision, fact, task or event in one sentence; the reason of a censor, the purpose of a procedure.
    pub text: &'a str,
    /// The name of a procedure, the pattern of a censor.
    pub name: &'a str,
    /// The reasons of a decision, or the steps of a procedure.
    pub points: &'a [String],
    /// The result of a decision, in words.
    pub result: &'a str,
    pub outcome: Option<Outcome>,
    pub confidence: f64,
}

/// The levels of detail that a context may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    pub micro: String,
    /// `None` if the one line is complete.
    pub summary: Option<String>,
}

/// Writes the levels of a record of `kind`.
///
/// Shape: a decision is `text [outcome, confidence]`, and its summary adds the reasons. A procedure is its text, and its summary
/// lists the steps under `Core patterns:`. All others have their text and no summary.
pub fn levels(kind: MemoryKind, statement: &Statement<'_>) -> Levels {
    let text = statement.text.trim();
    match kind {
        MemoryKind::Decision => {
            let outcome = statement.outcome.unwrap_or(Outcome::Pending).as_str();
            let micro = format!("{text} [{outcome}, {:.2}]", statement.confidence);
            let mut why: Vec<String> =
                statement.points.iter().map(|point| sentence(point)).collect();
            why.extend(Some(sentence(statement.result)).filter(|result| !result.is_empty()));
            why.retain(|point| !point.is_empty());
            let summary = (!why.is_empty()).then(|| format!("{micro} — {}", why.join(" ")));
            Levels { micro, summary }
        }
        MemoryKind::Procedure => {
            let steps: Vec<&str> = statement
                .points
                .iter()
                .map(|point| point.trim())
                .filter(|p| !p.is_empty())
                .collect();
            let micro = match (text.is_empty(), steps.is_empty()) {
                (true, false) => steps.join(" → "),
                (true, true) => statement.name.trim().to_owned(),
                (false, _) => text.to_owned(),
            };
            let summary = format!("Core patterns:\n- {}", steps.join("\n- "));
            Levels { micro, summary: (!steps.is_empty()).then_some(summary) }
        }
        _ => Levels { micro: text.to_owned(), summary: None },
    }
}

/// Returns `text` with a stop at the end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?', '…', '"', '”', ')']) {
        return text.to_owned();
    }
    format!("{text}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryKind::{Decision, Fact, Procedure};

    #[track_caller]
    fn check(kind: MemoryKind, statement: &Statement<'_>, micro: &str, summary: Option<&str>) {
        let levels = levels(kind, statement);
        assert_eq!((&*levels.micro, levels.summary.as_deref()), (micro, summary));
    }

    #[test]
    fn each_kind_has_its_own_form() {
        let points =
            ["Unification reduces operational surface".to_owned(), "One backup.".to_owned()];
        let decided = Statement {
            text: "Chose Postgres over ChromaDB",
            points: &points,
            outcome: Some(Outcome::Success),
            confidence: 0.85,
            ..Statement::default()
        };
        let micro = "Chose Postgres over ChromaDB [success, 0.85]";
        let summary = format!("{micro} — Unification reduces operational surface. One backup.");
        check(Decision, &decided, micro, Some(&summary));
        let result = Statement { result: "8.5x faster", ..decided.clone() };
        check(Decision, &result, micro, Some(&format!("{summary} 8.5x faster.")));
        let bare = Statement { points: &[], outcome: None, ..decided };
        check(Decision, &bare, "Chose Postgres over ChromaDB [pending, 0.85]", None);

        let steps = ["branch".to_owned(), " ".to_owned(), "merge".to_owned()];
        let procedure = Statement { name: "Deploy", points: &steps, ..Statement::default() };
        check(Procedure, &procedure, "branch → merge", Some("Core patterns:\n- branch\n- merge"));
        let named = Statement { name: "Deploy", ..Statement::default() };
        check(Procedure, &named, "Deploy", None);
        check(
            Fact,
            &Statement { text: " Tim prefers Celsius ", ..Statement::default() },
            "Tim prefers Celsius",
            None,
        );
    }
}
