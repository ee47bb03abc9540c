//! Storage behind the engine's ports: SQLite in one file, for one person or one process; PostgreSQL for many, with the history
//! on ClickHouse where it outgrows them.

mod address;
#[cfg(feature = "clickhouse")]
mod clickhouse;
mod part;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore, StoreError};

pub use address::{StoreAddress, StoreSettings};
#[cfg(feature = "clickhouse")]
pub use clickhouse::{ClickHouseConfig, ClickHouseStore};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresConfig, PostgresStore};
pub use sqlite::{Repair, RepairedTable, SqliteStore};

/// History and knowledge of one store.
pub type StorePorts = (Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>);

/// Opens the store at an address: a path, `sqlite://PATH` or `postgres://…`.
///
/// Errors: [`StoreError::Unsupported`] for an address that this program has no backend for.
pub async fn open(address: &StoreAddress) -> Result<StorePorts, StoreError> {
    match file_of(address) {
        Some(path) => Ok(ports(SqliteStore::open(path).await?)),
        None => open_server(address).await,
    }
}

/// Opens a store that is there, for reading where it cannot be changed: a read-only medium, a file of somebody else.
///
/// Errors: as [`open`], and [`StoreError::Unsupported`] where such a file must be brought up to date first.
pub async fn open_existing(address: &StoreAddress) -> Result<StorePorts, StoreError> {
    match file_of(address) {
        Some(path) => Ok(ports(open_existing_file(path).await?)),
        None => open_server(address).await,
    }
}

fn ports(store: SqliteStore) -> StorePorts {
    let store = Arc::new(store);
    (store.clone(), store)
}

/// Returns the path of an address that names a file.
fn file_of(address: &StoreAddress) -> Option<&Path> {
    match address.expose().split_once("://") {
        Some(("sqlite", path)) => Some(Path::new(path)),
        None => Some(Path::new(address.expose())),
        Some(_) => None,
    }
}

async fn open_existing_file(path: &Path) -> Result<SqliteStore, StoreError> {
    if !path.exists() || is_empty(path) {
        return Err(StoreError::NotFound { what: format!("a store at {}", path.display()) });
    }
    match SqliteStore::open(path).await {
        // Whatever keeps it from being changed, it may be possible to read it.
        Err(error @ StoreError::Unavailable { .. }) => {
            match SqliteStore::open_to_read(path).await {
                Err(StoreError::Unavailable { .. }) => Err(error),
                opened => opened,
            }
        }
        opened => opened,
    }
}

async fn open_server(address: &StoreAddress) -> Result<StorePorts, StoreError> {
    match address.expose().split_once("://") {
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => {
            let config = PostgresConfig { url: address.expose().to_owned(), connections: 16 };
            let store = Arc::new(PostgresStore::open(&config).await?);
            Ok((store.clone(), store))
        }
        #[cfg(not(feature = "postgres"))]
        Some(("postgres" | "postgresql", _)) => {
            unsupported("PostgreSQL: this program was built without the feature `postgres`")
        }
        Some(("clickhouse" | "http" | "https", _)) => unsupported(
            "ClickHouse as the store: it keeps the history only; give its address as the history, beside a store",
        ),
        // The rest of the address is left out: it may hold a password.
        other => {
            let scheme = other.map_or("", |(scheme, _)| scheme);
            unsupported(&format!("store addresses of scheme `{scheme}`"))
        }
    }
}

/// Opens the history at an address beside a store: `clickhouse://[user[:password]@]host[:port][/database]`, or the same with
/// `http` or `https`.
///
/// Errors: [`StoreError::Unsupported`] for any other address, and where the program was built without the feature.
pub async fn open_history(address: &StoreAddress) -> Result<Arc<dyn HistoryStore>, StoreError> {
    let text = address.expose();
    match text.split_once("://") {
        #[cfg(feature = "clickhouse")]
        Some(("clickhouse" | "http" | "https", _)) => {
            let config = ClickHouseConfig { url: text.to_owned(), index_dimension: None };
            Ok(Arc::new(ClickHouseStore::open(&config).await?))
        }
        #[cfg(not(feature = "clickhouse"))]
        Some(("clickhouse" | "http" | "https", _)) => {
            unsupported("ClickHouse: this program was built without the feature `clickhouse`")
        }
        _ => unsupported(
            "a history apart from the store anywhere but on ClickHouse: its address has the form \
             clickhouse://[user[:password]@]host[:port][/database]",
        ),
    }
}

/// Opens a store that is a file and is there, as [`open_existing`] does.
///
/// Errors: [`StoreError::Unsupported`] for one that is reached over a network, which has tools of its own.
pub async fn open_file(address: &StoreAddress) -> Result<SqliteStore, StoreError> {
    match file_of(address) {
        Some(path) => open_existing_file(path).await,
        None => unsupported("this on a server: it has commands of its own for that"),
    }
}

/// Repairs a store that is a file: see [`SqliteStore::repair`].
///
/// Errors: [`StoreError::Unsupported`] for one that is reached over a network.
pub async fn repair(address: &StoreAddress) -> Result<Repair, StoreError> {
    match file_of(address) {
        Some(path) => SqliteStore::repair(path).await,
        None => unsupported("a repair on a server: it has commands of its own for that"),
    }
}

/// Returns whether a store is there already; of one that is reached over a network, only opening it tells.
///
/// An empty file is no store yet: who reads leaves it empty.
pub fn exists(address: &StoreAddress) -> bool {
    file_of(address).is_none_or(|path| path.exists() && !is_empty(path))
}

/// Returns whether the address names a file that is there and empty.
pub fn is_empty_file(address: &StoreAddress) -> bool {
    file_of(address).is_some_and(is_empty)
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

fn unsupported<T>(what: &str) -> Result<T, StoreError> {
    Err(StoreError::Unsupported { what: what.to_owned() })
}
