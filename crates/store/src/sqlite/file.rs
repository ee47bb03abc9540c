//! The file: made for its owner alone, recognised, copied before it is changed.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_engine::StoreError;
use rusqlite::Connection;

use super::connection;
use super::failure::SqliteFailure;
use super::place::{OpenMode, StoreFile, beside, log_of};
use super::schema::{self, APPLICATION_ID, MIGRATIONS};

/// Opens the store at `path` for writing; makes it, or brings it up to date.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    prepare(path)?;
    let mut connection = connection::open(path)?;
    let newest = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let found = version(&connection, path)?;
    if found > newest {
        let what = format!(
            "{} has version {found} of the store and this program knows up to {newest}; a newer program wrote it",
            path.display()
        );
        return Err(StoreError::Unsupported { what });
    }
    wal(&connection)?;
    if found > 0 && found < newest {
        back_up(&connection, path, found)?;
    }
    schema::migrate(&mut connection)?;
    connection::restrict(&mut connection)?;
    Ok(connection)
}

fn wal(connection: &Connection) -> Result<(), SqliteFailure> {
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(StoreError::Unsupported { what: "a write-ahead log on this file system".to_owned() }.into())
}

/// Returns the version of a store, 0 for an empty file.
fn version(connection: &Connection, path: &Path) -> Result<i32, StoreError> {
    let read = || -> Result<(i32, i32, i64), SqliteFailure> {
        let number = |sql| connection.query_row(sql, [], |row| row.get(0));
        let tables = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        Ok((number("PRAGMA application_id")?, number("PRAGMA user_version")?, tables))
    };
    let (application, version, tables) = read().map_err(|failure| named(path, failure))?;
    if application == APPLICATION_ID || (application == 0 && version == 0 && tables == 0) {
        return Ok(version);
    }
    let what = format!("{} is a database, but not a store of Plimsoll", path.display());
    Err(StoreError::Corrupt { what })
}

fn named(path: &Path, failure: SqliteFailure) -> StoreError {
    match StoreError::from(failure) {
        StoreError::Corrupt { .. } => StoreError::Corrupt {
            what: format!("{} is not a store, or is damaged beyond reading", path.display()),
        },
        error => error,
    }
}

/// Checks the store at `path` for reading: nothing is written, so it must be up to date.
pub(super) fn open_to_read(path: &Path) -> Result<StoreFile, StoreError> {
    regular(path).map_err(|error| of_io(path, &error))?;
    let file = StoreFile::new(path, OpenMode::Read);
    let connection = connection::open_reader(&file).map_err(|failure| named(path, failure))?;
    match require_newest(&connection, path) {
        Err(StoreError::Unavailable { .. }) if file.has_log() => {
            let what = format!(
                "{}: the log beside it has changes, and cannot be read where nothing may be written; \
                 copy both to another folder",
                path.display()
            );
            Err(StoreError::Unsupported { what })
        }
        checked => checked.map(|()| file),
    }
}

/// Refuses a file that is not of this program's version, where it cannot be brought up to date.
pub(super) fn require_newest(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let newest = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let found = version(connection, path)?;
    if found == newest {
        return Ok(());
    }
    let what = format!(
        "{} has version {found} of the store, this program reads {newest}, and the file cannot be changed as it is; \
         a copy in a folder that can be written is brought up to date when it is opened",
        path.display()
    );
    Err(StoreError::Unsupported { what })
}

/// Makes an empty store at a path where nothing is.
pub(super) fn create_store(path: &Path) -> Result<Connection, StoreError> {
    create(path).map_err(|error| of_io(path, &error))?;
    let mut connection = connection::open(path)?;
    wal(&connection)?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// Copies the store beside itself: `NAME.v1.backup`. One that is there came from the same version and is replaced.
fn back_up(connection: &Connection, path: &Path, version: i32) -> Result<(), StoreError> {
    let whole = beside(path, &format!(".v{version}.backup"));
    let part = beside(&whole, ".part");
    let io = |error| of_io(&part, &error);
    if part.exists() {
        std::fs::remove_file(&part).map_err(io)?;
    }
    create(&part).map_err(io)?;
    let target = part.to_str().ok_or_else(|| StoreError::Unsupported {
        what: format!("the path {}, which is not Unicode", part.display()),
    })?;
    connection.execute("VACUUM INTO ?1", [target]).map_err(SqliteFailure::from)?;
    std::fs::File::open(&part).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&part, &whole).map_err(io)
}

/// Copies the store to a new file, which is for its owner alone.
pub(super) fn copy(from: &StoreFile, to: &Path) -> Result<(), StoreError> {
    create(to).map_err(|error| of_io(to, &error))?;
    let _using = from.others.using();
    let connection = connection::open_file(from)?;
    let target = to.to_str().ok_or_else(|| StoreError::Unsupported {
        what: format!("the path {}, which is not Unicode", to.display()),
    })?;
    connection.execute("VACUUM INTO ?1", [target]).map_err(SqliteFailure::from)?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(|error| of_io(to, &error))
}

/// Makes folder and file where they are missing.
fn prepare(path: &Path) -> Result<(), StoreError> {
    let io = |error| of_io(path, &error);
    make_folder(path).map_err(io)?;
    // In this order: another process that begins the file gives it its name before it writes a log.
    let log = log_of(path);
    let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    if !path.exists() {
        if has_log {
            let what = format!(
                "a new store at {}, beside the log {} of one that is gone: it would be taken for that of the new one; \
                 put the store back, or move its log away",
                path.display(),
                log.display()
            );
            return Err(StoreError::Unsupported { what });
        }
        if begin(path)? {
            return Ok(());
        }
    }
    match create(path) {
        // A file that is there keeps its mode: it may be no store, and its owner may have opened it to others.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => regular(path).map_err(io),
        result => result.map_err(io),
    }
}

/// Makes a whole store beside `path` and gives it that name, unless another process was faster; false where that cannot be done.
///
/// Processes that begin the same file at once disturb each other while it changes to a write-ahead log.
fn begin(path: &Path) -> Result<bool, StoreError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let new = beside(path, &format!(".new-{}-{number}", std::process::id()));
    let made = create_store(&new).and_then(|connection| settle(&connection));
    let named = made.is_ok().then(|| std::fs::hard_link(&new, path));
    // The copy without a name in use is of no worth to anybody.
    let _ = std::fs::remove_file(&new);
    made?;
    Ok(match named {
        Some(Ok(())) => true,
        Some(Err(error)) => error.kind() == io::ErrorKind::AlreadyExists,
        None => false,
    })
}

/// Writes the log to the file itself, and syncs it.
pub(super) fn settle(connection: &Connection) -> Result<(), StoreError> {
    let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    settled.map_err(|error| SqliteFailure::from(error).into())
}

fn make_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.exists()
    {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    Ok(())
}

/// Refuses a device, a pipe and a folder before anything is done to it.
pub(super) fn regular(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"))
}

fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

pub(super) fn of_io(path: &Path, error: &io::Error) -> StoreError {
    let why = format!("{}: {error}", path.display());
    StoreError::Unavailable { why, retry_after: None }
}
