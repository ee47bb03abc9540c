//! Artefacts: contents once, compressed, and the refs to them.

use deadpool_postgres::{GenericClient, Object};
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Artefact, ArtefactKind, ArtefactRef, AskedRef, RefQuery, SessionId, StoreError, TenantId,
    digest,
};
use tokio_postgres::Row;

use super::failure::{of_client, of_commit};
use super::text::{corrupt, count, escape_opt, limit, session_opt, time_opt, unescape_opt};
use super::{PostgresStore, change, row, rows};

/// zstd's own default: about as fast as reading from the network (its documentation).
const LEVEL: i32 = 3;

const PUT: &str = "
    INSERT INTO cas_refs (tenant, digest, kind, view, ref_id, session_id, created_at, ttl_expires_at,
        summary, compressed, freshness_score, access_count, last_accessed_at, source_meta)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (tenant, digest, kind, view) DO UPDATE SET
        ttl_expires_at = excluded.ttl_expires_at, summary = excluded.summary,
        compressed = excluded.compressed, freshness_score = excluded.freshness_score,
        source_meta = excluded.source_meta";

/// Stores an artefact.
///
/// A transaction that removes contents holds the tenant's lock alone; one that adds refs shares it. So no content disappears
/// between the check that it exists and the insertion of its ref.
pub(super) async fn put(client: &mut Object, artefact: &Artefact) -> Result<(), StoreError> {
    let content = zstd::encode_all(artefact.content.as_slice(), LEVEL)
        .map_err(|error| StoreError::Other(Box::new(error)))?;
    let reference = &artefact.reference;
    let tenant = artefact.tenant.as_str();
    let transaction = client.transaction().await.map_err(of_client)?;
    let sql = "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))";
    rows(&transaction, sql, &[&tenant]).await?;
    let sql = "INSERT INTO cas_contents VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    change(&transaction, sql, &[&tenant, &reference.digest, &content]).await?;
    let values: super::SqlValues<'_> = &[
        &tenant,
        &reference.digest,
        &reference.kind.0,
        &reference.view.as_deref().unwrap_or(""),
        &reference.print(),
        &artefact.session.as_ref().map(SessionId::as_str),
        &artefact.created_at.0,
        &artefact.ttl_expires_at.map(|end| end.0),
        &escape_opt(artefact.summary.as_ref()),
        &escape_opt(artefact.compressed.as_ref()),
        &artefact.freshness_score,
        &i64::from(artefact.access_count),
        &artefact.last_accessed_at.map(|at| at.0),
        &escape_opt(artefact.source_meta.as_ref()),
    ];
    change(&transaction, PUT, values).await?;
    transaction.commit().await.map_err(of_commit)
}

/// Locks the tenant's contents for a removal.
pub(super) async fn lock_contents<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
) -> Result<(), StoreError> {
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    rows(client, sql, &[&tenant.as_str()]).await.map(drop)
}

/// Removes contents that no ref has any more.
pub(super) async fn drop_contents<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    digests: &[String],
) -> Result<(), StoreError> {
    let sql = "DELETE FROM cas_contents AS content WHERE tenant = $1 AND digest = ANY($2) \
               AND NOT EXISTS (SELECT 1 FROM cas_refs WHERE tenant = $1 \
               AND digest = content.digest)";
    change(client, sql, &[&tenant.as_str(), &digests]).await.map(drop)
}

/// Reads a row of `cas_refs`, without the content.
pub(super) fn read(tenant: &TenantId, row: &Row) -> Result<Artefact, StoreError> {
    Ok(Artefact {
        tenant: tenant.clone(),
        reference: read_ref(row),
        session: session_opt(row.get("session_id"))?,
        created_at: MillisSinceEpoch(row.get("created_at")),
        ttl_expires_at: time_opt(row.get("ttl_expires_at")),
        summary: unescape_opt(row.get("summary")),
        compressed: unescape_opt(row.get("compressed")),
        content: Vec::new(),
        freshness_score: row.get("freshness_score"),
        access_count: count(row.get("access_count")),
        last_accessed_at: time_opt(row.get("last_accessed_at")),
        source_meta: unescape_opt(row.get("source_meta")),
    })
}

pub(super) fn read_ref(row: &Row) -> ArtefactRef {
    let view: String = row.get("view");
    ArtefactRef {
        kind: ArtefactKind(row.get("kind")),
        digest: row.get("digest"),
        view: (!view.is_empty()).then_some(view),
    }
}

