//! Maps errors of PostgreSQL and its pool to those of the ports.

use std::error::Error as _;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError};
use plimsoll_engine::StoreError;
use tokio_postgres::Error;

/// After a lost connection or a server that starts: a second attempt finds it soon (chosen).
const SOON: Duration = Duration::from_secs(1);
/// After a deadlock or a lock that was held: the other one is done by then (chosen).
const AT_ONCE: Duration = Duration::from_millis(50);
/// After a full disk or exhausted memory: somebody must make room (chosen).
const LATER: Duration = Duration::from_secs(10);

/// Maps an error of the client.
pub(super) fn of_client(error: Error) -> StoreError {
    let Some(database) = error.as_db_error() else {
        let is_io = error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        if error.is_closed() || is_io {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            return StoreError::Unavailable { why, retry_after: Some(SOON) };
        }
        return StoreError::Other(Box::new(error));
    };
    let message = database.message().to_owned();
    let code = database.code().code();
    let unavailable = |retry_after| StoreError::Unavailable {
        why: message.clone(),
        retry_after: Some(retry_after),
    };
    match (&code[..2], code) {
        // Serialization failure, deadlock, lock not available, a ref whose content was collected meanwhile.
        ("40", _) | (_, "55P03" | "23503") => unavailable(AT_ONCE),
        // Connection trouble, too many connections, shutting down or starting, cancelled, read-only after a failover.
        ("08", _) | (_, "53300" | "57P01" | "57P02" | "57P03" | "57014" | "25006") => {
            unavailable(SOON)
        }
        // Disk full, out of memory, an error of the disk.
        ("53", _) | (_, "58030") => unavailable(LATER),
        // Also a server without pgvector.
        (_, "0A000") => StoreError::Unsupported { what: message },
        (_, "23505") => StoreError::Conflict { what: message },
        ("54", _) => StoreError::Invalid { field: "value", why: message },
        (_, "XX001" | "XX002") => StoreError::Corrupt { what: message },
        _ => StoreError::Other(Box::new(error)),
    }
}

/// Maps an error of the pool.
pub(super) fn of_pool(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            of_client(error)
        }
        PoolError::Timeout(_) => StoreError::Unavailable {
            why: "no connection became free in time".to_owned(),
            retry_after: Some(SOON),
        },
        other => StoreError::Other(Box::new(other)),
    }
}

/// Maps an error of a commit: when the connection is lost, nobody knows whether the commit took place.
pub(super) fn of_commit(error: Error) -> StoreError {
    match of_client(error) {
        StoreError::Unavailable { why, .. } => {
            StoreError::Other(format!("unknown whether the commit was kept: {why}").into())
        }
        other => other,
    }
}
