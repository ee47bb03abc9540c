//! SQLite: one file, one writer thread that commits in groups, a few readers.
//!
//! Every table, and every key and index, begins with the tenant. The text index of each tenant is a set of tables of its
//! own: ranks come from the frequencies of words, and one tenant's must not depend on another's.

mod answers;
mod artefacts;
mod branches;
mod cards;
mod checkpoint;
mod connection;
mod failure;
mod file;
mod forget;
mod jobs;
mod log;
mod log_file;
mod memories;
mod memory_search;
mod messages;
mod others;
mod place;
mod query;
mod readers;
mod receipts;
mod repair;
mod schema;
mod search;
mod tenants;
mod text;
mod tool_schemas;
mod vectors;
mod verify;
mod word_index;
mod writer;

mod history;
mod knowledge;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_engine::{Forgotten, StoreError};
use rusqlite::Connection;

use self::failure::SqliteFailure;
use self::log_file::LogState;
use self::place::{OpenMode, StoreFile};
use self::readers::Readers;
pub use self::repair::{Repair, RepairedTable};
use self::text::CommonWords;
use self::vectors::VectorCache;
use self::verify::HashedTable;
use self::writer::Writer;

/// The oldest SQLite that keeps what it was given: below it FTS5 can corrupt memory, and WAL can lose commits.
const OLDEST_SQLITE: i32 = 3_053_002;

/// Caches of the file's contents between searches, by tenant; all of it can be read again.
#[derive(Debug, Default)]
struct Caches {
    vectors: VectorCache,
    common: CommonWords,
}

/// History and knowledge in a file.
///
/// A method returns when its change is on the disk: it survives the loss of power. Changes that are asked for while a
/// commit runs are committed together.
#[derive(Debug)]
pub struct SqliteStore {
    file: StoreFile,
    /// None where the file can only be read.
    writer: Option<Writer>,
    readers: Readers,
    caches: Arc<Caches>,
    mismatches: Arc<AtomicU64>,
}

