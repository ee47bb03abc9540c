//! Errors inside of this backend, and how they map to those of the ports.

use std::time::Duration;

use plimsoll_engine::StoreError;
use rusqlite::ErrorCode;

/// The pause before another attempt after a full disk or a locked file; chosen.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Of these SQLite gives no cause.
pub(super) const CANNOT_OPEN: &str = "the file cannot be opened";
pub(super) const CANNOT_WRITE: &str = "the file cannot be written";

/// Why a request was not done.
#[derive(Debug)]
pub(super) enum SqliteFailure {
    Sql(rusqlite::Error),
    Refused(StoreError),
    /// A content is not as it was stored; the store counts these.
    Mismatch(String),
}

impl SqliteFailure {
    /// Returns whether the connection and its transaction can no longer be trusted.
    pub(super) fn is_fatal(&self) -> bool {
        let Self::Sql(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::OutOfMemory
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
            )
        )
    }
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for SqliteFailure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<SqliteFailure> for StoreError {
    fn from(failure: SqliteFailure) -> Self {
        match failure {
            SqliteFailure::Refused(error) => error,
            SqliteFailure::Mismatch(what) => Self::Corrupt { what },
            SqliteFailure::Sql(error) => of_sql(error),
        }
    }
}

fn of_sql(error: rusqlite::Error) -> StoreError {
    let unavailable =
        |why: &str| StoreError::Unavailable { why: why.to_owned(), retry_after: Some(RETRY_AFTER) };
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => unavailable("the disk is full"),
        Some(ErrorCode::SystemIoFailure) => unavailable("the disk failed to read or write"),
        Some(ErrorCode::OutOfMemory) => unavailable("there is not enough memory"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable("another process has been writing for too long")
        }
        Some(ErrorCode::CannotOpen) => unavailable(CANNOT_OPEN),
        Some(ErrorCode::ReadOnly) => unavailable(CANNOT_WRITE),
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Corrupt { what: "the store's file is damaged".to_owned() }
        }
        Some(ErrorCode::NotADatabase) => {
            StoreError::Corrupt { what: "the file is not a store, or is damaged".to_owned() }
        }
        Some(ErrorCode::TooBig) => {
            StoreError::Invalid { field: "content", why: "it is too large to be stored".to_owned() }
        }
        _ => match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => {
                StoreError::Corrupt { what: "a row of the store cannot be read".to_owned() }
            }
            error => StoreError::Other(Box::new(error)),
        },
    }
}

/// Returns the failure of a row with a value that no program wrote.
pub(super) fn unreadable(what: &str) -> SqliteFailure {
    SqliteFailure::Mismatch(format!("a row's {what} cannot be read"))
}

/// Turns a number of the port into one of SQLite.
pub(super) fn integer(field: &'static str, number: u64) -> Result<i64, StoreError> {
    i64::try_from(number)
        .map_err(|_| StoreError::Invalid { field, why: format!("{number} is too large") })
}

/// Turns a limit of the port into one of SQLite.
pub(super) fn limit(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
