//! Artefacts: contents once, compressed, under one or more refs.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Artefact, ArtefactKind, ArtefactRef, AskedRef, RefQuery, SessionId, StoreError, TenantId,
    digest,
};
use rusqlite::{Connection, Row, params};

use super::failure::{SqliteFailure, integer, limit, unreadable};
use super::query::{change, row, rows, session_opt, time_opt};
use super::tenants;

/// The level of compression: zstd's own default.
const LEVEL: i32 = 3;

/// Stores an artefact; a ref that is there takes over what may change.
pub(super) fn put(connection: &Connection, artefact: &Artefact) -> Result<(), SqliteFailure> {
    let tenant = artefact.tenant.as_str();
    tenants::ensure(connection, &artefact.tenant)?;
    let reference = &artefact.reference;
    let known: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM cas_contents WHERE tenant = ?1 AND digest = ?2)",
        )?
        .query_row([tenant, &reference.digest], |row| row.get(0))?;
    if !known {
        let packed = zstd::bulk::compress(&artefact.content, LEVEL)
            .map_err(|error| StoreError::Other(Box::new(error)))?;
        let size = integer("content", artefact.content.len() as u64)?;
        change(
            connection,
            "INSERT INTO cas_contents (tenant, digest, size, content) VALUES (?1, ?2, ?3, ?4)",
            (tenant, &reference.digest, size, packed),
        )?;
    }
    change(
        connection,
        "INSERT INTO cas_refs (tenant, digest, kind, view, ref_id, session_id, created_at,
             ttl_expires_at, summary, compressed, freshness_score, access_count, last_accessed_at,
             source_meta)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT (tenant, digest, kind, view) DO UPDATE SET
             ttl_expires_at = excluded.ttl_expires_at, summary = excluded.summary,
             compressed = excluded.compressed, freshness_score = excluded.freshness_score,
             source_meta = excluded.source_meta",
        params![
            tenant,
            reference.digest,
            reference.kind.0,
            reference.view.as_deref().unwrap_or(""),
            reference.print(),
            artefact.session.as_ref().map(SessionId::as_str),
            artefact.created_at.0,
            artefact.ttl_expires_at.map(|at| at.0),
            artefact.summary,
            artefact.compressed,
            artefact.freshness_score,
            artefact.access_count,
            artefact.last_accessed_at.map(|at| at.0),
            artefact.source_meta,
        ],
    )?;
    Ok(())
}

/// Returns the artefact that is asked for, its content hashed again.
pub(super) fn find(
    connection: &Connection,
    tenant: &TenantId,
    asked: &AskedRef,
) -> Result<Artefact, SqliteFailure> {
    let kind = asked.named.as_ref().map(|(kind, _)| kind.as_str());
    let view = asked.named.as_ref().map(|(_, view)| view.as_deref().unwrap_or(""));
    // `g` sorts behind every hexadecimal digit.
    let end = format!("{}g", asked.prefix);
    let mut query = connection.prepare_cached(
        "SELECT r.digest, kind, view, session_id, created_at, ttl_expires_at, summary, compressed,
             freshness_score, access_count, last_accessed_at, source_meta
         FROM cas_refs AS r
         WHERE r.tenant = ?1 AND r.digest >= ?2 AND r.digest < ?3
             AND (?4 IS NULL OR (kind = ?4 AND view = ?5))
         ORDER BY view != '', kind, view",
    )?;
    let mut rows = query.query((tenant.as_str(), &asked.prefix, &end, kind, view))?;
    let mut found: Option<Artefact> = None;
    while let Some(row) = rows.next()? {
        let next = read(tenant, row)?;
        match &found {
            Some(first) if first.reference.digest != next.reference.digest => {
                let what = format!("artefacts of different content begin with {}", asked.prefix);
                return Err(StoreError::Conflict { what }.into());
            }
            Some(_) => {}
            None => found = Some(next),
        }
    }
    let Some(mut artefact) = found else {
        return Err(StoreError::NotFound { what: format!("artefact {}", asked.prefix) }.into());
    };
    artefact.content = content(connection, tenant, &artefact.reference)?;
    Ok(artefact)
}

fn content(
    connection: &Connection,
    tenant: &TenantId,
    reference: &ArtefactRef,
) -> Result<Vec<u8>, SqliteFailure> {
    let found = row(
        connection,
        "SELECT digest, size, content FROM cas_contents WHERE tenant = ?1 AND digest = ?2",
        [tenant.as_str(), &reference.digest],
        unpack,
    )?;
    found.ok_or_else(|| changed(&reference.print()))
}

