//! A database of its own for a test, dropped when the test ends.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_store::{PostgresConfig, PostgresStore};
use tokio_postgres::{Client, Config, NoTls};

/// Where the server is; read in this one place.
pub(super) fn server() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the one place of the tests that reads it")]
    let url = std::env::var("PLIMSOLL_TEST_POSTGRES").ok();
    if url.is_none() {
        #[expect(clippy::print_stderr, reason = "who runs the tests should know")]
        {
            eprintln!("skipped: PLIMSOLL_TEST_POSTGRES has no URL of a PostgreSQL server");
        }
    }
    url
}

/// Connects to `database`, beside any store.
pub(super) async fn connect(server: &str, database: Option<&str>) -> Client {
    let mut config = Config::from_str(server).expect("PLIMSOLL_TEST_POSTGRES is a URL");
    if let Some(database) = database {
        config.dbname(database);
    }
    let (client, connection) = config.connect(NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}

/// A database that goes with its owner.
pub(super) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes a database, if there is a server.
    pub(super) async fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = server()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll_test_{}_{number}", std::process::id());
        let client = connect(&server, None).await;
        // One statement a call: a database is not made in a transaction. The name is of letters, digits and `_`.
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await.expect("dropped");
        let make = format!("CREATE DATABASE {name} TEMPLATE template0");
        client.batch_execute(&make).await.expect("a database");
        Some(Self { server, name })
    }

    /// Returns the URL of the database.
    pub(super) fn url(&self) -> String {
        let (before, _) = self.server.rsplit_once('/').expect("the URL names a database");
        format!("{before}/{}", self.name)
    }

    /// Opens a store on it.
    pub(super) async fn store(&self) -> Arc<PostgresStore> {
        let config = PostgresConfig { url: self.url(), connections: 4 };
        Arc::new(PostgresStore::open(&config).await.expect("a store"))
    }

    /// Connects beside the store.
    pub(super) async fn client(&self) -> Client {
        connect(&self.server, Some(&self.name)).await
    }
}

impl Drop for Database {
    // On a thread with a runtime of its own: a drop cannot wait on the test's.
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                connect(&server, None).await.batch_execute(&drop).await.expect("dropped");
            });
        });
        assert!(thread.join().is_ok() || std::thread::panicking(), "the database was not dropped");
    }
}
