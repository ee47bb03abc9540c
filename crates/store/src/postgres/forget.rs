//! Forgetting: all that belongs to a scope, from every table, in one transaction.

use deadpool_postgres::{Object, Transaction};
use plimsoll_core::{ContentHash, Ref};
use plimsoll_engine::{
    Forgotten, LogRow, MemoryId, Scope, SessionId, StoreError, TenantId, source_tombstone,
};
use tokio_postgres::Row;

use super::failure::{of_client, of_commit};
use super::text::{corrupt, escape, escape_all, escape_opt, key, limit};
use super::{answers, artefacts, branches, change, memories, messages, rows};

/// Removes what a scope covers. Vectors go by the tables' triggers, states and words of records by their keys.
pub(super) async fn forget(
    client: &mut Object,
    tenant: &TenantId,
    scope: &Scope,
) -> Result<Forgotten, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    memories::next_generation(&transaction, tenant).await?;
    let sql = "DELETE FROM memories WHERE tenant = $1 \
               AND ($2::text IS NULL OR workspace_id = $2) AND ($3::text IS NULL OR user_id = $3) \
               AND ($4::text IS NULL OR session_id = $4) AND ($5::text IS NULL OR agent_id = $5) RETURNING *";
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &escape_opt(scope.workspace.as_ref()),
        &escape_opt(scope.user.as_ref()),
        &scope.session.as_ref().map(SessionId::as_str),
        &escape_opt(scope.agent.as_ref()),
    ];
    let gone = rows(&transaction, sql, values).await?;
    let memories = bury(&transaction, tenant, &gone).await?;
    let mut forgotten = Forgotten { memories, ..Forgotten::default() };
    if let Some(session) = scope.session_alone() {
        forget_all_of_session(&transaction, tenant, session, &mut forgotten).await?;
    }
    transaction.commit().await.map_err(of_commit)?;
    Ok(forgotten)
}

/// Removes what was taken from a source.
pub(super) async fn forget_source(
    client: &mut Object,
    tenant: &TenantId,
    source: &str,
) -> Result<Forgotten, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    let escaped = escape(source);
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &escaped];
    memories::next_generation(&transaction, tenant).await?;
    bury_keys(&transaction, tenant, &[source_tombstone(source)]).await?;
    let sql = "DELETE FROM memories WHERE tenant = $1 AND source_ref = $2 RETURNING *";
    let gone = rows(&transaction, sql, values).await?;
    let memories = bury(&transaction, tenant, &gone).await?;
    artefacts::lock_contents(&transaction, tenant).await?;
    let sql = "DELETE FROM cas_refs WHERE tenant = $1 AND (ref_id = $2 OR starts_with(ref_id, $2 || ':')) \
               RETURNING kind, digest, view";
    let gone = rows(&transaction, sql, values).await?;
    let digests: Vec<String> = gone.iter().map(|row| row.get("digest")).collect();
    artefacts::drop_contents(&transaction, tenant, &digests).await?;
    let answers = answers::remove(&transaction, tenant, &[], &[source]).await?;
    transaction.commit().await.map_err(of_commit)?;
    let artefacts = limit(gone.len()).unsigned_abs();
    Ok(Forgotten { memories, artefacts, answers, ..Forgotten::default() })
}

/// Removes records with all their states.
pub(super) async fn forget_memories(
    client: &mut Object,
    tenant: &TenantId,
    ids: &[MemoryId],
) -> Result<Forgotten, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    memories::next_generation(&transaction, tenant).await?;
    let keys: Vec<_> = ids.iter().map(|id| key(&id.0)).collect();
    let sql = "DELETE FROM memories WHERE tenant = $1 AND id_key = ANY($2) RETURNING *";
    let gone = rows(&transaction, sql, &[&tenant.as_str(), &keys]).await?;
    let memories = bury(&transaction, tenant, &gone).await?;
    transaction.commit().await.map_err(of_commit)?;
    Ok(Forgotten { memories, ..Forgotten::default() })
}

