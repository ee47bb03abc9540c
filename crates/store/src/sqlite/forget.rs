//! Forgetting: all that belongs to a scope, from every table and index, in one transaction.

use plimsoll_core::{ContentHash, Ref};
use plimsoll_engine::{Forgotten, MemoryId, Scope, SessionId, TenantId, source_tombstone};
use rusqlite::Connection;

use super::failure::SqliteFailure;
use super::query::{change, row, rows};
use super::tenants::{self, TenantNumber};
use super::{answers, artefacts, branches, memories, messages, text, word_index};

/// Removes all that belongs to a scope.
pub(super) fn forget(
    connection: &Connection,
    tenant: &TenantId,
    scope: &Scope,
) -> Result<Forgotten, SqliteFailure> {
    let Some(number) = tenants::find(connection, tenant)? else { return Ok(Forgotten::default()) };
    let mut forgotten = Forgotten {
        memories: of_scope(connection, tenant, number, scope)?,
        ..Forgotten::default()
    };
    if let Some(session) = scope.session_alone() {
        let mut refs = history(connection, tenant, number, session, &mut forgotten)?;
        refs.extend(of_artefacts(connection, tenant, session, &mut forgotten)?);
        forgotten.jobs = change(
            connection,
            "DELETE FROM summarize_jobs WHERE tenant = ?1 AND session_id = ?2",
            [tenant.as_str(), session.as_str()],
        )?;
        for used in refs {
            forgotten.answers += answers::drop_ref(connection, tenant, &used)?;
        }
    }
    if forgotten.memories + forgotten.cards > 0 {
        tenants::next_epoch(connection, tenant)?;
    }
    Ok(forgotten)
}

