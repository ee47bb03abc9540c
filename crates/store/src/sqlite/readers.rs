//! The readers: a few connections on the blocking threads.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::failure::SqliteFailure;
use super::place::StoreFile;

/// Readers at once; chosen: a scan of vectors is bound by memory, and more would only wait for it.
const READERS: usize = 4;

/// Connections that read, opened when first needed.
#[derive(Debug)]
pub(super) struct Readers {
    file: StoreFile,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: StoreFile) -> Self {
        Self { file, permits: Arc::new(Semaphore::new(READERS)) }
    }

    /// Has `act` done within one reading transaction, on a thread that may wait.
    pub(super) async fn read<T, F>(&self, act: F) -> Result<T, SqliteFailure>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        let other = |error: Box<dyn std::error::Error + Send + Sync>| StoreError::Other(error);
        let permit =
            self.permits.clone().acquire_owned().await.map_err(|error| other(error.into()))?;
        let file = self.file.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let _using = file.others.using();
            let waiting = file.others.take();
            file.check()?;
            let connection = match waiting {
                Some(connection) => connection,
                None => connection::open_reader(&file)?,
            };
            let (result, is_fit) = in_transaction(&connection, act);
            if is_fit {
                file.others.give_back(connection);
            }
            result
        });
        task.await.map_err(|error| other(error.into()))?
    }

    /// Has `act` read a few rows by their keys, on this thread: to hand that to another takes longer than it does itself.
    ///
    /// If it would have to wait, or fails, [`Readers::read`] does it again.
    pub(super) async fn look_up<T, F>(&self, act: F) -> Result<T, SqliteFailure>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        match self.at_once(&act) {
            Some(found) => Ok(found),
            None => self.read(act).await,
        }
    }

    fn at_once<T>(&self, act: impl Fn(&Connection) -> Result<T, SqliteFailure>) -> Option<T> {
        let _permit = self.permits.try_acquire().ok()?;
        let others = &self.file.others;
        let _using = others.try_using()?;
        let connection = others.take()?;
        self.file.check().ok()?;
        connection.busy_timeout(Duration::ZERO).ok()?;
        let (result, is_fit) = in_transaction(&connection, act);
        connection.busy_timeout(connection::BUSY_TIMEOUT).ok()?;
        if is_fit {
            others.give_back(connection);
        }
        result.ok()
    }
}

/// Has `act` done in a transaction; returns whether the connection can be used again.
fn in_transaction<T>(
    connection: &Connection,
    act: impl FnOnce(&Connection) -> Result<T, SqliteFailure>,
) -> (Result<T, SqliteFailure>, bool) {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    if let Err(error) = run("BEGIN") {
        return (Err(error.into()), false);
    }
    let result = act(connection);
    let is_fit = run("COMMIT").is_ok() && !result.as_ref().is_err_and(SqliteFailure::is_fatal);
    (result, is_fit)
}
