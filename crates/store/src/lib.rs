//! Storage behind the engine's ports: SQLite in one file, for one person or one process; PostgreSQL for many, with the history
//! on ClickHouse where it outgrows them.

mod address;
#[cfg(feature = "clickhouse")]
mod clickhouse;
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
pub use sqlite::SqliteStore;

/// Opens the store at an address: a path, `sqlite://PATH` or `postgres://…`.
///
/// Errors: [`StoreError::Unsupported`] for an address that this program has no backend for.
pub async fn open(
    address: &StoreAddress,
) -> Result<(Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>), StoreError> {
    let address = address.expose();
    let path = match address.split_once("://") {
        Some(("sqlite", path)) => path,
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => {
            let config = PostgresConfig { url: address.to_owned(), connections: 16 };
            let store = Arc::new(PostgresStore::open(&config).await?);
            return Ok((store.clone(), store));
        }
        #[cfg(not(feature = "postgres"))]
        Some(("postgres" | "postgresql", _)) => {
            return unsupported(
                "PostgreSQL: this program was built without the feature `postgres`",
            );
        }
        Some(("clickhouse" | "http" | "https", _)) => {
            return unsupported(
                "ClickHouse as the store: it keeps the history only; give its address as the history, beside a store",
            );
        }
        // The rest of the address is left out: it may hold a password.
        Some((scheme, _)) => return unsupported(&format!("store addresses of scheme `{scheme}`")),
        None => address,
    };
    let store = Arc::new(SqliteStore::open(Path::new(path)).await?);
    Ok((store.clone(), store))
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

/// Returns whether a store is there already; of one that is reached over a network, only opening it tells.
pub fn exists(address: &StoreAddress) -> bool {
    let address = address.expose();
    match address.split_once("://") {
        Some(("sqlite", path)) => Path::new(path).exists(),
        Some(_) => true,
        None => Path::new(address).exists(),
    }
}

fn unsupported<T>(what: &str) -> Result<T, StoreError> {
    Err(StoreError::Unsupported { what: what.to_owned() })
}