const GET: &str = "
    SELECT *, (SELECT count(DISTINCT digest) FROM cas_refs
        WHERE tenant = $1 AND digest >= $2 AND digest < $3
        AND ($4::text IS NULL OR (kind = $4 AND view = $5))) AS contents
    FROM cas_refs JOIN cas_contents USING (tenant, digest)
    WHERE tenant = $1 AND digest >= $2 AND digest < $3
        AND ($4::text IS NULL OR (kind = $4 AND view = $5))
    ORDER BY view <> '', kind, view, digest LIMIT 1";

const COUNT_ACCESS: &str = "
    UPDATE cas_refs SET access_count = least(access_count + 1, 4294967295), last_accessed_at = $5
    WHERE tenant = $1 AND digest = $2 AND kind = $3 AND view = $4
    RETURNING access_count";

/// Returns an artefact and counts the access.
pub(super) async fn get(
    store: &PostgresStore,
    tenant: &TenantId,
    reference: &str,
    now: MillisSinceEpoch,
) -> Result<Artefact, StoreError> {
    let asked = AskedRef::parse(reference)?;
    let client = store.client().await?;
    let end = format!("{}g", asked.prefix);
    let (kind, view) = match &asked.named {
        Some((kind, view)) => (Some(kind.as_str()), view.as_deref().unwrap_or("")),
        None => (None, ""),
    };
    let not_found = || StoreError::NotFound { what: format!("artefact {}", asked.prefix) };
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &asked.prefix, &end, &kind, &view];
    let found = row(&client, GET, values).await?.ok_or_else(not_found)?;
    if found.get::<_, i64>("contents") > 1 {
        let what = format!("several artefacts begin {}", asked.prefix);
        return Err(StoreError::Conflict { what });
    }
    let mut artefact = read(tenant, &found)?;
    let mismatch = || corrupt(artefact.reference.print());
    let content =
        zstd::decode_all(found.get::<_, &[u8]>("content_zstd")).map_err(|_| mismatch())?;
    if digest(&content) != artefact.reference.digest {
        return Err(mismatch());
    }
    artefact.content = content;
    let reference = &artefact.reference;
    let view = reference.view.as_deref().unwrap_or("");
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &reference.digest, &reference.kind.0, &view, &now.0];
    match row(&client, COUNT_ACCESS, values).await {
        Ok(Some(counted)) => {
            artefact.access_count = count(counted.get(0));
            artefact.last_accessed_at = Some(now);
            Ok(artefact)
        }
        Ok(None) => Err(not_found()),
        // No room to write, or a server that only reads: the artefact is returned uncounted.
        Err(StoreError::Unavailable { .. }) => Ok(artefact),
        Err(error) => Err(error),
    }
}

/// Returns refs without their contents.
pub(super) async fn list<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    query: &RefQuery,
) -> Result<Vec<Artefact>, StoreError> {
    let sql = "SELECT * FROM cas_refs WHERE tenant = $1 AND ($2::text IS NULL OR kind = $2) \
               AND ($3::text IS NULL OR session_id = $3) \
               ORDER BY created_at DESC, ref_id LIMIT $4";
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &query.kind.as_ref().map(|kind| super::text::escape(&kind.0)),
        &query.session.as_ref().map(SessionId::as_str),
        &limit(query.limit),
    ];
    rows(client, sql, values).await?.iter().map(|row| read(tenant, row)).collect()
}

/// Removes refs whose time ended, and contents without a ref.
pub(super) async fn collect(
    client: &mut Object,
    tenant: &TenantId,
    before: MillisSinceEpoch,
) -> Result<Vec<ArtefactRef>, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    lock_contents(&transaction, tenant).await?;
    let sql = "DELETE FROM cas_refs WHERE tenant = $1 AND ttl_expires_at < $2 \
               RETURNING kind, digest, view";
    let gone = rows(&transaction, sql, &[&tenant.as_str(), &before.0]).await?;
    let mut gone: Vec<ArtefactRef> = gone.iter().map(read_ref).collect();
    let digests: Vec<String> = gone.iter().map(|reference| reference.digest.clone()).collect();
    drop_contents(&transaction, tenant, &digests).await?;
    transaction.commit().await.map_err(of_commit)?;
    gone.sort_by_key(ArtefactRef::print);
    Ok(gone)
}
