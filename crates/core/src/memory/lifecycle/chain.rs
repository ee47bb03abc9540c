//! Chains of supersession: from a record to its current replacement.

use std::collections::BTreeSet;

/// A chain that does not end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` would stand in its own place")]
pub struct BrokenChain {
    pub id: String,
}

/// Returns the ids from `id` to the one that nothing supersedes, both included.
///
/// Errors: [`BrokenChain`] if the records contradict each other in a circle.
pub fn chain(
    id: &str,
    superseded_by: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, BrokenChain> {
    let mut met = BTreeSet::from([id.to_owned()]);
    let mut chain = vec![id.to_owned()];
    let mut next = superseded_by(id);
    while let Some(id) = next {
        if !met.insert(id.clone()) {
            return Err(BrokenChain { id });
        }
        next = superseded_by(&id);
        chain.push(id);
    }
    Ok(chain)
}

/// Checks that `newer` may supersede `older`: the chain from `newer` must not come back to `older`.
///
/// Errors: [`BrokenChain`] if it would, or if the chain is broken already.
pub fn check_supersession(
    older: &str,
    newer: &str,
    superseded_by: impl Fn(&str) -> Option<String>,
) -> Result<(), BrokenChain> {
    if chain(newer, superseded_by)?.iter().any(|id| id == older) {
        return Err(BrokenChain { id: older.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |id| pairs.iter().find(|(from, _)| *from == id).map(|(_, to)| (*to).to_owned())
    }

    #[test]
    fn a_chain_ends_at_what_stands_today() {
        let pairs = by(&[("a", "b"), ("b", "c")]);
        assert_eq!(chain("a", &pairs).expect("ends"), ["a", "b", "c"]);
        assert_eq!(chain("c", &pairs).expect("ends"), ["c"]);
        assert!(check_supersession("c", "d", &pairs).is_ok());
    }

    #[test]
    fn a_circle_is_refused() {
        let pairs = by(&[("a", "b"), ("b", "c")]);
        assert_eq!(check_supersession("c", "a", &pairs), Err(BrokenChain { id: "c".into() }));
        assert!(check_supersession("a", "a", &pairs).is_err());
        assert!(chain("a", by(&[("a", "b"), ("b", "a")])).is_err());
    }
}
