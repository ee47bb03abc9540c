//! Cascades, run with a scripted model.

mod bounds;
mod contexts;
mod features;
mod flow;
mod forms;
mod harness;
mod names;
mod recorded;
mod resuming;
mod robustness;
mod running;
mod schema;
mod selection;
mod settings;
mod sweep;
mod syntax;
mod templates;
mod turns;
mod wires;

use plimsoll_cascade::{Cascade, Severity, parse};

/// Reads a cascade that must be free of errors.
fn cascade(text: &str) -> Cascade {
    let (cascade, problems) = parse(text, "cascade.yaml");
    let errors: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    cascade.expect("a cascade without errors")
}

/// Returns the problems of a YAML file, one a line.
fn said(text: &str) -> String {
    told(text, "cascade.yaml")
}

fn told(text: &str, file: &str) -> String {
    let (cascade, problems) = parse(text, file);
    let is_refused = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(cascade.is_none(), is_refused, "{text}");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Puts the keys of one phase into a cascade; they stand on line 4, from column 5 on.
fn phase(keys: &str) -> String {
    format!("cascade_id: c\nphases:\n  - name: a\n    {}\n", keys.replace('\n', "\n    "))
}
