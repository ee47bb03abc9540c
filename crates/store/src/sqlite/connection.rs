//! Connections: how each is set up.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OpenFlags};

use super::failure::SqliteFailure;
use super::place::{OpenMode, StoreFile};

/// How long to wait for another process; chosen: longer than any group takes to commit.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Prepared statements to keep; there are about a hundred different ones.
const STATEMENTS: usize = 256;

/// A checkpoint waits for 4,000 pages (16 MB), so that groups share its two syncs (the writer's wait for fewer, see
/// [`super::checkpoint`]); the log shrinks to 64 MB after one that grew larger.
const SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8192;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
";

/// Opens a file that is there, for changes. The path is a path: `file:` addresses and their options have no meaning.
pub(super) fn open(path: &Path) -> Result<Connection, SqliteFailure> {
    set_up(Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?)
}

/// Opens a file to save what can be read of it.
pub(super) fn open_damaged(path: &Path) -> Result<Connection, SqliteFailure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Only so does SQLite read a file that is shorter than its header says, and before its first statement.
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    configure(connection)
}

fn set_up(connection: Connection) -> Result<Connection, SqliteFailure> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    configure(connection)
}

fn configure(connection: Connection) -> Result<Connection, SqliteFailure> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Without it, statements on tables with partial indexes are prepared again whenever a value is bound: a tenth of a turn's time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
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
pub(super) fn open_reader(file: &StoreFile) -> Result<Connection, SqliteFailure> {
    let mut connection = open_file(file)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    restrict(&mut connection)?;
    Ok(connection)
}

/// Opens a file as far as it may be changed.
///
/// Where nothing may be written, one without a log is opened as a file that cannot change: else SQLite makes a log's index beside it.
pub(super) fn open_file(file: &StoreFile) -> Result<Connection, SqliteFailure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match file.mode {
        OpenMode::Write => open(&file.path),
        OpenMode::Read if file.has_log() => set_up(Connection::open_with_flags(&file.path, flags)?),
        OpenMode::Read => set_up(Connection::open_with_flags(
            immutable(&file.path)?,
            flags | OpenFlags::SQLITE_OPEN_URI,
        )?),
    }
}

/// Returns the address of a file that does not change: <https://sqlite.org/uri.html>.
fn immutable(path: &Path) -> Result<String, StoreError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_str().ok_or_else(|| StoreError::Unsupported {
        what: format!("the path {}, which is not Unicode", path.display()),
    })?;
    let mut address = "file://".to_owned();
    // A drive of Windows stands behind a slash.
    address.push_str(if text.starts_with('/') { "" } else { "/" });
    for byte in text.bytes() {
        match byte {
            b'\\' if cfg!(windows) => address.push('/'),
            b'/' | b':' | b'-' | b'_' | b'.' => address.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            byte => {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    address.push_str("?immutable=1");
    Ok(address)
}