/// Removes the messages, receipts and cards of a session.
pub(super) fn forget_session(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Forgotten, SqliteFailure> {
    let mut forgotten = Forgotten::default();
    let Some(number) = tenants::find(connection, tenant)? else { return Ok(forgotten) };
    history(connection, tenant, number, session, &mut forgotten)?;
    if forgotten.cards > 0 {
        tenants::next_epoch(connection, tenant)?;
    }
    Ok(forgotten)
}

/// Removes what was taken from a source.
pub(super) fn forget_source(
    connection: &Connection,
    tenant: &TenantId,
    source: &str,
) -> Result<Forgotten, SqliteFailure> {
    let number = tenants::ensure(connection, tenant)?;
    bury(connection, tenant, &source_tombstone(source))?;
    let gone: Vec<(i64, String)> = rows(
        connection,
        "SELECT id, memory_id FROM memory_records
         WHERE tenant = ?1 AND is_present = 1 AND source_ref = ?2",
        [tenant.as_str(), source],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut forgotten = Forgotten {
        memories: remove(connection, tenant, number, &gone)?,
        answers: answers::drop_ref(connection, tenant, source)?,
        ..Forgotten::default()
    };
    let references = rows(
        connection,
        "DELETE FROM cas_refs
         WHERE tenant = ?1 AND (ref_id = ?2 OR substr(ref_id, 1, length(?2) + 1) = ?2 || ':')
         RETURNING digest, kind, view",
        [tenant.as_str(), source],
        artefacts::reference,
    )?;
    for reference in references {
        artefacts::drop_unused(connection, tenant, &reference.digest)?;
        forgotten.artefacts += 1;
    }
    if forgotten.memories > 0 {
        tenants::next_epoch(connection, tenant)?;
    }
    Ok(forgotten)
}

fn of_scope(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    scope: &Scope,
) -> Result<u64, SqliteFailure> {
    let gone: Vec<(i64, String)> = rows(
        connection,
        "SELECT id, memory_id FROM memory_records WHERE tenant = ?1 AND is_present = 1
             AND (?2 IS NULL OR workspace_id = ?2) AND (?3 IS NULL OR user_id = ?3)
             AND (?4 IS NULL OR session_id = ?4) AND (?5 IS NULL OR agent_id = ?5)",
        (
            tenant.as_str(),
            &scope.workspace,
            &scope.user,
            scope.session.as_ref().map(SessionId::as_str),
            &scope.agent,
        ),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    remove(connection, tenant, number, &gone)
}

/// Removes records, given by present row and id, with all their states.
fn remove(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    gone: &[(i64, String)],
) -> Result<u64, SqliteFailure> {
    let sql = "DELETE FROM memory_records WHERE tenant = ?1 AND memory_id = ?2";
    for (row, id) in gone {
        // A record that cannot be read is buried by its id alone.
        match memories::by_row(connection, tenant, *row) {
            Ok(Some(record)) => {
                for key in record.tombstones() {
                    bury(connection, tenant, &key)?;
                }
            }
            _ => bury(connection, tenant, &format!("record:{id}"))?,
        }
        text::delete(connection, number, &text::MEMORIES, *row)?;
        change(connection, sql, [tenant.as_str(), id])?;
    }
    if !gone.is_empty() {
        text::purge(connection, number, &text::MEMORIES)?;
    }
    Ok(gone.len() as u64)
}

/// Remembers that something was forgotten.
fn bury(connection: &Connection, tenant: &TenantId, key: &str) -> Result<(), SqliteFailure> {
    let sql = "INSERT OR IGNORE INTO memory_tombstones (tenant, key) VALUES (?1, ?2)";
    change(connection, sql, [tenant.as_str(), key])?;
    Ok(())
}

/// Removes records with all their states.
pub(super) fn forget_memories(
    connection: &Connection,
    tenant: &TenantId,
    ids: &[MemoryId],
) -> Result<Forgotten, SqliteFailure> {
    let Some(number) = tenants::find(connection, tenant)? else { return Ok(Forgotten::default()) };
    let mut gone = Vec::new();
    for id in ids {
        let found: Option<i64> = row(
            connection,
            "SELECT id FROM memory_records
             WHERE tenant = ?1 AND memory_id = ?2 AND is_present = 1",
            [tenant.as_str(), &id.0],
            |row| Ok(row.get(0)?),
        )?;
        gone.extend(found.map(|row| (row, id.0.clone())));
    }
    let memories = remove(connection, tenant, number, &gone)?;
    if memories > 0 {
        tenants::next_epoch(connection, tenant)?;
    }
    Ok(Forgotten { memories, ..Forgotten::default() })
}

/// Removes messages, receipts and cards and returns the messages' refs.
fn history(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    session: &SessionId,
    forgotten: &mut Forgotten,
) -> Result<Vec<String>, SqliteFailure> {
    let mut refs = Vec::new();
    for hash in messages::digests(connection, tenant, session, u32::MAX)? {
        refs.extend(ContentHash::from_full(&hash).map(|hash| Ref::message(hash).to_string()));
    }
    word_index::add_all(connection)?;
    branches::hand_over(connection, tenant, number, session)?;
    let gone: Vec<(i64, bool)> = rows(
        connection,
        "DELETE FROM unified_logs WHERE tenant = ?1 AND session_id = ?2
         RETURNING id, node_type = 'message'",
        [tenant.as_str(), session.as_str()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (row, _) in gone.into_iter().filter(|(_, is_message)| *is_message) {
        text::delete(connection, number, &text::MESSAGES, row)?;
        forgotten.messages += 1;
    }
    word_index::after_removal(connection)?;
    change(
        connection,
        "DELETE FROM sessions WHERE tenant = ?1 AND session_id = ?2",
        [tenant.as_str(), session.as_str()],
    )?;
    if forgotten.messages > 0 {
        text::purge(connection, number, &text::MESSAGES)?;
    }
    forgotten.cards = cards(connection, tenant, number, session)?;
    Ok(refs)
}

fn cards(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    session: &SessionId,
) -> Result<u64, SqliteFailure> {
    let gone: Vec<i64> = rows(
        connection,
        "DELETE FROM context_cards WHERE tenant = ?1 AND session_id = ?2 RETURNING id",
        [tenant.as_str(), session.as_str()],
        |row| Ok(row.get(0)?),
    )?;
    for row in &gone {
        text::delete(connection, number, &text::CARDS, *row)?;
    }
    if !gone.is_empty() {
        text::purge(connection, number, &text::CARDS)?;
    }
    Ok(gone.len() as u64)
}

fn of_artefacts(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    forgotten: &mut Forgotten,
) -> Result<Vec<String>, SqliteFailure> {
    let references = rows(
        connection,
        "DELETE FROM cas_refs WHERE tenant = ?1 AND session_id = ?2 RETURNING digest, kind, view",
        [tenant.as_str(), session.as_str()],
        artefacts::reference,
    )?;
    let mut refs = Vec::new();
    for reference in references {
        artefacts::drop_unused(connection, tenant, &reference.digest)?;
        refs.push(reference.print());
    }
    forgotten.artefacts = refs.len() as u64;
    Ok(refs)
}