impl SqliteStore {
    /// Opens the store at `path`, and makes it if there is none.
    ///
    /// The file, and what SQLite keeps beside it, is for its owner alone. A file of an earlier version is copied beside
    /// itself and brought up to date. Errors: [`StoreError::Unsupported`] for a file of a later version,
    /// [`StoreError::Corrupt`] for one that is no store. A file that is deleted or replaced while it is open is
    /// [`StoreError::Unavailable`] from then on, until it is back.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        check_library()?;
        let owned = path.to_owned();
        let opened = blocking(move || file::open(&owned)).await;
        let connection = opened.map_err(|error| place::named(path, error))?;
        let file = StoreFile::new(path, OpenMode::Write);
        let writer = Writer::start(file.clone(), connection)?;
        Ok(Self::of(file, Some(writer)))
    }

    /// Opens a store that is there for reading, also where nothing may be written; a change is [`StoreError::Unsupported`].
    ///
    /// Errors: as [`SqliteStore::open`], and [`StoreError::Unsupported`] for an earlier version, or a log that cannot be read there.
    pub async fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        check_library()?;
        let owned = path.to_owned();
        let opened = blocking(move || file::open_to_read(&owned)).await;
        let file = opened.map_err(|error| place::named(path, error))?;
        Ok(Self::of(file, None))
    }

    fn of(file: StoreFile, writer: Option<Writer>) -> Self {
        Self {
            readers: Readers::new(file.clone()),
            file,
            writer,
            caches: Arc::default(),
            mismatches: Arc::default(),
        }
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Checks every page and index of the file, and every row that has a hash; returns a line for each fault.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let lines: Vec<String> =
                query::rows(connection, "PRAGMA integrity_check(100)", [], |row| Ok(row.get(0)?))?;
            let mut faults: Vec<String> = lines.into_iter().filter(|line| line != "ok").collect();
            for table in HashedTable::ALL {
                match verify::wrong(connection, table) {
                    Ok(wrong) => {
                        let mut tenants: BTreeMap<String, usize> = BTreeMap::new();
                        for (tenant, _) in wrong {
                            *tenants.entry(tenant).or_default() += 1;
                        }
                        faults.extend(tenants.into_iter().map(|(tenant, count)| {
                            let plural = if count == 1 { "" } else { "s" };
                            let noun = table.noun();
                            format!("tenant {tenant}: {count} {noun}{plural} no longer as stored")
                        }));
                    }
                    Err(failure) => {
                        let error = StoreError::from(failure);
                        faults.push(format!("{}s cannot be read: {error}", table.noun()));
                    }
                }
            }
            match verify::wrong_tools(connection) {
                Ok(wrong) => faults.extend(wrong.into_iter().map(|(tenant, server, tool)| {
                    format!(
                        "tenant {tenant}: the schema of {tool} of {server} is no longer as stored"
                    )
                })),
                Err(failure) => {
                    let error = StoreError::from(failure);
                    faults.push(format!("tool schemas cannot be read: {error}"));
                }
            }
            Ok(faults)
        })
        .await
    }

    /// Makes a new file of all that can still be read of the one at `path` and is as it was stored, and puts it in its place.
    ///
    /// The damaged file is kept beside it. Errors: [`StoreError::Unavailable`] while another process uses it,
    /// [`StoreError::Unsupported`] where the file of an earlier repair still lies beside it, or for another version.
    pub async fn repair(path: &Path) -> Result<Repair, StoreError> {
        check_library()?;
        let owned = path.to_owned();
        let repaired = blocking(move || repair::repair(&owned)).await;
        repaired.map_err(|error| place::named(path, error))
    }

    /// Copies the store, as it is at this moment, to a file that is not there yet.
    pub async fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        let (from, to) = (self.file.clone(), to.to_owned());
        let copied = blocking(move || file::copy(&from, &to)).await;
        copied.map_err(|error| self.file.named(error))
    }

    /// Returns how many contents were read since the store was opened that no longer have their hash.
    pub fn mismatches(&self) -> u64 {
        self.mismatches.load(Ordering::Relaxed)
    }

    /// Changes something, in one transaction; returns when it is durable. `act` may be called again.
    async fn write<T, F>(&self, act: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        let Some(writer) = &self.writer else {
            let what = format!("changes of {}, which can only be read", self.file.path.display());
            return Err(StoreError::Unsupported { what });
        };
        writer.write(act).await.map_err(|error| self.file.named(error))
    }

    /// Forgets something. Its text is overwritten in the database, but stays in the log until that is emptied.
    async fn forget_with<F>(&self, act: F) -> Result<Forgotten, StoreError>
    where
        F: Fn(&Connection) -> Result<Forgotten, SqliteFailure> + Send + 'static,
    {
        let forgotten = self.write(act).await?;
        if forgotten != Forgotten::default() {
            // The rows are gone in any case; a caller that must know whether a copy is left asks for a purge.
            let _is_empty = self.clear_log().await;
        }
        Ok(forgotten)
    }

    /// Empties the log; returns whether nobody was in the way.
    async fn clear_log(&self) -> Result<bool, StoreError> {
        let file = self.file.clone();
        let cleared = blocking(move || {
            let _using = file.others.using();
            file.check()?;
            Ok(checkpoint::clear(&connection::open(&file.path)?)?)
        });
        cleared.await.map_err(|error| self.file.named(error))
    }

    /// Reads something, in one transaction.
    async fn read<T, F>(&self, act: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        self.take_up_log().await;
        self.outcome(self.readers.read(act).await)
    }

    /// Reads a few rows by their keys, in one transaction; `act` may be called again.
    async fn look_up<T, F>(&self, act: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        self.take_up_log().await;
        self.outcome(self.readers.look_up(act).await)
    }

    /// Has the writer begin another log if the one that was opened is gone; a reader alone would begin an empty one.
    async fn take_up_log(&self) {
        let is_lost = || self.file.log.state(&self.file.path) != LogState::Ours;
        if let Some(writer) = &self.writer
            && is_lost()
        {
            // If it fails, the reader is refused for the same reason.
            let _refused = writer.write(|_| Ok(())).await;
        }
    }

    fn outcome<T>(&self, result: Result<T, SqliteFailure>) -> Result<T, StoreError> {
        if let Err(SqliteFailure::Mismatch(_)) = result {
            self.mismatches.fetch_add(1, Ordering::Relaxed);
        }
        result.map_err(|failure| self.file.named(failure.into()))
    }
}

fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() >= OLDEST_SQLITE {
        return Ok(());
    }
    let what = format!("SQLite {}, older than 3.53.2", rusqlite::version());
    Err(StoreError::Unsupported { what })
}

/// Runs work with a file on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Other(Box::new(error)))?
}
