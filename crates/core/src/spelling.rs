//! Finds the known name that somebody probably meant.

/// Returns the name of `known` that is nearest to `word`, the earlier one of two equally near.
///
/// Compares without case, underscores and hyphens, so that `total_tokens` is `totalTokens`; `None` only if `known` is empty.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    known.into_iter().min_by_key(|name| distance(&word, &plain(name)))
}

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Counts the insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
///
/// It is written out here because a dependency for fifteen lines is not worth watching.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, expected) in
            [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(&plain(a), &plain(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn nearest_looks_past_case_and_separators() {
        let known = ["skills", "totalTokens", "sessionRecent", "sessionSummary"];
        assert_eq!(nearest("total_tokens", known), Some("totalTokens"));
        assert_eq!(nearest("SESSIONRECNT", known), Some("sessionRecent"));
        assert_eq!(nearest("skill", known), Some("skills"));
        assert_eq!(nearest("skill", []), None);
    }
}
