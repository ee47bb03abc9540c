//! The words of messages, indexed behind their rows and in groups.
//!
//! A turn is durable when its rows are. Adding its words at once would change a third of the pages of its commit again, and leave a
//! segment of the index to be merged, so the words of many turns are added together. Whoever searches adds what is missing first.

use std::collections::BTreeSet;

use plimsoll_core::Message;
use plimsoll_engine::{TenantId, words};
use rusqlite::Connection;

use super::failure::{SqliteFailure, limit};
use super::query::{change, rows};
use super::tenants::TenantNumber;
use super::text;

/// Messages of one group, and the bytes of text after which it ends (chosen: a commit waits for it, and not for long).
const GROUP: usize = 64;
const GROUP_BYTES: usize = 32 << 10;

/// Returns whether words of messages are missing.
pub(super) fn is_behind(connection: &Connection) -> Result<bool, SqliteFailure> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM unified_logs NOT INDEXED
             WHERE id > (SELECT last_row FROM indexed_messages) AND node_type = 'message')",
        )?
        .query_row([], |row| row.get(0))?)
}

/// Adds the words of the next group; returns whether more are missing.
pub(super) fn add_group(connection: &Connection) -> Result<bool, SqliteFailure> {
    let group: Vec<(i64, TenantNumber, String)> = rows(
        connection,
        "SELECT l.id, t.number, l.content_json
         FROM unified_logs AS l NOT INDEXED CROSS JOIN tenants AS t ON t.tenant = l.tenant
         WHERE l.id > (SELECT last_row FROM indexed_messages) AND l.node_type = 'message'
         ORDER BY l.id LIMIT ?1",
        [limit(GROUP)],
        |row| Ok((row.get(0)?, TenantNumber(row.get(1)?), row.get(2)?)),
    )?;
    let (mut added, mut bytes, mut last) = (0, 0, None);
    for (id, tenant, content) in &group {
        // A damaged message has no words; reading it says so.
        if let Ok(message) = serde_json::from_str::<Message>(content) {
            text::insert(connection, *tenant, &text::MESSAGES, *id, [message.shown().as_str()])?;
        }
        (added, bytes, last) = (added + 1, bytes + content.len(), Some(*id));
        if bytes >= GROUP_BYTES {
            break;
        }
    }
    let has_more = added == GROUP || added < group.len();
    // Behind the last message there may be receipts, which have no words.
    change(
        connection,
        "UPDATE indexed_messages
         SET last_row = coalesce(?1, (SELECT max(id) FROM unified_logs), last_row)",
        [last.filter(|_| has_more)],
    )?;
    Ok(has_more)
}

/// Adds the words of all messages that miss them.
pub(super) fn add_all(connection: &Connection) -> Result<(), SqliteFailure> {
    while add_group(connection)? {}
    Ok(())
}

/// Follows the removal of rows: the next ones may get the same numbers, and need their words.
pub(super) fn after_removal(connection: &Connection) -> Result<(), SqliteFailure> {
    change(
        connection,
        "UPDATE indexed_messages
         SET last_row = min(last_row, (SELECT coalesce(max(id), 0) FROM unified_logs))",
        [],
    )?;
    Ok(())
}

/// Returns the messages without their words in the index that have words of `asked`, those with most of them first.
///
/// For a store that cannot be changed now.
pub(super) fn matches(
    connection: &Connection,
    tenant: &TenantId,
    asked: &str,
) -> Result<Vec<(i64, f64)>, SqliteFailure> {
    let asked: BTreeSet<String> = words(asked).collect();
    let found = rows(
        connection,
        "SELECT id, content_json FROM unified_logs NOT INDEXED
         WHERE id > (SELECT last_row FROM indexed_messages) AND node_type = 'message'
             AND tenant = ?1",
        [tenant.as_str()],
        |row| {
            let content: String = row.get(1)?;
            let Ok(message) = serde_json::from_str::<Message>(&content) else { return Ok(None) };
            let shown = message.shown();
            let said: BTreeSet<String> = words(&shown).collect();
            let score = asked.intersection(&said).count();
            Ok((score > 0).then_some((row.get(0)?, score as f64)))
        },
    )?;
    let mut found: Vec<(i64, f64)> = found.into_iter().flatten().collect();
    found.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    Ok(found)
}
