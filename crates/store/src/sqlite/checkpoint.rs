//! Checkpoints: pages go from the log to the database on a thread of their own, while the writer commits.
//!
//! Inside a commit, one took ten milliseconds, and every turn that came meanwhile waited for it. What is committed meanwhile
//! stays in the log, which begins anew only when all of it was copied: that short rest is the writer's.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use plimsoll_engine::StoreError;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode, MAIN_DB};

use super::connection;
use super::failure::SqliteFailure;
use super::place::StoreFile;

/// Pages of the log after which a checkpoint begins (measured: with 4,000, one copies a page once that was committed six times,
/// but syncs so much at once that commits wait; 500 took as much processor time, and one turn in a hundred was 2 ms faster).
const BEGIN: c_int = 500;
/// Further pages after which the next one begins, where a reader of an older state kept the log from beginning anew (chosen).
const AGAIN: c_int = 1_000;
/// Pages at which the writer makes the checkpoint itself, and so waits for it (chosen: 64 MB, which the log keeps at most).
const INLINE: c_int = 16_000;

/// Checkpoints in a row. SQLite syncs the database only if nothing is committed while it copies, which is likely for a short one
/// that finds what was committed during a long one (chosen).
const IN_A_ROW: usize = 3;

/// Whoever waits for an answer goes first (chosen: a tenth of the weight of the others). On Linux alone a thread has its own.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The handle of the thread.
pub(super) struct Checkpoints {
    log: LogLength,
    thread: JoinHandle<()>,
}

/// What the writer and the thread tell each other of the log's length.
#[derive(Clone)]
struct LogLength {
    /// Tells the thread that the log is long.
    sender: SyncSender<()>,
    /// The pages of the log that the thread has copied since the writer last looked.
    copied: Arc<AtomicI32>,
}

impl Checkpoints {
    pub(super) fn start(file: StoreFile) -> Result<Self, StoreError> {
        let (log, receiver) = LogLength::new();
        let copied = log.copied.clone();
        let thread = std::thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || run(&file, &receiver, &copied))
            .map_err(|error| StoreError::Other(Box::new(error)))?;
        Ok(Self { log, thread })
    }

    /// Lets the commits of a connection begin checkpoints on the thread.
    pub(super) fn follow(&self, connection: &mut Connection) -> Result<(), SqliteFailure> {
        self.log.follow(connection)
    }

    /// Ends the thread. The connection that commits closes behind it, and so is the one that removes the log.
    pub(super) fn end(self, connection: Option<&mut Connection>) {
        if let Some(connection) = connection {
            // The hook holds the other end of the channel.
            let _ = connection.wal_hook(None::<fn(&mut Wal, c_int) -> rusqlite::Result<()>>);
        }
        drop(self.log);
        // The thread's panic was reported by its hook; there is nobody left to tell.
        let _panicked = self.thread.join();
    }
}

impl LogLength {
    fn new() -> (Self, Receiver<()>) {
        // To hear it once more while at work is enough.
        let (sender, receiver) = sync_channel(1);
        (Self { sender, copied: Arc::default() }, receiver)
    }

    fn follow(&self, connection: &mut Connection) -> Result<(), SqliteFailure> {
        let Self { sender, copied } = self.clone();
        let mut next = BEGIN;
        connection.wal_hook(Some(move |log: &mut Wal, pages| {
            if pages < BEGIN {
                next = BEGIN;
            }
            let copied = copied.swap(0, Ordering::Relaxed);
            if pages >= INLINE || (BEGIN..pages).contains(&copied) {
                // Only what was committed meanwhile is left. If it fails, the log stays, and a later commit tries again.
                let _ = log.checkpoint();
            } else if pages >= next {
                next = pages + AGAIN;
                let _is_at_work = sender.try_send(());
            }
            Ok(())
        }))?;
        Ok(())
    }
}

fn run(file: &StoreFile, receiver: &Receiver<()>, copied: &AtomicI32) {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
    while receiver.recv().is_ok() {
        let _using = file.others.using();
        let mut connection = file.others.checkpoints();
        match checkpoints(file, &mut connection) {
            Ok(pages) => copied.store(pages, Ordering::Relaxed),
            // Nobody hears of it: the log stays, and a later commit begins another one.
            Err(_) => *connection = None,
        }
    }
    *file.others.checkpoints() = None;
}

