//! Memory records: every state of each, the present one marked.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    MemoryChange, MemoryChanges, MemoryId, MemoryKind, MemoryRecord, MemoryState, MemoryVersion,
    Scope, SessionId, StoreError, TenantId,
};
use rusqlite::{Connection, Row, params};

use super::failure::{SqliteFailure, unreadable};
use super::query::{change, digest, row, rows, session_opt, time_opt};
use super::receipts::{list, strings};
use super::tenants::{self, TenantNumber, Version, next_generation};
use super::{text, vectors};

/// Columns of a record as [`read`] expects them.
macro_rules! memory_columns {
    () => {
        "memory_id, kind, state, workspace_id, user_id, session_id, agent_id, micro, summary,
         full, origin, confidence, source_ref, tags, event_at, created_at, updated_at,
         superseded_by, embedding_model, embedding, details, hash"
    };
}
pub(super) use memory_columns;

/// Stores a record in the place of the one with its id.
pub(super) fn put(connection: &Connection, record: &MemoryRecord) -> Result<(), SqliteFailure> {
    let tenant = &record.tenant;
    let number = tenants::ensure(connection, tenant)?;
    retire(connection, tenant, number, record)?;
    let generation = next_generation(connection, tenant)?;
    let row = insert(connection, record, generation)?;
    let mut tags = connection.prepare_cached(
        "INSERT OR IGNORE INTO memory_tags (tenant, tag, record) VALUES (?1, ?2, ?3)",
    )?;
    for tag in &record.tags {
        tags.execute((tenant.as_str(), tag, row))?;
    }
    index(connection, number, row, record)
}

/// Adds the words of a record to the text index.
pub(super) fn index(
    connection: &Connection,
    number: TenantNumber,
    row: i64,
    record: &MemoryRecord,
) -> Result<(), SqliteFailure> {
    let texts = [Some(&record.micro), record.summary.as_ref(), record.full.as_ref()];
    let texts = texts.into_iter().flatten().chain(&record.tags).map(String::as_str);
    text::insert(connection, number, &text::MEMORIES, row, texts)
}

/// Stores changes of records whose versions still hold; returns those that a tombstone forbids.
pub(super) fn change_all(
    connection: &Connection,
    tenant: &TenantId,
    changes: &[MemoryChange],
) -> Result<Vec<MemoryId>, SqliteFailure> {
    for one in changes {
        let present: Option<i64> = row(
            connection,
            "SELECT updated_at FROM memory_records
             WHERE tenant = ?1 AND memory_id = ?2 AND is_present = 1",
            [tenant.as_str(), &one.record.id.0],
            |row| Ok(row.get(0)?),
        )?;
        if present != one.from.map(|from| from.0) {
            let what = format!("memory {:?} changed", one.record.id.0);
            return Err(StoreError::Conflict { what }.into());
        }
    }
    let mut passed_over = Vec::new();
    for one in changes {
        let mut is_forbidden = false;
        for key in one.forbidding() {
            let values = [tenant.as_str(), &key];
            if one.revives {
                let sql = "DELETE FROM memory_tombstones WHERE tenant = ?1 AND key = ?2";
                change(connection, sql, values)?;
            } else {
                let sql = "SELECT 1 FROM memory_tombstones WHERE tenant = ?1 AND key = ?2";
                is_forbidden |= row(connection, sql, values, |_| Ok(()))?.is_some();
            }
        }
        if is_forbidden {
            passed_over.push(one.record.id.clone());
        } else {
            put(connection, &one.record)?;
        }
    }
    Ok(passed_over)
}

