//! Branches: a session's rows are its own and, before those, some of the sessions that it goes back to.

use plimsoll_engine::{Appended, Branch, ReceiptRecord, SessionId, TenantId};
use rusqlite::Connection;

use super::failure::SqliteFailure;
use super::messages::SessionCounts;
use super::query::{change, row, rows, session};
use super::receipts::{self, list, strings};
use super::tenants::TenantNumber;
use super::{cards, messages};
use crate::part::SharedPart;

/// The parts of a session, as a common table: by owner, how many of its messages and turns belong to the session.
///
/// A session goes back to fewer others than the depth allows (chosen): only a damaged file has a circle.
macro_rules! parts {
    ($tenant:literal, $session:literal) => {
        concat!(
            "WITH RECURSIVE part (owner, messages, turns, strategies, depth) AS (
                 SELECT ",
            $session,
            ", 0xFFFFFFFF, 0xFFFFFFFF, '[]', 0
                 UNION ALL
                 SELECT s.branch_of, min(s.shared_messages, part.messages),
                     min(s.shared_turns, part.turns), s.shared_strategies, part.depth + 1
                 FROM part JOIN sessions AS s ON s.tenant = ",
            $tenant,
            " AND s.session_id = part.owner
                 WHERE s.branch_of IS NOT NULL AND part.depth < 10000)
             "
        )
    };
}
pub(super) use parts;

/// Returns the parts of a session, its own first, the oldest last.
pub(super) fn parts_of(
    connection: &Connection,
    tenant: &TenantId,
    of: &SessionId,
) -> Result<Vec<SharedPart>, SqliteFailure> {
    // Most sessions are no branch, and for one row no common table is made.
    let sql = "SELECT branch_of IS NOT NULL FROM sessions WHERE tenant = ?1 AND session_id = ?2";
    let is_branch = row(connection, sql, [tenant.as_str(), of.as_str()], |row| Ok(row.get(0)?))?;
    if is_branch != Some(true) {
        return Ok(vec![SharedPart::own(of)]);
    }
    let sql = concat!(
        parts!("?1", "?2"),
        "SELECT owner, messages, turns, strategies, depth FROM part ORDER BY depth"
    );
    rows(connection, sql, [tenant.as_str(), of.as_str()], |row| {
        let branch = Branch {
            session: of.clone(),
            from: session(row, 0)?,
            messages: row.get(1)?,
            turns: row.get(2)?,
            strategies: strings(row, 3)?,
        };
        Ok(SharedPart { branch, is_own: row.get::<_, u32>(4)? == 0 })
    })
}

/// Makes the session of a branch, unless it is there.
pub(super) fn begin(
    connection: &Connection,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<(), SqliteFailure> {
    let there = messages::count(connection, tenant, &branch.from)?;
    if there < branch.messages {
        return Err(branch.lacks(there).into());
    }
    if messages::session_summary(connection, tenant, &branch.session)?.is_some() {
        let first = |of| messages::digests(connection, tenant, of, branch.messages);
        let is_same = first(&branch.session)? == first(&branch.from)?;
        return if is_same { Ok(()) } else { Err(branch.differs().into()) };
    }
    let from = nearest(connection, tenant, branch)?;
    change(
        connection,
        "INSERT INTO sessions (tenant, session_id, messages, tokens, first_at, last_at, branch_of,
             shared_messages, shared_turns, shared_strategies)
         SELECT tenant, ?2, 0, 0, first_at, first_at, session_id, ?4, ?5, ?6
         FROM sessions WHERE tenant = ?1 AND session_id = ?3",
        (
            tenant.as_str(),
            branch.session.as_str(),
            from.as_str(),
            branch.messages,
            branch.turns,
            list(&branch.strategies)?,
        ),
    )?;
    count_shared(connection, tenant, &branch.session)
}

/// Returns the session whose rows a branch shares: where it shares no row of the one that it left, the one before that.
fn nearest(
    connection: &Connection,
    tenant: &TenantId,
    branch: &Branch,
) -> Result<SessionId, SqliteFailure> {
    let parts = parts_of(connection, tenant, &branch.from)?;
    let mut from = branch.from.clone();
    for SharedPart { branch: before, .. } in parts.into_iter().skip(1) {
        if branch.messages > before.messages || branch.turns > before.turns {
            break;
        }
        from = before.from;
    }
    Ok(from)
}

