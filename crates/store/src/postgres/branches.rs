//! Branches: a session's rows are its own and, before those, some of the sessions that it goes back to.

use deadpool_postgres::{GenericClient, Transaction};
use plimsoll_engine::{Branch, ReceiptRecord, SessionId, StoreError, TenantId};
use tokio_postgres::Row;

use super::text::{count, escape_all, session as session_of, unescape_all};
use super::{cards, change, messages, row, rows};
use crate::part::{SharedPart, joined};

/// Returns the parts of a session, its own first, the oldest last.
pub(super) async fn parts_of<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<SharedPart>, StoreError> {
    let sql = "SELECT * FROM session_parts($1, $2)";
    let found = rows(client, sql, &[&tenant.as_str(), &session.as_str()]).await?;
    let read = |row: &Row| {
        let branch = Branch {
            session: session.clone(),
            from: session_of(row.get("owner"))?,
            messages: count(row.get("messages")),
            turns: count(row.get("turns")),
            strategies: unescape_all(row.get("strategies")),
        };
        Ok(SharedPart { branch, is_own: row.get::<_, i32>("depth") == 0 })
    };
    found.iter().map(read).collect()
}

/// Returns the receipts of a session's parts.
pub(super) async fn receipts<C: GenericClient>(
    client: &C,
    tenant: &TenantId,
    session: &SessionId,
    strategy: Option<Vec<u8>>,
) -> Result<Vec<ReceiptRecord>, StoreError> {
    let sql = "SELECT number, content_json, hash FROM unified_logs WHERE tenant = $1 \
               AND session_id = $2 AND node_type = 'context_selection' \
               AND ($3::bytea IS NULL OR strategy_key = $3)";
    let mut all = Vec::new();
    for part in parts_of(client, tenant, session).await? {
        let values: super::SqlValues<'_> =
            &[&tenant.as_str(), &part.branch.from.as_str(), &strategy];
        for row in rows(client, sql, values).await? {
            all.extend(part.share(messages::read_receipt(&row)?));
        }
    }
    Ok(joined(all))
}

/// Makes the session of a branch, unless it is there. The session that it left cannot be forgotten meanwhile.
pub(super) async fn begin(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<(), StoreError> {
    let sql = "SELECT messages FROM sessions WHERE tenant = $1 AND session_id = $2 FOR KEY SHARE";
    let there = row(transaction, sql, &[&tenant.as_str(), &branch.from.as_str()]).await?;
    let there = there.map_or(0, |row| count(row.get(0)));
    if there < branch.messages {
        return Err(branch.lacks(there));
    }
    let sql = "SELECT 1 FROM sessions WHERE tenant = $1 AND session_id = $2";
    let keys: super::SqlValues<'_> = &[&tenant.as_str(), &branch.session.as_str()];
    if row(transaction, sql, keys).await?.is_some() {
        return check_past(transaction, tenant, branch).await;
    }
    let from = nearest(transaction, tenant, branch).await?;
    let sql = "INSERT INTO sessions (tenant, session_id, messages, tokens, first_at, last_at, \
                   branch_of, shared_messages, shared_turns, shared_strategies) \
               VALUES ($1, $2, $4, 0, $7, $8, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let values: super::SqlValues<'_> = &[
        &tenant.as_str(),
        &branch.session.as_str(),
        &from.as_str(),
        &i64::from(branch.messages),
        &i64::from(branch.turns),
        &escape_all(&branch.strategies),
        &i64::MAX,
        &i64::MIN,
    ];
    if change(transaction, sql, values).await? == 0 {
        // Another gateway was first.
        return check_past(transaction, tenant, branch).await;
    }
    let sql = "UPDATE sessions AS s SET tokens = shared.tokens, first_at = shared.first_at, \
                   last_at = shared.last_at \
               FROM (SELECT coalesce(sum(l.tokens), 0)::bigint AS tokens, \
                       coalesce(min(l.recorded_at), $3) AS first_at, \
                       coalesce(max(l.recorded_at), $4) AS last_at \
                   FROM session_parts($1, $2) AS part JOIN unified_logs AS l \
                       ON l.tenant = $1 AND l.session_id = part.owner \
                       AND l.node_type = 'message' AND l.number < part.messages) AS shared \
               WHERE s.tenant = $1 AND s.session_id = $2";
    let (session, (no_first, no_last)) = (branch.session.as_str(), (i64::MAX, i64::MIN));
    change(transaction, sql, &[&tenant.as_str(), &session, &no_first, &no_last]).await?;
    Ok(())
}