/// Unmarks the present state, and removes the one of the same time.
fn retire(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    record: &MemoryRecord,
) -> Result<(), SqliteFailure> {
    let present: Option<(i64, bool)> = row(
        connection,
        "SELECT id, embedding IS NOT NULL FROM memory_records
         WHERE tenant = ?1 AND memory_id = ?2 AND is_present = 1",
        [tenant.as_str(), &record.id.0],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if let Some((id, had_vector)) = present {
        text::delete(connection, number, &text::MEMORIES, id)?;
        let generation = if had_vector { next_generation(connection, tenant)? } else { 0 };
        change(
            connection,
            "UPDATE memory_records SET is_present = 0, generation = ?3
                 WHERE tenant = ?1 AND id = ?2",
            (tenant.as_str(), id, generation),
        )?;
    }
    // The state of the same time, which may be an earlier one.
    let replaced: Option<bool> = row(
        connection,
        "DELETE FROM memory_records WHERE tenant = ?1 AND memory_id = ?2 AND updated_at = ?3
         RETURNING embedding IS NOT NULL",
        (tenant.as_str(), &record.id.0, record.updated_at.0),
        |row| Ok(row.get(0)?),
    )?;
    if replaced == Some(true) {
        // The row is gone, so no count of changes can tell that its vector is.
        tenants::next_epoch(connection, tenant)?;
    }
    Ok(())
}

fn insert(
    connection: &Connection,
    record: &MemoryRecord,
    generation: i64,
) -> Result<i64, SqliteFailure> {
    change(
        connection,
        "INSERT INTO memory_records (tenant, memory_id, is_present, kind, state, is_current,
             workspace_id, user_id, session_id, agent_id, micro, summary, full, origin, confidence,
             source_ref, tags, event_at, created_at, updated_at, superseded_by, embedding,
             embedding_model, details, generation, hash)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
             ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
        params![
            record.tenant.as_str(),
            record.id.0,
            record.kind.as_str(),
            record.state.as_str(),
            record.state.is_current(),
            record.scope.workspace,
            record.scope.user,
            record.scope.session.as_ref().map(SessionId::as_str),
            record.scope.agent,
            record.micro,
            record.summary,
            record.full,
            record.origin,
            record.confidence,
            record.source_ref,
            list(&record.tags)?,
            record.event_at.map(|at| at.0),
            record.created_at.0,
            record.updated_at.0,
            record.superseded_by.as_ref().map(|id| &id.0),
            record.embedding.as_ref().map(vectors::bytes),
            record.embedding.as_ref().map(|embedding| &embedding.model),
            record.details,
            generation,
            record.digest(),
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

/// Returns a record as it is, or as it was.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantId,
    id: &MemoryId,
    as_of: Option<MillisSinceEpoch>,
) -> Result<MemoryRecord, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        memory_columns!(),
        " FROM memory_records WHERE tenant = ?1 AND memory_id = ?2
             AND iif(?3 IS NULL, is_present = 1, updated_at <= ?3)
         ORDER BY updated_at DESC LIMIT 1"
    );
    let values = (tenant.as_str(), &id.0, as_of.map(|at| at.0));
    let found = row(connection, sql, values, |row| read(tenant, row))?;
    found.ok_or_else(|| id.not_found().into())
}

/// Returns the present record of a row.
pub(super) fn by_row(
    connection: &Connection,
    tenant: &TenantId,
    id: i64,
) -> Result<Option<MemoryRecord>, SqliteFailure> {
    row(
        connection,
        concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memory_records WHERE tenant = ?1 AND id = ?2 AND is_present = 1"
        ),
        (tenant.as_str(), id),
        |row| read(tenant, row),
    )
}

/// Returns what changed after `since`, or everything.
pub(super) fn changes(
    connection: &Connection,
    tenant: &TenantId,
    since: MemoryVersion,
) -> Result<MemoryChanges, SqliteFailure> {
    let Version { generation, epoch } = tenants::version(connection, tenant)?;
    let version = MemoryVersion { generation, epoch };
    // Records of older files have no generation, so nothing is left out of a first reading.
    let is_whole = since.generation == 0 || since.epoch != epoch;
    let sql = if is_whole {
        concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memory_records WHERE tenant = ?1 AND is_present = 1 AND generation >= ?2"
        )
    } else {
        concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memory_records
             WHERE tenant = ?1 AND generation > ?2 AND generation > 0 AND is_present = 1"
        )
    };
    let after = if is_whole { 0 } else { since.generation };
    let records = rows(connection, sql, (tenant.as_str(), after), |row| read(tenant, row))?;
    Ok(MemoryChanges { version, is_whole, records })
}

/// Reads a record and hashes it again.
pub(super) fn read(tenant: &TenantId, row: &Row<'_>) -> Result<MemoryRecord, SqliteFailure> {
    let (kind, state): (String, String) = (row.get(1)?, row.get(2)?);
    let record = MemoryRecord {
        tenant: tenant.clone(),
        id: MemoryId(row.get(0)?),
        kind: MemoryKind::from_name(&kind).ok_or_else(|| unreadable("kind"))?,
        state: MemoryState::from_name(&state).ok_or_else(|| unreadable("state"))?,
        scope: Scope {
            workspace: row.get(3)?,
            user: row.get(4)?,
            session: session_opt(row, 5)?,
            agent: row.get(6)?,
        },
        micro: row.get(7)?,
        summary: row.get(8)?,
        full: row.get(9)?,
        origin: row.get(10)?,
        confidence: row.get(11)?,
        source_ref: row.get(12)?,
        tags: strings(row, 13)?,
        event_at: time_opt(row, 14)?,
        created_at: MillisSinceEpoch(row.get(15)?),
        updated_at: MillisSinceEpoch(row.get(16)?),
        superseded_by: row.get::<_, Option<String>>(17)?.map(MemoryId),
        embedding: vectors::embedding(row.get(18)?, row.get(19)?)?,
        details: row.get(20)?,
    };
    record.check_digest(digest(row, 21)?)?;
    Ok(record)
}