/// Counts what a session shares beside its own messages.
pub(super) fn count_shared(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<(), SqliteFailure> {
    for part in parts_of(connection, tenant, session)?.iter().skip(1) {
        change(
            connection,
            "UPDATE sessions AS s SET messages = max(s.messages, s.shared_messages),
                 tokens = s.tokens + l.tokens, first_at = min(s.first_at, l.first_at),
                 last_at = max(s.last_at, l.last_at)
             FROM (SELECT sum(tokens) AS tokens, min(recorded_at) AS first_at,
                     max(recorded_at) AS last_at
                 FROM unified_logs WHERE tenant = ?1 AND session_id = ?3
                     AND node_type = 'message' AND number < ?4) AS l
             WHERE s.tenant = ?1 AND s.session_id = ?2 AND l.tokens IS NOT NULL",
            (tenant.as_str(), session.as_str(), part.branch.from.as_str(), part.branch.messages),
        )?;
    }
    Ok(())
}

/// Gives what the branches of a session share to the one that shares most; the others become branches of that one.
pub(super) fn hand_over(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
    leaving: &SessionId,
) -> Result<(), SqliteFailure> {
    let branches = rows(
        connection,
        "SELECT session_id, shared_messages, shared_turns, shared_strategies FROM sessions
         WHERE tenant = ?1 AND branch_of = ?2
         ORDER BY shared_messages DESC, shared_turns DESC, session_id",
        [tenant.as_str(), leaving.as_str()],
        |row| {
            Ok(Branch {
                session: session(row, 0)?,
                from: leaving.clone(),
                messages: row.get(1)?,
                turns: row.get(2)?,
                strategies: strings(row, 3)?,
            })
        },
    )?;
    let Some((heir, others)) = branches.split_first() else { return Ok(()) };
    let keys = (tenant.as_str(), heir.session.as_str(), leaving.as_str(), heir.messages);
    cards::hand_over(connection, tenant, number, heir)?;
    change(
        connection,
        "UPDATE unified_logs SET session_id = ?2
         WHERE tenant = ?1 AND session_id = ?3 AND node_type = 'message' AND number < ?4",
        keys,
    )?;
    // Receipts that cannot be read are not handed over.
    let given = receipts::of_owner(connection, tenant, leaving)?;
    let given: Vec<ReceiptRecord> = given.into_iter().flatten().collect();
    // A receipt that the heir has no share in would be taken for its own, so the branches that share it get copies.
    let give = |branch: &Branch, is_left: &dyn Fn(&ReceiptRecord) -> bool| {
        let shared = given.iter().filter(|one| branch.shares(one) && is_left(one));
        let own: Vec<_> = shared.map(|one| one.clone().inherited(&branch.session)).collect();
        let mut counts = SessionCounts::default();
        receipts::append(connection, tenant, &own, &mut counts, &mut Appended::default())?;
        counts.write(connection, tenant)
    };
    give(heir, &|_| true)?;
    for other in others {
        give(other, &|receipt| !heir.shares(receipt))?;
        change(
            connection,
            "UPDATE sessions SET branch_of = ?3, shared_turns = min(shared_turns, ?4)
             WHERE tenant = ?1 AND session_id = ?2",
            (tenant.as_str(), other.session.as_str(), heir.session.as_str(), heir.turns),
        )?;
    }
    change(
        connection,
        "UPDATE sessions AS heir SET branch_of = gone.branch_of,
             shared_messages = min(heir.shared_messages, gone.shared_messages),
             shared_turns = min(heir.shared_turns, gone.shared_turns),
             shared_strategies = gone.shared_strategies
         FROM sessions AS gone
         WHERE heir.tenant = ?1 AND heir.session_id = ?2
             AND gone.tenant = ?1 AND gone.session_id = ?3",
        (keys.0, keys.1, keys.2),
    )?;
    Ok(())
}
