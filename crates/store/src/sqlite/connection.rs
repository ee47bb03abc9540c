//! Connections: how each is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OpenFlags};

use super::failure::SqliteFailure;

/// How long to wait for another process; chosen: longer than any group takes to commit.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements to keep; there are about a hundred different ones.
const STATEMENTS: usize = 256;

/// The checkpoint waits for 4,000 pages (16 MB), so that groups share its two syncs; the log shrinks to 64 MB after one
/// that grew larger.
const SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -32768;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
";

/// Opens a file that is there. The path is a path: `file:` addresses and their options have no meaning.
pub(super) fn open(path: &Path) -> Result<Connection, SqliteFailure> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(SETTINGS)?;
    rusqlite::vtab::array::load_module(&connection)?;
    Ok(connection)
}

/// Forbids operations that no statement of the store uses, in case a value should ever become a statement.
pub(super) fn restrict(connection: &mut Connection) -> Result<(), SqliteFailure> {
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }))?;
    Ok(())
}

/// Opens a connection that reads only.
pub(super) fn open_reader(path: &Path) -> Result<Connection, SqliteFailure> {
    let mut connection = open(path)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    restrict(&mut connection)?;
    Ok(connection)
}
