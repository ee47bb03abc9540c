//! Forgetting: all that belongs to a scope, from every table, in one transaction.

use deadpool_postgres::{Object, Transaction};
use plimsoll_core::{ContentHash, Ref};
use plimsoll_engine::{Forgotten, Scope, SessionId, StoreError, TenantId};

use super::failure::{of_client, of_commit};
use super::text::{corrupt, escape, escape_opt, limit};
use super::{answers, artefacts, change, rows};

/// Removes what a scope covers. Vectors go by the tables' triggers, states and words of records by their keys.
pub(super) async fn forget(
    client: &mut Object,
    tenant: &TenantId,
    scope: &Scope,
) -> Result<Forgotten, StoreError> {
    let transaction = client.transaction().await.map_err(of_client)?;
    let sql = "DELETE FROM memories WHERE tenant = $1 \
               AND ($2::text IS NULL OR workspace_id = $2) AND ($3::text IS NULL OR user_id = $3) \
               AND ($4::text IS NULL OR session_id = $4) AND ($5::text IS NULL OR agent_id = $5)";
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &escape_opt(scope.workspace.as_ref()),
        &escape_opt(scope.user.as_ref()),
        &scope.session.as_ref().map(SessionId::as_str),
        &escape_opt(scope.agent.as_ref()),
    ];
    let memories = change(&transaction, sql, values).await?;
    count_removal(&transaction, tenant, memories).await?;
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
    let sql = "DELETE FROM memories WHERE tenant = $1 AND source_ref = $2";
    let memories = change(&transaction, sql, values).await?;
    count_removal(&transaction, tenant, memories).await?;
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
    // First the row that an append to the session locks.
    let sql = "DELETE FROM sessions WHERE tenant = $1 AND session_id = $2";
    change(transaction, sql, values).await?;
    let sql = "DELETE FROM unified_logs WHERE tenant = $1 AND session_id = $2 RETURNING digest";
    let mut refs = Vec::new();
    for row in rows(transaction, sql, values).await? {
        if let Some(digest) = row.get::<_, Option<&str>>(0) {
            let hash = ContentHash::from_full(digest).ok_or_else(|| corrupt("a digest"))?;
            refs.push(Ref::message(hash).to_string());
        }
    }
    forgotten.messages = limit(refs.len()).unsigned_abs();
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