/// Checks that a session which is there has the messages that a branch of its name shares.
async fn check_past(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<(), StoreError> {
    let own = messages::digests(transaction, tenant, &branch.session, branch.messages).await?;
    let shared = messages::digests(transaction, tenant, &branch.from, branch.messages).await?;
    if own == shared { Ok(()) } else { Err(branch.differs()) }
}

/// Returns the session whose rows a branch shares: where it shares no row of the one that it left, the one before that.
async fn nearest(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<SessionId, StoreError> {
    let mut from = branch.from.clone();
    for part in parts_of(transaction, tenant, &branch.from).await?.into_iter().skip(1) {
        let before = part.branch;
        if branch.messages > before.messages || branch.turns > before.turns {
            break;
        }
        from = before.from;
    }
    // It may not be forgotten meanwhile either.
    let sql = "SELECT 1 FROM sessions WHERE tenant = $1 AND session_id = $2 FOR KEY SHARE";
    rows(transaction, sql, &[&tenant.as_str(), &from.as_str()]).await?;
    Ok(from)
}

/// Gives what the branches of a session share to the one that shares most; the others become branches of that one.
pub(super) async fn hand_over(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    leaving: &SessionId,
) -> Result<(), StoreError> {
    let sql = "SELECT session_id, shared_messages, shared_turns, shared_strategies FROM sessions \
               WHERE tenant = $1 AND branch_of = $2 \
               ORDER BY shared_messages DESC, shared_turns DESC, session_id FOR UPDATE";
    let found = rows(transaction, sql, &[&tenant.as_str(), &leaving.as_str()]).await?;
    let mut branches = Vec::with_capacity(found.len());
    for row in &found {
        branches.push(Branch {
            session: session_of(row.get(0))?,
            from: leaving.clone(),
            messages: count(row.get(1)),
            turns: count(row.get(2)),
            strategies: unescape_all(row.get(3)),
        });
    }
    let Some((heir, others)) = branches.split_first() else { return Ok(()) };
    cards::hand_over(transaction, tenant, heir).await?;
    give_messages(transaction, tenant, heir).await?;
    let sql = "SELECT number, content_json, hash FROM unified_logs WHERE tenant = $1 \
               AND session_id = $2 AND node_type = 'context_selection'";
    let given = rows(transaction, sql, &[&tenant.as_str(), &leaving.as_str()]).await?;
    // Receipts that cannot be read are not handed over.
    let given: Vec<_> = given.iter().flat_map(messages::read_receipt).collect();
    for receipt in given.iter().filter(|one| heir.shares(one)) {
        let own = receipt.clone().inherited(&heir.session);
        messages::insert_receipt(transaction, tenant, &own).await?;
    }
    for other in others {
        // A receipt that the heir has no share in would be taken for its own.
        for receipt in given.iter().filter(|one| other.shares(one) && !heir.shares(one)) {
            let own = receipt.clone().inherited(&other.session);
            messages::insert_receipt(transaction, tenant, &own).await?;
        }
        let sql = "UPDATE sessions SET branch_of = $3, shared_turns = least(shared_turns, $4) \
                   WHERE tenant = $1 AND session_id = $2";
        let values: super::SqlValues<'_> = &[
            &tenant.as_str(),
            &other.session.as_str(),
            &heir.session.as_str(),
            &i64::from(heir.turns),
        ];
        change(transaction, sql, values).await?;
    }
    let sql = "UPDATE sessions AS heir SET branch_of = gone.branch_of, \
                   shared_messages = least(heir.shared_messages, gone.shared_messages), \
                   shared_turns = least(heir.shared_turns, gone.shared_turns), \
                   shared_strategies = gone.shared_strategies \
               FROM sessions AS gone WHERE heir.tenant = $1 AND heir.session_id = $2 \
                   AND gone.tenant = $1 AND gone.session_id = $3";
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &heir.session.as_str(), &leaving.as_str()];
    change(transaction, sql, values).await?;
    Ok(())
}

/// Gives the messages that a branch shares to it, with their words.
async fn give_messages(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<(), StoreError> {
    let messages = i64::from(branch.messages);
    let values: super::SqlValues<'_> =
        &[&tenant.as_str(), &branch.session.as_str(), &branch.from.as_str(), &messages];
    let sql = "INSERT INTO log_words (tenant, session_id, content_hash, source, part, words) \
               SELECT tenant, $2, content_hash, source, part, words FROM log_words AS w \
               WHERE tenant = $1 AND session_id = $3 AND source = 'message' AND EXISTS ( \
                   SELECT 1 FROM unified_logs AS l WHERE l.tenant = $1 AND l.session_id = $3 \
                       AND l.content_hash = w.content_hash AND l.node_type = 'message' \
                       AND l.number < $4) \
               ON CONFLICT DO NOTHING";
    change(transaction, sql, values).await?;
    let sql = "UPDATE unified_logs SET session_id = $2 WHERE tenant = $1 AND session_id = $3 \
               AND node_type = 'message' AND number < $4";
    change(transaction, sql, values).await?;
    Ok(())
}
