//! Words: the engine's own, as lexemes of a `tsvector`.
//!
//! PostgreSQL's parser is passed by: its words are others than the engine's, and a text of more than a megabyte of words
//! would be refused.

use std::collections::BTreeMap;

use deadpool_postgres::GenericClient;
use plimsoll_engine::{StoreError, TenantId, digest, words};

use super::rows;

/// Bytes of lexemes in one row: well below the megabyte that a `tsvector` holds (chosen).
const PART: usize = 400_000;
/// Occurrences that are counted; `ts_rank` hardly tells more of them apart (chosen).
const MOST_OCCURRENCES: usize = 32;
/// Bytes of a word that is kept as it is; of a longer one its digest, since a lexeme has less than 2 KB.
const LONGEST: usize = 200;
/// Words of a query that are looked up (chosen).
const MOST_ASKED: usize = 256;
/// A word in so many rows is common: passed over if there is a rarer one (chosen).
const COMMON: i64 = 5_000;

/// Returns the beginning of each lexeme of a tenant.
fn prefix(tenant: &TenantId) -> String {
    digest(tenant.as_str().as_bytes())[..12].to_owned()
}

/// Quotes a lexeme; it is of letters and digits only, so nothing in it needs escaping.
fn lexeme(prefix: &str, word: &str) -> String {
    if word.len() <= LONGEST {
        return format!("'{prefix}{word}'");
    }
    format!("'{prefix}{}'", digest(word.as_bytes()))
}

/// Returns the words of `texts` as `tsvector` literals, in as many parts as they need.
pub(super) fn parts<'a>(
    tenant: &TenantId,
    texts: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let prefix = prefix(tenant);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in texts.into_iter().flat_map(words) {
        let count = counts.entry(lexeme(&prefix, &word)).or_default();
        *count = (*count + 1).min(MOST_OCCURRENCES);
    }
    let mut parts = Vec::new();
    let (mut part, mut size) = (String::new(), 0);
    for (lexeme, count) in counts {
        size += lexeme.len() + 8 + 2 * count;
        if size > PART {
            parts.push(std::mem::take(&mut part));
            size = lexeme.len() + 8 + 2 * count;
        }
        part.push_str(&lexeme);
        for position in 1..=count {
            part.push(if position == 1 { ':' } else { ',' });
            part.push_str(&position.to_string());
        }
        part.push(' ');
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The words that are asked for, with the weight of each.
#[derive(Debug)]
pub(super) struct QueryLexemes {
    pub(super) lexemes: Vec<String>,
    pub(super) weights: Vec<f64>,
}

/// Counts in how many rows each word of `text` occurs, by `sql`, and weighs the rarer ones more.
pub(super) async fn asked<C: GenericClient>(
    client: &C,
    sql: &str,
    tenant: &TenantId,
    text: &str,
) -> Result<QueryLexemes, StoreError> {
    let prefix = prefix(tenant);
    let mut distinct: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for word in words(text) {
        let lexeme = lexeme(&prefix, &word);
        if seen.insert(lexeme.clone()) {
            distinct.push(lexeme);
            if distinct.len() == MOST_ASKED {
                break;
            }
        }
    }
    let found = rows(client, sql, &[&tenant.as_str(), &distinct, &COMMON]).await?;
    let mut counted: Vec<(String, i64)> =
        found.iter().map(|row| (row.get(0), row.get(1))).filter(|(_, count)| *count > 0).collect();
    if counted.iter().any(|(_, count)| *count < COMMON) {
        counted.retain(|(_, count)| *count < COMMON);
    }
    let weights =
        counted.iter().map(|(_, count)| (1.0 + 1e4 / (1.0 + *count as f64)).ln()).collect();
    Ok(QueryLexemes { lexemes: counted.into_iter().map(|(lexeme, _)| lexeme).collect(), weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_words_make_several_parts() {
        let text = (0..60_000).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ");
        let parts = parts(&TenantId::default(), [text.as_str()]);
        assert!(parts.len() > 2);
        assert!(parts.iter().all(|part| part.len() < 1 << 20));
        assert_eq!(parts.iter().map(|part| part.matches(':').count()).sum::<usize>(), 60_000);
    }

    #[test]
    fn a_word_is_letters_and_digits_and_bounded() {
        let tenant = TenantId::default();
        let long = "x".repeat(5_000);
        for part in parts(&tenant, ["it's 'a' \\ : \0 | & !", long.as_str()]) {
            let plain = part.replace(['\'', ':', ',', ' '], "");
            assert!(plain.chars().all(char::is_alphanumeric), "{part}");
            assert!(part.len() < 400);
        }
    }
}
