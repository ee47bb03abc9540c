//! Paths into JSON: `items[0].title`, `items[*].id`, `["a key"].x`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Name(String),
    At(usize),
    Each,
}

/// Reads a path; `None` if it is none.
pub(super) fn parse(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]")?;
            steps.push(Step::Name(name.to_owned()));
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (inner, after) = inner.split_once(']')?;
            steps.push(if inner == "*" { Step::Each } else { Step::At(inner.parse().ok()?) });
            rest = after;
        } else {
            let name = if steps.is_empty() { rest } else { rest.strip_prefix('.')? };
            let end = name.find(['.', '[', ']']).unwrap_or(name.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Name(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// Cuts the value at the end of a path out of `value`; of `[*]` a list of those that have it.
pub(super) fn pick(value: &RawValue, steps: &[Step]) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.get().to_owned()) };
    match step {
        Step::Name(name) => {
            let object: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            pick(object.get(name)?, rest)
        }
        Step::At(index) => {
            let list: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            pick(list.get(*index)?, rest)
        }
        Step::Each => {
            let list: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            let picked: Vec<String> =
                list.into_iter().filter_map(|element| pick(element, rest)).collect();
            Some(format!("[{}]", picked.join(", ")))
        }
    }
}
