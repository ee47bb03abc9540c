//! SQLite: one file, one writer thread that commits in groups, a few readers.
//!
//! Every table, and every key and index, begins with the tenant. The text index of each tenant is a set of tables of its
//! own: ranks come from the frequencies of words, and one tenant's must not depend on another's.

mod answers;
mod artefacts;
mod cards;
mod connection;
mod failure;
mod file;
mod forget;
mod jobs;
mod log;
mod memories;
mod memory_search;
mod messages;
mod query;
mod readers;
mod receipts;
mod schema;
mod search;
mod tenants;
mod text;
mod tool_schemas;
mod vectors;
mod writer;

mod history;
mod knowledge;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_engine::StoreError;
use rusqlite::Connection;

use self::failure::SqliteFailure;
use self::readers::Readers;
use self::text::CommonWords;
use self::vectors::VectorCache;
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
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    caches: Arc<Caches>,
    mismatches: Arc<AtomicU64>,
}

impl SqliteStore {
    /// Opens the store at `path`, and makes it if there is none.
    ///
    /// The file, and what SQLite keeps beside it, is for its owner alone. A file of an earlier version is copied beside
    /// itself and brought up to date. Errors: [`StoreError::Unsupported`] for a file of a later version,
    /// [`StoreError::Corrupt`] for one that is no store.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            let what = format!("SQLite {}, older than 3.53.2", rusqlite::version());
            return Err(StoreError::Unsupported { what });
        }
        let owned = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || file::open(&owned)).await;
        let connection = opened.map_err(|error| StoreError::Other(Box::new(error)))??;
        Ok(Self {
            path: path.to_owned(),
            writer: Writer::start(path.to_owned(), connection)?,
            readers: Readers::new(path.to_owned()),
            caches: Arc::default(),
            mismatches: Arc::default(),
        })
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks every page and index of the file; returns a line for each fault.
    ///
    /// The contents of messages have hashes of their own: see [`HistoryStore::verify`](plimsoll_engine::HistoryStore::verify).
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let lines: Vec<String> = self
            .read(|connection| {
                query::rows(connection, "PRAGMA integrity_check(100)", [], |row| Ok(row.get(0)?))
            })
            .await?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Copies the store, as it is at this moment, to a file that is not there yet.
    pub async fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        let (from, to) = (self.path.clone(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || file::copy(&from, &to)).await;
        copied.map_err(|error| StoreError::Other(Box::new(error)))?
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
        self.writer.write(act).await
    }

    /// Reads something, in one transaction.
    async fn read<T, F>(&self, act: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        let result = self.readers.read(act).await;
        if let Err(SqliteFailure::Mismatch(_)) = result {
            self.mismatches.fetch_add(1, Ordering::Relaxed);
        }
        result.map_err(StoreError::from)
    }
}
