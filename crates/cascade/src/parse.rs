//! From the text of a file to a cascade and what is wrong with it.

use std::path::Path;

use crate::decode::{Decode as _, Decoder};
use crate::definition::Cascade;
use crate::problem::{Kind, Place, Problem, Severity};
use crate::{checks, json, node, yaml};

/// Reads a cascade; `None` where there is an error, which is then among the problems.
///
/// `file` decides the format by its extension (`.json`; `.yaml`, `.yml`), else the first character of the text does.
/// Problems are in the order of their places.
pub fn parse(text: &str, file: &str) -> (Option<Cascade>, Vec<Problem>) {
    let mut decoder = Decoder::default();
    let cascade = cascade(text, file, &mut decoder);
    let mut problems = decoder.finish();
    problems.sort_by_key(|problem| problem.place);
    let is_refused = problems.iter().any(|problem| problem.severity == Severity::Error);
    (cascade.filter(|_| !is_refused), problems)
}

fn cascade(text: &str, file: &str, decoder: &mut Decoder) -> Option<Cascade> {
    if text.len() > node::LONGEST {
        let said = format!("the file has more than {} bytes", node::LONGEST);
        decoder.error_at(Place::START, Kind::Syntax, said);
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document =
        if is_json(text, file) { json::read(text, decoder) } else { yaml::read(text, decoder) }?;
    let cascade = Cascade::decode(&document, decoder)?;
    checks::check(&cascade, &document, decoder);
    Some(cascade)
}

fn is_json(text: &str, file: &str) -> bool {
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("json" | "jsonc") => true,
        Some("yaml" | "yml") => false,
        _ => text.trim_start().starts_with(['{', '[']),
    }
}