fn changed(what: &str) -> SqliteFailure {
    SqliteFailure::Mismatch(format!("the content of {what} is not what it was"))
}

/// Reads digest, size and content, and hashes the content again.
pub(super) fn unpack(row: &Row<'_>) -> Result<Vec<u8>, SqliteFailure> {
    let (known, size, packed): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let mismatch = || changed(&known);
    // A damaged size must not reserve the machine's memory: the compressed frame has its own size.
    let size = usize::try_from(size).map_err(|_| mismatch())?;
    let says = zstd::zstd_safe::get_frame_content_size(&packed);
    if !matches!(says, Ok(Some(says)) if says == size as u64) {
        return Err(mismatch());
    }
    let content = zstd::bulk::decompress(&packed, size).map_err(|_| mismatch())?;
    if digest(&content) == known { Ok(content) } else { Err(mismatch()) }
}

/// Counts an access and returns the count.
pub(super) fn touch(
    connection: &Connection,
    tenant: &TenantId,
    reference: &ArtefactRef,
    now: MillisSinceEpoch,
) -> Result<Option<u32>, SqliteFailure> {
    let sql = "UPDATE cas_refs SET access_count = access_count + 1, last_accessed_at = ?5
         WHERE tenant = ?1 AND digest = ?2 AND kind = ?3 AND view = ?4 RETURNING access_count";
    let view = reference.view.as_deref().unwrap_or("");
    let key = (tenant.as_str(), &reference.digest, &reference.kind.0, view, now.0);
    row(connection, sql, key, |row| Ok(row.get(0)?))
}

/// Returns refs without their content, newest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &TenantId,
    query: &RefQuery,
) -> Result<Vec<Artefact>, SqliteFailure> {
    rows(
        connection,
        "SELECT digest, kind, view, session_id, created_at, ttl_expires_at, summary, compressed,
             freshness_score, access_count, last_accessed_at, source_meta
         FROM cas_refs
         WHERE tenant = ?1 AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR session_id = ?3)
         ORDER BY created_at DESC, ref_id LIMIT ?4",
        (
            tenant.as_str(),
            query.kind.as_ref().map(|kind| kind.0.as_str()),
            query.session.as_ref().map(SessionId::as_str),
            limit(query.limit),
        ),
        |row| read(tenant, row),
    )
}

/// Removes refs that ended before a time, and contents without a ref.
pub(super) fn collect(
    connection: &Connection,
    tenant: &TenantId,
    before: MillisSinceEpoch,
) -> Result<Vec<ArtefactRef>, SqliteFailure> {
    let mut gone = rows(
        connection,
        "DELETE FROM cas_refs WHERE tenant = ?1 AND ttl_expires_at < ?2
         RETURNING digest, kind, view",
        (tenant.as_str(), before.0),
        reference,
    )?;
    gone.sort_by_key(ArtefactRef::print);
    for reference in &gone {
        drop_unused(connection, tenant, &reference.digest)?;
    }
    Ok(gone)
}

/// Removes a content that no ref has any more.
pub(super) fn drop_unused(
    connection: &Connection,
    tenant: &TenantId,
    digest: &str,
) -> Result<(), SqliteFailure> {
    change(
        connection,
        "DELETE FROM cas_contents WHERE tenant = ?1 AND digest = ?2 AND NOT EXISTS (
                 SELECT 1 FROM cas_refs WHERE tenant = ?1 AND digest = ?2)",
        [tenant.as_str(), digest],
    )?;
    Ok(())
}

/// Reads a ref of the columns digest, kind and view.
pub(super) fn reference(row: &Row<'_>) -> Result<ArtefactRef, SqliteFailure> {
    let view: String = row.get(2)?;
    Ok(ArtefactRef {
        digest: row.get(0)?,
        kind: ArtefactKind(row.get(1)?),
        view: (!view.is_empty()).then_some(view),
    })
}

fn read(tenant: &TenantId, row: &Row<'_>) -> Result<Artefact, SqliteFailure> {
    let reference = reference(row)?;
    if reference.check().is_err() {
        return Err(unreadable("ref"));
    }
    Ok(Artefact {
        tenant: tenant.clone(),
        reference,
        session: session_opt(row, 3)?,
        created_at: MillisSinceEpoch(row.get(4)?),
        ttl_expires_at: time_opt(row, 5)?,
        summary: row.get(6)?,
        compressed: row.get(7)?,
        content: Vec::new(),
        freshness_score: row.get(8)?,
        access_count: row.get(9)?,
        last_accessed_at: time_opt(row, 10)?,
        source_meta: row.get(11)?,
    })
}
