//! Storage behind the engine's ports: SQLite in one file, for one person or one process; PostgreSQL for many.

#[cfg(feature = "clickhouse")]
mod clickhouse;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use plimsoll_engine::{HistoryStore, KnowledgeStore, StoreError};

#[cfg(feature = "clickhouse")]
pub use clickhouse::{ClickHouseConfig, ClickHouseStore};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresConfig, PostgresStore};
pub use sqlite::SqliteStore;

/// Opens the store that `url_or_path` names: a path, `sqlite://PATH` or `postgres://…`.
///
/// Errors: [`StoreError::Unsupported`] for an address that this program has no backend for.
pub async fn open(
    url_or_path: &str,
) -> Result<(Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>), StoreError> {
    let unsupported = |what: &str| Err(StoreError::Unsupported { what: what.to_owned() });
    let path = match url_or_path.split_once("://") {
        Some(("sqlite", path)) => path,
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => {
            let config = PostgresConfig { url: url_or_path.to_owned(), connections: 16 };
            let store = Arc::new(PostgresStore::open(&config).await?);
            return Ok((store.clone(), store));
        }
        #[cfg(not(feature = "postgres"))]
        Some(("postgres" | "postgresql", _)) => {
            return unsupported("a postgres:// address needs the feature `postgres`");
        }
        Some(("clickhouse" | "http" | "https", _)) => {
            return unsupported("a ClickHouse address needs the feature `clickhouse`");
        }
        // The rest of the address is left out: it may hold a password.
        Some((scheme, _)) => return unsupported(&format!("store addresses of scheme `{scheme}`")),
        None => url_or_path,
    };
    let store = Arc::new(SqliteStore::open(Path::new(path)).await?);
    Ok((store.clone(), store))
}
