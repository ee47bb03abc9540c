//! Checks the facts of a summary against its source: ids, URLs, paths and numbers must stand there in the same form.

use thiserror::Error;

/// Why a model's summary is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SummaryError {
    /// The error does not quote the fact: it may be a changed secret.
    #[error("it holds {0} that what it summarises does not hold")]
    FactKind(FactKind),
    #[error("it is empty")]
    Nothing,
}

/// The kind of an invented fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    Url,
    Path,
    Number,
    Id,
}

impl std::fmt::Display for FactKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Url => "a URL",
            Self::Path => "a path",
            Self::Number => "a number",
            Self::Id => "an id",
        })
    }
}

/// Checks that each fact of `summary` stands in `source`.
pub(super) fn check(summary: &str, source: &str) -> Result<(), SummaryError> {
    for word in summary.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;“”‘’«»".contains(c))
    {
        let word = word.trim_matches(|c: char| ".:!?*_".contains(c) || c == '…');
        let Some(fact) = fact(word) else { continue };
        let stands = match fact {
            FactKind::Number => holds(source, number(word), ".,"),
            _ => holds(source, word, ".,/-_?#=&%"),
        };
        if !stands {
            return Err(SummaryError::FactKind(fact));
        }
    }
    Ok(())
}

fn fact(word: &str) -> Option<FactKind> {
    if word.contains("://") {
        return Some(FactKind::Url);
    }
    let slashes = word.matches('/').count();
    if word.starts_with(['/', '~']) && slashes > 0
        || slashes > 1
        || (slashes == 1 && word.contains('.'))
    {
        return Some(FactKind::Path);
    }
    if !word.chars().any(char::is_numeric) {
        return None;
    }
    Some(if number(word).chars().any(char::is_alphabetic) {
        FactKind::Id
    } else {
        FactKind::Number
    })
}

/// Returns the number in `$12.50`, `12%` and the like.
fn number(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns whether `word` stands in `text` and is not part of a longer word, as 12 is of 12.50 and a/b of a/b/c.
///
/// `joints` are the signs that continue a word if a letter or digit follows.
fn holds(text: &str, word: &str, joints: &str) -> bool {
    let mut at = 0;
    while let Some(found) = text[at..].find(word) {
        let (start, end) = (at + found, at + found + word.len());
        let begins = !goes_on(text[..start].chars().rev(), joints);
        if begins && !goes_on(text[end..].chars(), joints) {
            return true;
        }
        at = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    false
}

fn goes_on(mut next: impl Iterator<Item = char>, joints: &str) -> bool {
    match next.next() {
        Some(joint) if joints.contains(joint) => next.next().is_some_and(char::is_alphanumeric),
        Some(other) => other.is_alphanumeric(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "Fixed PROJ-123 in src/lib.rs (commit 3fa9c1d2), 17 tests pass, cost $12.50; \
                          see https://example.com/a/b?x=1 for more.";

    #[test]
    fn facts_of_the_source_are_kept() {
        for summary in [
            "PROJ-123 was fixed in `src/lib.rs`, commit 3fa9c1d2.",
            "All 17 tests pass and it cost $12.50; see https://example.com/a/b?x=1.",
            "The client/server issue and/or the bug was fixed.",
            "GitHub and JavaScript are names that anybody may use.",
        ] {
            assert_eq!(check(summary, SOURCE), Ok(()), "{summary}");
        }
    }

    #[test]
    fn changed_and_invented_facts_are_found() {
        for (summary, fact) in [
            ("PROJ-124 was fixed.", FactKind::Id),
            ("Commit 3fa9c1d was made.", FactKind::Id),
            ("All 18 tests pass.", FactKind::Number),
            ("4 tests pass.", FactKind::Number),
            ("It cost $12.", FactKind::Number),
            ("See https://example.com/a.", FactKind::Url),
            ("Changed src/main.rs.", FactKind::Path),
            ("It cost 12.5.", FactKind::Number),
        ] {
            assert_eq!(check(summary, SOURCE), Err(SummaryError::FactKind(fact)), "{summary}");
        }
    }
}
