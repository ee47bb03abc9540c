//! History and knowledge on PostgreSQL with pgvector: for many gateways at once.
//!
//! No state is held here but the pool. What a method returned was committed: it survives the death of the server, and the loss
//! of power where the server's `fsync` is on.

mod answers;
mod artefacts;
mod branches;
mod cards;
mod failure;
mod forget;
mod history;
mod jobs;
mod knowledge;
mod log;
mod memories;
mod messages;
mod migrations;
mod search;
mod text;
mod tool_schemas;
mod words;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{
    GenericClient, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use plimsoll_engine::StoreError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use failure::{of_client, of_pool};

/// How long a connection may take to be made, or to become free (chosen).
const PATIENCE: Duration = Duration::from_secs(5);

/// Plans are made for the values at hand, since a tenant of ten records and one of a million want different ones; and a commit
/// returns when it is durable, even where the server's default is not to wait.
const SET_UP: &str = "SET plan_cache_mode = force_custom_plan; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// Where the database is, and how much of it may be used.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`, with the options of libpq.
    pub url: String,
    /// The most connections to hold.
    pub connections: usize,
}

impl fmt::Debug for PostgresConfig {
    // The URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// A store on PostgreSQL.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Pool,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, and brings the schema to this program's version.
    ///
    /// Errors: [`StoreError::Invalid`] for a URL that is none, [`StoreError::Unavailable`] if nobody answers,
    /// [`StoreError::Unsupported`] if the schema is newer.
    pub async fn open(config: &PostgresConfig) -> Result<Self, StoreError> {
        // The parser's own error would repeat parts of the URL, and with it the password.
        let mut target = Config::from_str(&config.url).map_err(|_| StoreError::Invalid {
            field: "url",
            why: "it is not of the form postgres://user:password@host:port/database".to_owned(),
        })?;
        if target.get_connect_timeout().is_none() {
            target.connect_timeout(PATIENCE);
        }
        if target.get_application_name().is_none() {
            target.application_name("plimsoll");
        }
        // Verified: each connection is asked before it is used. A round trip is cheap beside what a lost one costs: the client
        // notices only after a statement failed on it.
        let manager = Manager::from_config(
            target,
            NoTls,
            ManagerConfig { recycling_method: RecyclingMethod::Verified },
        );
        let set_up = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
            Box::pin(async move { client.batch_execute(SET_UP).await.map_err(HookError::Backend) })
        });
        let pool = Pool::builder(manager)
            .max_size(config.connections.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .post_create(set_up)
            .build()
            .map_err(|error| StoreError::Other(Box::new(error)))?;
        let store = Self { pool };
        migrations::run(&mut store.client().await?).await?;
        Ok(store)
    }

    /// Returns a connection; one that was lost is replaced.
    async fn client(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(of_pool)
    }
}

type SqlValues<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Runs a statement with its values bound and returns its rows.
async fn rows<C: GenericClient>(
    client: &C,
    sql: &str,
    values: SqlValues<'_>,
) -> Result<Vec<Row>, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(of_client)?;
    client.query(&statement, values).await.map_err(of_client)
}

/// Runs a statement with its values bound and returns its row, if there is one.
async fn row<C: GenericClient>(
    client: &C,
    sql: &str,
    values: SqlValues<'_>,
) -> Result<Option<Row>, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(of_client)?;
    client.query_opt(&statement, values).await.map_err(of_client)
}

/// Runs a statement with its values bound and returns how many rows it changed.
async fn change<C: GenericClient>(
    client: &C,
    sql: &str,
    values: SqlValues<'_>,
) -> Result<u64, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(of_client)?;
    client.execute(&statement, values).await.map_err(of_client)
}
