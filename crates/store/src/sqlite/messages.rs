//! Messages: appended, read back and hashed again.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch};
use plimsoll_engine::{
    Appended, LogRow, MessageRecord, Rebuilt, SessionId, SessionSummary, StoreError, TenantId,
};
use rusqlite::{Connection, Row};

use super::branches::{parts, parts_of};
use super::failure::{SqliteFailure, limit, unreadable};
use super::query::{change, row, rows, session};
use crate::part::SharedPart;

/// Columns of a message as [`read`] expects them.
macro_rules! message_columns {
    () => {
        "session_id, number, digest, content_json, tokens, turn, recorded_at"
    };
}
pub(super) use message_columns;

/// Appends messages; the sessions' counts tell what is new.
pub(super) fn append<'a>(
    connection: &Connection,
    tenant: &TenantId,
    messages: &'a [MessageRecord],
    counts: &mut SessionCounts<'a>,
    appended: &mut Appended,
) -> Result<(), SqliteFailure> {
    let mut ends: HashMap<&SessionId, u32> = HashMap::new();
    for record in messages {
        let end = match ends.get(&record.session) {
            Some(end) => *end,
            None => count(connection, tenant, &record.session)?,
        };
        match record.position.cmp(&end) {
            Ordering::Less => {
                same(connection, tenant, record)?;
                appended.known += 1;
                ends.insert(&record.session, end);
            }
            Ordering::Equal => {
                insert(connection, tenant, record)?;
                counts.add(&record.session, Some(record.tokens), record.recorded_at);
                appended.added += 1;
                ends.insert(&record.session, end + 1);
            }
            Ordering::Greater => {
                let why = format!(
                    "{} leaves a gap: session {} has {end} messages",
                    record.position, record.session
                );
                return Err(StoreError::Invalid { field: "position", why }.into());
            }
        }
    }
    Ok(())
}

/// Returns how many messages a session has.
pub(super) fn count(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<u32, SqliteFailure> {
    let sql = "SELECT messages FROM sessions WHERE tenant = ?1 AND session_id = ?2";
    let count = row(connection, sql, [tenant.as_str(), session.as_str()], |row| Ok(row.get(0)?))?;
    Ok(count.unwrap_or(0))
}

fn same(
    connection: &Connection,
    tenant: &TenantId,
    record: &MessageRecord,
) -> Result<(), SqliteFailure> {
    let kept: Option<String> = row(
        connection,
        concat!(
            parts!("?1", "?2"),
            "SELECT l.digest FROM part CROSS JOIN unified_logs AS l
             WHERE l.tenant = ?1 AND l.session_id = part.owner AND l.node_type = 'message'
                 AND l.number = ?3 AND l.number < part.messages AND l.strategy = ''"
        ),
        (tenant.as_str(), record.session.as_str(), record.position),
        |row| Ok(row.get(0)?),
    )?;
    if kept.as_deref() == Some(record.hash.full().as_str()) {
        return Ok(());
    }
    let what = format!(
        "position {} of session {} holds another message than {}",
        record.position, record.session, record.hash
    );
    Err(StoreError::Conflict { what }.into())
}

fn insert(
    connection: &Connection,
    tenant: &TenantId,
    record: &MessageRecord,
) -> Result<(), SqliteFailure> {
    let content = serde_json::to_string(&record.message)
        .map_err(|error| StoreError::Other(Box::new(error)))?;
    change(
        connection,
        "INSERT INTO unified_logs (tenant, session_id, node_type, number, strategy, recorded_at,
             digest, role, tokens, turn, content_json)
         VALUES (?1, ?2, 'message', ?3, '', ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            tenant.as_str(),
            record.session.as_str(),
            record.position,
            record.recorded_at.0,
            record.hash.full(),
            record.message.role.as_str(),
            record.tokens,
            record.turn,
            content,
        ),
    )?;
    Ok(())
}

/// The counts that new records add to their sessions.
///
/// Each session is written once, since every change moves it in its index.
#[derive(Debug, Default)]
pub(super) struct SessionCounts<'a> {
    sessions: BTreeMap<&'a SessionId, SessionCount>,
}

