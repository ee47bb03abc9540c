//! Forgetting a scope, from the knowledge and from a history that may be in another store.

use std::collections::BTreeSet;

use crate::error::StoreError;
use crate::history::{HistoryStore, LogQuery, LogRow};
use crate::id::TenantId;
use crate::knowledge::{Forgotten, KnowledgeStore};
use crate::memory::Scope;

/// Removes all that belongs to a scope; see [`KnowledgeStore::forget`].
///
/// One store that is both ports does it in one transaction. A history in another store follows after the knowledge, and its
/// messages go last: a forgetting that was interrupted still finds which answers rest on them, so that it can be done again.
pub async fn forget(
    history: &dyn HistoryStore,
    knowledge: &dyn KnowledgeStore,
    tenant: &TenantId,
    scope: &Scope,
) -> Result<Forgotten, StoreError> {
    let mut forgotten = knowledge.forget(tenant, scope).await?;
    let Some(session) = scope.session_alone() else { return Ok(forgotten) };
    let all = usize::MAX >> 1;
    let query = LogQuery {
        session: Some(session.clone()),
        node_type: Some(LogRow::MESSAGE.to_owned()),
        since: None,
        limit: all,
    };
    let rows = history.log(tenant, &query).await?;
    let hashes = rows.into_iter().filter_map(|row| row.content_hash);
    let refs: BTreeSet<String> = hashes.map(|hash| format!("ref:message:{hash}")).collect();
    if !refs.is_empty() {
        for answer in knowledge.answers(tenant, all).await? {
            if answer.used_refs.iter().any(|used| refs.contains(used)) {
                let key = Some(answer.cache_key.as_str());
                forgotten.answers += knowledge.drop_answers(tenant, key, None).await?;
            }
        }
    }
    let history = history.forget_session(tenant, session).await?;
    forgotten.messages += history.messages;
    forgotten.cards += history.cards;
    Ok(forgotten)
}
