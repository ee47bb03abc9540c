//! Checking: finds what a server would refuse in a request, before it is sent.
//!
//! The checks are independent of the rewriter: they do not even use its reader of JSON.

mod chat;
mod gemini;
mod marks;
mod messages;
mod responses;
mod tree;

use std::collections::HashSet;
use std::fmt;

use self::tree::Tree;
use super::Wire;

/// A rule of a provider that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a path from the root: `messages[3].content[0]`.
    pub place: String,
    /// The rule of the provider.
    pub rule: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

/// Returns every rule of `wire` that `body` breaks; a body that no server refuses for its form breaks none.
///
/// It ignores limits of models and accounts, and fields without a known rule.
pub fn check(wire: Wire, body: &[u8]) -> Vec<Violation> {
    let mut report = Violations::default();
    let Ok(root) = serde_json::from_slice::<Tree<'_>>(body) else {
        report.add("the body", "it is JSON that nests less than 128 deep");
        return report.0;
    };
    let Tree::Object(fields) = &root else {
        report.add("the body", "it is an object");
        return report.0;
    };
    let mut keys = HashSet::new();
    for (key, _) in fields {
        if !keys.insert(&**key) {
            report.add(key, "a key stands once");
        }
    }
    match wire {
        Wire::AnthropicMessages => messages::check(&root, &mut report),
        Wire::ChatCompletions => chat::check(&root, &mut report),
        Wire::Responses => responses::check(&root, &mut report),
        Wire::Gemini => gemini::check(&root, &mut report),
    }
    report.0
}

/// Returns the rules that `rewritten` breaks more often than `original`.
///
/// A client's own mistakes are no reason to leave its request as it is.
pub fn check_rewritten(wire: Wire, original: &[u8], rewritten: &[u8]) -> Vec<Violation> {
    let mut found = check(wire, rewritten);
    if found.is_empty() {
        return found;
    }
    for before in check(wire, original) {
        if let Some(same) = found.iter().position(|one| one.rule == before.rule) {
            found.swap_remove(same);
        }
    }
    found
}

/// An element of a list, as a path from the root: `messages[3]`.
#[derive(Clone, Copy)]
struct At(&'static str, usize);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(list, index) = self;
        write!(f, "{list}[{index}]")
    }
}

/// Removes the call that a result answers from the open ones; returns whether there is one.
fn close_call(open: &mut Vec<&str>, id: &str) -> bool {
    let place = open.iter().position(|one| *one == id);
    place.map(|place| open.remove(place)).is_some()
}

/// The violations of a request so far.
#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, place: impl fmt::Display, rule: &'static str) {
        self.0.push(Violation { place: place.to_string(), rule });
    }

    /// Adds a violation unless `holds`; the place is only written where it is needed.
    fn require(&mut self, holds: bool, place: impl fmt::Display, rule: &'static str) {
        if !holds {
            self.add(place, rule);
        }
    }

    /// Requires that names differ.
    fn names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let mut seen = HashSet::new();
        for name in names {
            self.require(!name.is_empty(), "tools", "a tool has a name");
            self.require(seen.insert(name), format_args!("tools, {name}"), "names of tools differ");
        }
    }
}