#[derive(Debug)]
struct SessionCount {
    messages: u32,
    tokens: i64,
    first_at: MillisSinceEpoch,
    last_at: MillisSinceEpoch,
}

impl<'a> SessionCounts<'a> {
    /// Counts a record; `tokens` are those of a message.
    pub(super) fn add(
        &mut self,
        session: &'a SessionId,
        tokens: Option<u32>,
        at: MillisSinceEpoch,
    ) {
        let count = self.sessions.entry(session).or_insert(SessionCount {
            messages: 0,
            tokens: 0,
            first_at: at,
            last_at: at,
        });
        count.messages += u32::from(tokens.is_some());
        count.tokens += i64::from(tokens.unwrap_or(0));
        count.first_at = count.first_at.min(at);
        count.last_at = count.last_at.max(at);
    }

    pub(super) fn write(
        self,
        connection: &Connection,
        tenant: &TenantId,
    ) -> Result<(), SqliteFailure> {
        for (session, count) in self.sessions {
            let SessionCount { messages, tokens, first_at, last_at } = count;
            change(
                connection,
                "INSERT INTO sessions (tenant, session_id, messages, tokens, first_at, last_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (tenant, session_id) DO UPDATE SET
                     messages = messages + excluded.messages,
                     tokens = tokens + excluded.tokens,
                     first_at = min(first_at, excluded.first_at),
                     last_at = max(last_at, excluded.last_at)",
                (tenant.as_str(), session.as_str(), messages, tokens, first_at.0, last_at.0),
            )?;
        }
        Ok(())
    }
}

/// Returns the messages of a session from `from` on.
pub(super) fn of_session(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    from: u32,
    most: usize,
) -> Result<Vec<MessageRecord>, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        message_columns!(),
        " FROM unified_logs WHERE tenant = ?1 AND session_id = ?2 AND node_type = 'message'
         AND number >= ?3 AND number < ?4 ORDER BY number LIMIT ?5"
    );
    let mut found = Vec::new();
    // The oldest part has the first messages.
    for SharedPart { branch: part, .. } in parts_of(connection, tenant, session)?.into_iter().rev()
    {
        let left = limit(most - found.len());
        let values = (tenant.as_str(), part.from.as_str(), from, part.messages, left);
        let of_part = rows(connection, sql, values, read)?;
        found.extend(of_part.into_iter().map(|record| of(record, session)));
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

/// Returns the hashes of a session's first messages in their order, shared ones included.
pub(super) fn digests(
    connection: &Connection,
    tenant: &TenantId,
    session: &SessionId,
    most: u32,
) -> Result<Vec<String>, SqliteFailure> {
    rows(
        connection,
        concat!(
            parts!("?1", "?2"),
            "SELECT l.digest FROM part CROSS JOIN unified_logs AS l
             WHERE l.tenant = ?1 AND l.session_id = part.owner AND l.node_type = 'message'
                 AND l.number < part.messages AND l.number < ?3 AND l.digest IS NOT NULL
             ORDER BY l.number"
        ),
        (tenant.as_str(), session.as_str(), most),
        |row| Ok(row.get(0)?),
    )
}

/// Returns a message as the session that shares it has it.
pub(super) fn of(record: MessageRecord, session: &SessionId) -> MessageRecord {
    MessageRecord { session: session.clone(), ..record }
}

/// Returns the message whose hash begins with `prefix`, which is hexadecimal.
pub(super) fn by_hash(
    connection: &Connection,
    tenant: &TenantId,
    prefix: &str,
) -> Result<MessageRecord, SqliteFailure> {
    // `g` sorts behind every hexadecimal digit.
    let end = format!("{prefix}g");
    let differing = row(
        connection,
        "SELECT min(digest), max(digest) FROM unified_logs
         WHERE tenant = ?1 AND digest >= ?2 AND digest < ?3",
        (tenant.as_str(), prefix, &end),
        |row| Ok(row.get::<_, Option<String>>(0)? != row.get(1)?),
    )?;
    if differing == Some(true) {
        let what = format!("messages of different content begin with {prefix}");
        return Err(StoreError::Conflict { what }.into());
    }
    let found = row(
        connection,
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM unified_logs WHERE tenant = ?1 AND digest >= ?2 AND digest < ?3
             ORDER BY recorded_at, session_id, number LIMIT 1"
        ),
        (tenant.as_str(), prefix, &end),
        read,
    )?;
    found.ok_or_else(|| StoreError::NotFound { what: format!("message {prefix}") }.into())
}