fn checkpoints(file: &StoreFile, kept: &mut Option<Connection>) -> Result<c_int, SqliteFailure> {
    file.check()?;
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(connection::open(&file.path)?),
    };
    (0..IN_A_ROW).try_fold(0, |_, _| Ok(checkpoint(connection)?.1))
}

/// Copies the whole log; fails if a reader of an older state, or another process, is in the way for too long.
pub(super) fn copy_all(connection: &Connection) -> Result<(), SqliteFailure> {
    let (pages, copied) = connection.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::FULL)?;
    if pages == copied {
        return Ok(());
    }
    let why = format!("only {copied} of {pages} pages of the log could be copied");
    Err(StoreError::Unavailable { why, retry_after: None }.into())
}

/// Copies the whole log and empties it; returns false if somebody who reads or writes was in the way for too long.
pub(super) fn clear(connection: &Connection) -> Result<bool, SqliteFailure> {
    match connection.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Copies what no reader of an older state needs; returns the pages of the log, and how many of them are copied.
fn checkpoint(connection: &Connection) -> rusqlite::Result<(c_int, c_int)> {
    connection.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::place::OpenMode;

    /// Bytes of one insertion, and the pages that they take at least.
    const BYTES: i64 = 1 << 20;
    const PAGES: c_int = 256;

    fn opened() -> (TempDir, Connection) {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = open(&folder);
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (bytes BLOB)")
            .expect("a table");
        (folder, connection)
    }

    fn insert(connection: &Connection, bytes: i64) {
        connection.execute("INSERT INTO numbers VALUES (zeroblob(?1))", [bytes]).expect("inserted");
    }

    fn path(folder: &TempDir) -> PathBuf {
        folder.path().join("log.db")
    }

    fn open(folder: &TempDir) -> Connection {
        Connection::open(path(folder)).expect("a database")
    }

    fn length(folder: &TempDir) -> u64 {
        std::fs::metadata(path(folder)).expect("a file").len()
    }

    #[test]
    fn the_writer_asks_for_a_checkpoint_copies_the_rest_and_the_log_begins_anew() {
        let (folder, mut connection) = opened();
        let (log, receiver) = LogLength::new();
        log.follow(&mut connection).expect("a hook");
        let before = length(&folder);
        while receiver.try_recv().is_err() {
            insert(&connection, BYTES);
        }
        assert_eq!(length(&folder), before, "the writer itself copied nothing");
        insert(&connection, BYTES);
        assert!(receiver.try_recv().is_err(), "it asks once");
        let other = connection::open(&path(&folder)).expect("a database");
        let (pages, copied) = checkpoint(&other).expect("a checkpoint");
        assert!(pages > BEGIN && copied == pages);
        insert(&connection, 1);
        log.copied.store(copied, Ordering::Relaxed);
        insert(&connection, 1);
        insert(&connection, 1);
        let (pages, _) = checkpoint(&other).expect("a checkpoint");
        assert!(pages < 10, "{pages} pages in a log that should have begun anew");
    }

    #[test]
    fn a_reader_of_an_older_state_keeps_the_log_only_until_it_is_done() {
        let (folder, mut connection) = opened();
        let file = StoreFile::new(&path(&folder), OpenMode::Write);
        let checkpoints = Checkpoints::start(file).expect("a thread");
        checkpoints.follow(&mut connection).expect("a hook");
        insert(&connection, 1);
        let reader = open(&folder);
        let count = "SELECT count(*) FROM numbers";
        let counted = |reader: &Connection| {
            reader.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a number")
        };
        reader.execute_batch("BEGIN").expect("begun");
        assert_eq!(counted(&reader), 1);
        for _ in 0..=BEGIN / PAGES {
            insert(&connection, BYTES);
        }
        assert_eq!(counted(&reader), 1, "it reads what it began with");
        reader.execute_batch("COMMIT").expect("ended");
        let after = i64::from(BEGIN / PAGES) + 2;
        assert_eq!(counted(&reader), after);
        checkpoints.end(Some(&mut connection));
        assert_eq!(checkpoint(&connection).map(|(pages, copied)| pages - copied), Ok(0));
    }

    #[test]
    fn a_log_that_no_thread_copies_is_copied_by_the_writer() {
        let (folder, mut connection) = opened();
        let (log, _receiver) = LogLength::new();
        log.follow(&mut connection).expect("a hook");
        for _ in 0..=INLINE / PAGES {
            insert(&connection, BYTES);
        }
        assert!(length(&folder) > u64::from(INLINE.unsigned_abs()) * 4096 * 9 / 10);
    }
}