/// Leaves the tombstones of removed records and counts the removal; returns how many they are.
async fn bury(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    gone: &[Row],
) -> Result<u64, StoreError> {
    let mut keys = Vec::new();
    for row in gone {
        match memories::read(row) {
            Ok(record) => keys.extend(record.tombstones()),
            // A record that cannot be read is buried by its id alone; an unusual id stays escaped.
            Err(_) => keys.push(format!("record:{}", row.get::<_, &str>("id"))),
        }
    }
    bury_keys(transaction, tenant, &keys).await?;
    let removed = limit(gone.len()).unsigned_abs();
    count_removal(transaction, tenant, removed).await?;
    Ok(removed)
}

async fn bury_keys(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    keys: &[String],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO memory_tombstones (tenant, key) SELECT DISTINCT $1, unnest($2::text[]) \
               ON CONFLICT DO NOTHING";
    change(transaction, sql, &[&tenant.as_str(), &escape_all(keys)]).await?;
    Ok(())
}

/// Counts a removal, so that copies of memory are read anew.
async fn count_removal(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    removed: u64,
) -> Result<(), StoreError> {
    if removed > 0 {
        let sql = "UPDATE memory_versions SET epoch = epoch + 1 WHERE tenant = $1";
        change(transaction, sql, &[&tenant.as_str()]).await?;
    }
    Ok(())
}

/// Removes the messages, receipts and cards of a session.
pub(super) async fn forget_session(
    client: &mut Object,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Forgotten, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    let mut forgotten = Forgotten::default();
    forget_history(&transaction, tenant, session, &mut forgotten).await?;
    transaction.commit().await.map_err(of_commit)?;
    Ok(forgotten)
}

/// Removes messages, receipts and cards and returns the messages' refs.
async fn forget_history(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    session: &SessionId,
    forgotten: &mut Forgotten,
) -> Result<Vec<String>, StoreError> {
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &session.as_str()];
    // First the row that an append to the session, or to a branch that begins with it, locks.
    let sql = "SELECT 1 FROM sessions WHERE tenant = $1 AND session_id = $2 FOR UPDATE";
    rows(transaction, sql, values).await?;
    let mut refs = Vec::new();
    for digest in messages::digests(transaction, tenant, session, u32::MAX).await? {
        let hash = ContentHash::from_full(&digest).ok_or_else(|| corrupt("a digest"))?;
        refs.push(Ref::message(hash).to_string());
    }
    branches::hand_over(transaction, tenant, session).await?;
    let sql = "DELETE FROM unified_logs WHERE tenant = $1 AND session_id = $2 RETURNING node_type";
    let gone = rows(transaction, sql, values).await?;
    let messages = gone.iter().filter(|row| row.get::<_, &str>(0) == LogRow::MESSAGE).count();
    forgotten.messages = limit(messages).unsigned_abs();
    let sql = "DELETE FROM sessions WHERE tenant = $1 AND session_id = $2";
    change(transaction, sql, values).await?;
    let sql = "DELETE FROM context_cards WHERE tenant = $1 AND session_id = $2";
    forgotten.cards = change(transaction, sql, values).await?;
    let sql = "DELETE FROM log_words WHERE tenant = $1 AND session_id = $2";
    change(transaction, sql, values).await?;
    Ok(refs)
}

async fn forget_all_of_session(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    session: &SessionId,
    forgotten: &mut Forgotten,
) -> Result<(), StoreError> {
    let mut refs = forget_history(transaction, tenant, session, forgotten).await?;
    let values: super::SqlValues<'_> = &[&tenant.as_str(), &session.as_str()];
    let sql = "DELETE FROM summarize_jobs WHERE tenant = $1 AND session_id = $2";
    forgotten.jobs = change(transaction, sql, values).await?;
    artefacts::lock_contents(transaction, tenant).await?;
    let sql = "DELETE FROM cas_refs WHERE tenant = $1 AND session_id = $2 \
               RETURNING kind, digest, view";
    let gone = rows(transaction, sql, values).await?;
    let gone: Vec<_> = gone.iter().map(artefacts::read_ref).collect();
    forgotten.artefacts = limit(gone.len()).unsigned_abs();
    let digests: Vec<String> = gone.iter().map(|reference| reference.digest.clone()).collect();
    artefacts::drop_contents(transaction, tenant, &digests).await?;
    refs.extend(gone.iter().map(plimsoll_engine::ArtefactRef::print));
    let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
    forgotten.answers = answers::remove(transaction, tenant, &[], &refs).await?;
    Ok(())
}