/// Returns the message of a row; `None` if the row is gone.
pub(super) fn by_row(
    connection: &Connection,
    tenant: &TenantId,
    id: i64,
) -> Result<Option<MessageRecord>, SqliteFailure> {
    row(
        connection,
        concat!("SELECT ", message_columns!(), " FROM unified_logs WHERE tenant = ?1 AND id = ?2"),
        (tenant.as_str(), id),
        read,
    )
}

/// Returns the sessions, the one with the newest record first.
pub(super) fn sessions(
    connection: &Connection,
    tenant: &TenantId,
    most: usize,
) -> Result<Vec<SessionSummary>, SqliteFailure> {
    rows(
        connection,
        "SELECT session_id, messages, tokens, first_at, last_at FROM sessions
         WHERE tenant = ?1 ORDER BY last_at DESC, session_id LIMIT ?2",
        (tenant.as_str(), limit(most)),
        read_summary,
    )
}

/// Returns one session.
pub(super) fn session_summary(
    connection: &Connection,
    tenant: &TenantId,
    of: &SessionId,
) -> Result<Option<SessionSummary>, SqliteFailure> {
    row(
        connection,
        "SELECT session_id, messages, tokens, first_at, last_at FROM sessions
         WHERE tenant = ?1 AND session_id = ?2",
        [tenant.as_str(), of.as_str()],
        read_summary,
    )
}

fn read_summary(row: &Row<'_>) -> Result<SessionSummary, SqliteFailure> {
    let tokens: i64 = row.get(2)?;
    Ok(SessionSummary {
        session: session(row, 0)?,
        messages: row.get(1)?,
        tokens: u64::try_from(tokens).map_err(|_| unreadable("tokens"))?,
        first_at: MillisSinceEpoch(row.get(3)?),
        last_at: MillisSinceEpoch(row.get(4)?),
    })
}

/// Hashes every message again.
pub(super) fn verify(connection: &Connection, tenant: &TenantId) -> Result<Rebuilt, SqliteFailure> {
    let sql = concat!(
        "SELECT ",
        message_columns!(),
        " FROM unified_logs WHERE tenant = ?1 AND node_type = 'message'"
    );
    let mut rebuilt = Rebuilt::default();
    rows(connection, sql, [tenant.as_str()], |row| {
        rebuilt.messages += 1;
        rebuilt.mismatches += u64::from(read(row).is_err());
        Ok(())
    })?;
    Ok(rebuilt)
}

/// Reads a message and hashes it again.
pub(super) fn read(row: &Row<'_>) -> Result<MessageRecord, SqliteFailure> {
    let hash: String = row.get(2)?;
    let content: String = row.get(3)?;
    let mismatch =
        || SqliteFailure::Mismatch(format!("the content of message {hash} is not what it was"));
    let message: Message = serde_json::from_str(&content).map_err(|_| mismatch())?;
    let known = ContentHash::from_full(&hash).ok_or_else(mismatch)?;
    if ContentHash::of(&message) != known {
        return Err(mismatch());
    }
    Ok(MessageRecord {
        session: session(row, 0)?,
        position: row.get(1)?,
        hash: known,
        message,
        tokens: row.get(4)?,
        turn: row.get(5)?,
        recorded_at: MillisSinceEpoch(row.get(6)?),
    })
}

/// The log's name for messages is that of the statements here.
const _: () = assert!(matches!(LogRow::MESSAGE.as_bytes(), b"message"));
