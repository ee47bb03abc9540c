//! SQL on SQLite: one database for all calls, a file or in memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use plimsoll_core::text::{Limit, head};
use plimsoll_engine::ToolAnswer;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, OpenFlags};
use serde_json::{Value, json};

use super::StarterLimits;

/// Steps of SQLite's machine between two looks at the time (chosen: about a millisecond).
const STEPS: i32 = 10_000;

/// A database that is opened at the first call.
#[derive(Debug, Clone)]
pub(super) struct SqlDatabase {
    path: Option<PathBuf>,
    writes: bool,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl SqlDatabase {
    pub(super) fn new(path: Option<PathBuf>, writes: bool) -> Self {
        Self { path, writes, connection: Arc::default() }
    }

    /// Runs statements, and returns the rows of the last one.
    pub(super) async fn run(
        &self,
        sql: &str,
        limits: &StarterLimits,
    ) -> Result<ToolAnswer, String> {
        let sql = sql.to_owned();
        self.with(limits, move |connection, rows| {
            query(connection, &sql, rows).map_err(|error| error.to_string())
        })
        .await
    }

    /// Finds tables and columns whose names hold a word of the question; all of them where none does.
    pub(super) async fn search(
        &self,
        text: &str,
        limits: &StarterLimits,
    ) -> Result<ToolAnswer, String> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| word.len() > 2)
            .map(str::to_lowercase)
            .collect();
        self.with(limits, move |connection, _| {
            let tables = tables(connection).map_err(|error| error.to_string())?;
            let holds = |table: &Value| {
                let text = table.to_string().to_lowercase();
                words.iter().any(|word| text.contains(word.as_str()))
            };
            let mut found: Vec<&Value> = tables.iter().filter(|table| holds(table)).collect();
            if found.is_empty() {
                found = tables.iter().collect();
            }
            Ok(json!({"tables": found, "count": found.len()}))
        })
        .await
    }

    async fn with(
        &self,
        limits: &StarterLimits,
        work: impl FnOnce(&Connection, usize) -> Result<Value, String> + Send + 'static,
    ) -> Result<ToolAnswer, String> {
        let (database, limits) = (self.clone(), limits.clone());
        let output = limits.output;
        let ran = tokio::task::spawn_blocking(move || {
            let mut kept = database.connection.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_none() {
                *kept = Some(database.open().map_err(|error| error.to_string())?);
            }
            let Some(connection) = kept.as_mut() else { return Err("no database".to_owned()) };
            #[expect(clippy::disallowed_methods, reason = "SQLite asks without a clock at hand")]
            let began = Instant::now();
            let limit = limits.timeout;
            let handler = Some(move || began.elapsed() > limit);
            connection.progress_handler(STEPS, handler).map_err(|error| error.to_string())?;
            work(connection, limits.rows)
        });
        match ran.await.map_err(|error| error.to_string())? {
            Ok(value) => {
                let text = value.to_string();
                if text.len() <= output {
                    return Ok(ToolAnswer::text(text));
                }
                let shown = head(&text, Limit::Bytes(output));
                Ok(ToolAnswer::failed(format!(
                    "{shown}\n[ended: the rows have {} bytes; ask for fewer]",
                    text.len()
                )))
            }
            Err(why) => Ok(ToolAnswer::failed(why)),
        }
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let mut connection = match &self.path {
            None => Connection::open_in_memory()?,
            Some(path) if self.writes => Connection::open(path)?,
            Some(path) => Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        // Another file is never opened.
        connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
            AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
            _ => Authorization::Allow,
        }))?;
        Ok(connection)
    }
}

fn query(connection: &Connection, sql: &str, most: usize) -> rusqlite::Result<Value> {
    let mut batch = Batch::new(connection, sql);
    let (mut columns, mut rows, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(mut statement) = batch.next()? {
        columns = statement.column_names().map(str::to_owned).collect();
        rows.clear();
        count = 0;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            count += 1;
            if rows.len() < most {
                let cells = columns
                    .iter()
                    .enumerate()
                    .map(|(index, name)| Ok((name.clone(), cell(row.get_ref(index)?))));
                rows.push(Value::Object(cells.collect::<rusqlite::Result<_>>()?));
            }
        }
    }
    let mut answer = json!({"columns": columns, "rows": rows, "row_count": count});
    if count > rows.len() {
        answer["shown"] = json!(rows.len());
    }
    Ok(answer)
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(format!("[{} bytes]", bytes.len())),
    }
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<Value>> {
    let mut names = connection.prepare(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let mut tables = Vec::new();
    for name in names {
        let name = name?;
        let mut columns = connection.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
        let columns = columns.query_map([&name], |row| {
            Ok(json!({"name": row.get::<_, String>(0)?, "type": row.get::<_, String>(1)?}))
        })?;
        let columns = columns.collect::<rusqlite::Result<Vec<_>>>()?;
        tables.push(json!({"table": name, "columns": columns}));
    }
    Ok(tables)
}
