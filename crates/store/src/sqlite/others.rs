//! The connections beside the writer's: kept here, so that the writer can close them all.
//!
//! While one connection of a process is open, SQLite shares its view of the log's index with every other one, also with those
//! that are opened later. To begin with another log, all must be closed first.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rusqlite::Connection;

#[derive(Debug, Default)]
pub(super) struct OtherConnections {
    in_use: RwLock<()>,
    idle: Mutex<Vec<Connection>>,
    checkpoints: Mutex<Option<Connection>>,
}

/// All connections beside the writer's, none of which is in use.
#[derive(Debug)]
pub(super) struct Alone<'a> {
    _in_use: RwLockWriteGuard<'a, ()>,
    pub(super) idle: MutexGuard<'a, Vec<Connection>>,
    pub(super) checkpoints: MutexGuard<'a, Option<Connection>>,
}

impl OtherConnections {
    /// Must be held while a connection is taken, opened, used and given back.
    pub(super) fn using(&self) -> RwLockReadGuard<'_, ()> {
        self.in_use.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::using`], or `None` if it would have to wait.
    pub(super) fn try_using(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.in_use.try_read().ok()
    }

    /// Waits until none is in use.
    pub(super) fn alone(&self) -> Alone<'_> {
        let in_use = self.in_use.write().unwrap_or_else(PoisonError::into_inner);
        Alone { _in_use: in_use, idle: self.idle(), checkpoints: self.checkpoints() }
    }

    pub(super) fn take(&self) -> Option<Connection> {
        self.idle().pop()
    }

    pub(super) fn give_back(&self, connection: Connection) {
        self.idle().push(connection);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection that makes checkpoints.
    pub(super) fn checkpoints(&self) -> MutexGuard<'_, Option<Connection>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alone<'_> {
    /// Returns one of them.
    pub(super) fn any(&self) -> Option<&Connection> {
        self.idle.last().or(self.checkpoints.as_ref())
    }

    pub(super) fn close(&mut self) {
        self.idle.clear();
        *self.checkpoints = None;
    }
}
