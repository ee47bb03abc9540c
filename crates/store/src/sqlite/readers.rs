//! The readers: a few connections on the blocking threads.

use std::sync::{Arc, Mutex, PoisonError};

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
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: StoreFile) -> Self {
        Self { file, idle: Arc::default(), permits: Arc::new(Semaphore::new(READERS)) }
    }

    /// Has `act` done within one reading transaction.
    pub(super) async fn read<T, F>(&self, act: F) -> Result<T, SqliteFailure>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        let other = |error: Box<dyn std::error::Error + Send + Sync>| StoreError::Other(error);
        let permit =
            self.permits.clone().acquire_owned().await.map_err(|error| other(error.into()))?;
        let (file, idle) = (self.file.clone(), self.idle.clone());
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            file.check()?;
            let connection = match waiting {
                Some(connection) => connection,
                None => connection::open_reader(&file)?,
            };
            connection.prepare_cached("BEGIN")?.execute([])?;
            let result = act(&connection);
            let ended = connection.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
            let fit = ended.is_ok() && !result.as_ref().is_err_and(SqliteFailure::is_fatal);
            if fit {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            result
        });
        task.await.map_err(|error| other(error.into()))?
    }
}
