//! Runs statements with bound values, and reads the columns that many tables have.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::SessionId;
use rusqlite::{Connection, Params, Row};

use super::failure::{SqliteFailure, unreadable};

/// Runs a query and reads each of its rows.
pub(super) fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, SqliteFailure>,
) -> Result<Vec<T>, SqliteFailure> {
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Runs a query and reads its first row, if there is one.
pub(super) fn row<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, SqliteFailure>,
) -> Result<Option<T>, SqliteFailure> {
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(values)?;
    rows.next()?.map(read).transpose()
}

/// Runs a statement and returns how many rows it changed.
pub(super) fn change(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<u64, SqliteFailure> {
    Ok(connection.prepare_cached(sql)?.execute(values)? as u64)
}

/// Reads a session's id.
pub(super) fn session(row: &Row<'_>, column: usize) -> Result<SessionId, SqliteFailure> {
    session_opt(row, column)?.ok_or_else(|| unreadable("session"))
}

/// Reads a session's id that may be missing.
pub(super) fn session_opt(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<SessionId>, SqliteFailure> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    text.map(|text| SessionId::new(text).map_err(|_| unreadable("session"))).transpose()
}

/// Reads the hash of a row; rows of older files have none.
pub(super) fn digest<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a str>> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

/// Reads a time that may be missing.
pub(super) fn time_opt(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<MillisSinceEpoch>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(MillisSinceEpoch))
}
