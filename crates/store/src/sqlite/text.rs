//! Text search: which words of a query to ask for, and how.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use plimsoll_engine::words;
use rusqlite::{Connection, OptionalExtension as _};

use super::failure::SqliteFailure;
use super::query::change;
use super::tenants::{TenantNumber, of_tenant};

/// A text index with its statements.
#[derive(Debug)]
pub(super) struct TextIndex {
    count: &'static str,
    insert: &'static str,
    delete: &'static str,
    optimize: &'static str,
}

pub(super) const MESSAGES: TextIndex = TextIndex {
    count: "SELECT doc FROM messages_vocab_{tenant} WHERE term = ?1",
    insert: "INSERT INTO messages_text_{tenant} (rowid, text) VALUES (?1, ?2)",
    delete: "DELETE FROM messages_text_{tenant} WHERE rowid = ?1",
    optimize: "INSERT INTO messages_text_{tenant} (messages_text_{tenant}) VALUES ('optimize')",
};
pub(super) const CARDS: TextIndex = TextIndex {
    count: "SELECT doc FROM cards_vocab_{tenant} WHERE term = ?1",
    insert: "INSERT INTO cards_text_{tenant} (rowid, text) VALUES (?1, ?2)",
    delete: "DELETE FROM cards_text_{tenant} WHERE rowid = ?1",
    optimize: "INSERT INTO cards_text_{tenant} (cards_text_{tenant}) VALUES ('optimize')",
};
pub(super) const MEMORIES: TextIndex = TextIndex {
    count: "SELECT doc FROM memories_vocab_{tenant} WHERE term = ?1",
    insert: "INSERT INTO memories_text_{tenant} (rowid, text) VALUES (?1, ?2)",
    delete: "DELETE FROM memories_text_{tenant} WHERE rowid = ?1",
    optimize: "INSERT INTO memories_text_{tenant} (memories_text_{tenant}) VALUES ('optimize')",
};

/// Different words of a query that are looked at, and that are asked for at most; chosen.
const LOOKED_AT: usize = 256;
const ASKED_FOR: usize = 32;
/// Rows that may be ranked for one query, about 1 ms for each 2,000. Rarer words come first, and one word is always asked
/// for.
const RANKED: i64 = 2_000;
/// Common words that are remembered; chosen: few hundred words of a language are that common.
const REMEMBERED: usize = 10_000;

type RowsOfWords = HashMap<String, i64>;

/// The row counts of words that are too common to rank by.
///
/// Counting the rows of such a word takes as long as ranking thousands, and the word hardly ever becomes rare again.
#[derive(Debug, Default)]
pub(super) struct CommonWords {
    rows: Mutex<HashMap<(&'static str, TenantNumber), RowsOfWords>>,
}

impl CommonWords {
    fn rows(&self, index: &TextIndex, tenant: TenantNumber, word: &str) -> Option<i64> {
        let known = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(index.count, tenant))?.get(word).copied()
    }

    fn remember(&self, index: &TextIndex, tenant: TenantNumber, word: &str, rows: i64) {
        let mut known = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry((index.count, tenant)).or_default();
        if rows > RANKED && known.len() < REMEMBERED {
            known.insert(word.to_owned(), rows);
        }
    }
}

/// Returns the FTS5 query for the words of a text, the rarest first; `None` if it has none.
///
/// Words hold letters and digits only ([`words`]) and each stands in quotes: no operator can come of them.
pub(super) fn asked(
    connection: &Connection,
    common: &CommonWords,
    tenant: TenantNumber,
    index: &TextIndex,
    text: &str,
) -> Result<Option<String>, SqliteFailure> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut found: Vec<(i64, String)> = Vec::new();
    let mut count = connection.prepare_cached(&of_tenant(index.count, tenant))?;
    for word in words(text) {
        if seen.len() == LOOKED_AT {
            break;
        }
        if !seen.contains(&word) {
            // A word that is spelt otherwise in the index counts as rare, which costs little.
            let rows = match common.rows(index, tenant, &word) {
                Some(rows) => rows,
                None => count.query_row([&word], |row| row.get(0)).optional()?.unwrap_or(0),
            };
            common.remember(index, tenant, &word, rows);
            seen.insert(word.clone());
            found.push((rows, word));
        }
    }
    // Equally rare words keep the order of the query.
    found.sort_by_key(|(rows, _)| *rows);
    let mut ranked = 0;
    let mut query = String::new();
    for (position, (rows, word)) in found.into_iter().enumerate().take(ASKED_FOR) {
        let any_before = position > 0 && ranked > 0;
        ranked += rows;
        if any_before && ranked > RANKED {
            break;
        }
        let or = if position == 0 { "" } else { " OR " };
        query.extend([or, "\"", &word, "\""]);
    }
    Ok((!query.is_empty()).then_some(query))
}

/// Adds the words of a row.
pub(super) fn insert<'a>(
    connection: &Connection,
    tenant: TenantNumber,
    index: &TextIndex,
    row: i64,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<(), SqliteFailure> {
    let mut text = String::new();
    for word in texts.into_iter().flat_map(words) {
        text.push_str(&word);
        text.push(' ');
    }
    change(connection, &of_tenant(index.insert, tenant), (row, text))?;
    Ok(())
}

/// Removes the words of a row.
pub(super) fn delete(
    connection: &Connection,
    tenant: TenantNumber,
    index: &TextIndex,
    row: i64,
) -> Result<(), SqliteFailure> {
    change(connection, &of_tenant(index.delete, tenant), [row])?;
    Ok(())
}

/// Rewrites the index, so that no word of a removed row is left in the file.
pub(super) fn purge(
    connection: &Connection,
    tenant: TenantNumber,
    index: &TextIndex,
) -> Result<(), SqliteFailure> {
    connection.execute_batch(&of_tenant(index.optimize, tenant))?;
    Ok(())
}
