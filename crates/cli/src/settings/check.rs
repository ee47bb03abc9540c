//! Finds every error of a file of settings, not only the first.

use std::ops::Range;

use plimsoll_core::cost::Pricing;
use plimsoll_models::Models;
use serde::{Deserialize as _, Serialize};
use toml::de::{DeTable, DeValue, Deserializer, Error};

use crate::config::{Config, line_at, nearest_key};
use crate::system::outside;

/// The most errors of one file that are reported (chosen: each costs one more reading of the file).
const MOST: usize = 100;

/// An error of a file of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    /// Counted from 1; none for an error of the whole file.
    pub(super) line: Option<usize>,
    pub(super) message: String,
    /// The known key that is nearest to an unknown one.
    pub(super) nearest: Option<String>,
}

/// Returns all errors of the text of a `plimsoll.toml`, in the order of its lines.
///
/// The reader stops at the first error, so the key at fault is taken out and the rest is read again.
pub(super) fn problems(text: &str) -> Vec<Problem> {
    let (whole, unreadable) = DeTable::parse_recoverable(text);
    let mut found: Vec<Problem> = unreadable.iter().map(|error| problem(text, error)).collect();
    found.dedup_by_key(|problem| problem.line);
    let broken = found.len();
    let mut rest = whole.clone();
    while found.len() < MOST {
        let error = match Config::deserialize(Deserializer::from(rest.clone())) {
            Ok(config) => {
                let faults = faults(&config).into_iter();
                found.extend(faults.map(|(key, message)| Problem {
                    line: key_line(text, whole.get_ref(), &key),
                    message,
                    nearest: None,
                }));
                break;
            }
            Err(error) => error,
        };
        let next = problem(text, &error);
        // An unreadable line may cause a second error; it is not reported.
        if found[..broken].iter().all(|known| known.line != next.line) {
            found.push(next);
        }
        if !error.span().is_some_and(|span| remove(rest.get_mut(), &span)) {
            break;
        }
    }
    found.sort_by_key(|problem| problem.line);
    found
}

fn problem(text: &str, error: &Error) -> Problem {
    let message = error.message();
    let nearest = nearest_key(message).map(str::to_owned);
    let shown = match &nearest {
        Some(_) => message.split(", expected").next().unwrap_or(message),
        None => message,
    };
    Problem {
        line: error.span().map(|span| line_at(text, span.start)),
        message: shown.to_owned(),
        nearest,
    }
}

/// Removes the innermost key whose name or value holds `span`; false if there is none.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let holds = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let mut fault = None;
    for (key, value) in table.iter_mut() {
        if remove_inside(value.get_mut(), span) {
            return true;
        }
        if holds(key.span()) || holds(value.span()) {
            fault = Some(key.clone());
        }
    }
    fault.is_some_and(|key| table.remove(&key).is_some())
}

fn remove_inside(value: &mut DeValue<'_>, span: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove(table, span),
        DeValue::Array(array) => {
            array.iter_mut().any(|element| remove_inside(element.get_mut(), span))
        }
        _ => false,
    }
}

/// Returns the line of the key at `path`, else of the nearest table around it.
pub(super) fn key_line(text: &str, table: &DeTable<'_>, path: &[String]) -> Option<usize> {
    let (first, inner) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| *key.get_ref() == first.as_str())?;
    let below = match value.get_ref() {
        DeValue::Table(table) => key_line(text, table, inner),
        _ => None,
    };
    Some(below.unwrap_or_else(|| line_at(text, key.span().start)))
}

/// Returns errors that no single key shows, each with the path of the key that it is about.
fn faults(config: &Config) -> Vec<(Vec<String>, String)> {
    let at = |path: &[&str]| path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
    let mut faults = Vec::new();
    if let Err(error) = config.policy(&config.gateway.policy) {
        faults.push((at(&["gateway", "policy"]), error.to_string()));
    }
    if !config.gateway.listen.ip().is_loopback() && config.gateway.keys.is_empty() {
        let message = format!(
            "{} can be reached from other machines, and [gateway.keys] is empty",
            config.gateway.listen
        );
        faults.push((at(&["gateway", "listen"]), message));
    }
    for fault in config.gateway.faults() {
        let path = [&["gateway"], fault.key.as_slice()].concat();
        faults.push((at(&path), fault.to_string()));
    }
    if let Err(error) = config.frames() {
        faults.push((at(&["memory", "frames"]), error.to_string()));
    }
    for (path, error) in config.tools.faults() {
        faults.push((at(&path), error.to_string()));
    }
    // Without the environment: a missing key is no error of the file.
    let models = Models::new(config.models.clone(), Pricing::shipped(), outside(), &|_| None);
    if let Err(error) = models {
        faults.push((at(&["models"]), format!("{:#}", anyhow::Error::new(error))));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(Option<usize>, String)> {
        problems(text).into_iter().map(|problem| (problem.line, problem.message)).collect()
    }

    #[test]
    fn every_error_is_found() {
        let text = "budget = \"many\"\nnonsense = 1\n\n[settle]\nfloor = -1\nlest = 3\n\n[gateway.keys.a]\ntenant = \"b\"\n";
        let found = lines(text);
        let at: Vec<_> = found.iter().map(|(line, _)| line.unwrap_or(0)).collect();
        assert_eq!(at, [1, 2, 5, 6, 8], "{found:?}");
        assert_eq!(problems(text)[3].nearest.as_deref(), Some("least"));
    }

    #[test]
    fn broken_lines_do_not_hide_wrong_keys() {
        let found = lines("[settle]\nfloor = = 3\nlest = 1\n");
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(2), Some(3)]);
    }

    #[test]
    fn faults_of_several_keys_have_a_line() {
        let text = "[gateway]\npolicy = \"nonsense\"\n\n[tools.mcp.empty]\n\n[[memory.frames]]\nname = \"a\"\ntriggers = ['(']\n";
        let found = lines(text);
        let at: Vec<_> = found.iter().map(|(line, _)| line.unwrap_or(0)).collect();
        assert_eq!(at, [2, 4, 6], "{found:?}");
    }

    #[test]
    fn settings_of_the_gateway_that_cannot_be_meant_have_a_line() {
        let text = "[gateway]\nhosts = [\"http://foo\"]\norigins = [\"foo\"]\n\n[gateway.limits]\ndepth = 0\n\n[gateway.keep_warm]\nmost_dollars = -1.0\n";
        let found = lines(text);
        let at: Vec<_> = found.iter().map(|(line, _)| line.unwrap_or(0)).collect();
        assert_eq!(at, [2, 3, 6, 9], "{found:?}");
    }

    #[test]
    fn a_value_of_another_type_is_told_what_is_expected() {
        let told = |text: &str| lines(text).into_iter().map(|(_, told)| told).collect::<Vec<_>>();
        let found = told("[gateway]\nmode = -7\n");
        assert!(found[0].contains("expected \"observe\", \"on\" or \"off\""), "{found:?}");
        let found = told("[gateway.add]\ntools = -7\n");
        assert_eq!(found, ["`tools` is true, false or \"auto\", not -7"]);
    }

    #[test]
    fn sound_texts_have_none() {
        assert_eq!(problems(""), []);
        assert_eq!(problems("budget = 5\n[models.headers]\n").len(), 1);
    }
}
