//! A damaged file: what can still be read, and is as it was stored, goes to a new one.
//!
//! Rows are read from both ends of a table, and between two places that cannot be read by halves; a table is lost with its root page. Text indexes, the counts of sessions
//! and the numbers of tenants are made anew. The names in statements are those of this crate's own schema.

use std::path::{Path, PathBuf};

use plimsoll_engine::{StoreError, TenantId};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::failure::SqliteFailure;
use super::place::beside;
use super::query::{change, rows, session};
use super::verify::{self, HashedTable};
use super::{branches, connection, file, schema, tenants, word_index};

/// Reads of a damaged table at most; chosen: some hundred damaged pages, each found by halves.
const READS: usize = 20_000;

/// What became of the rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedTable {
    pub table: &'static str,
    /// Rows in the new file.
    pub kept: u64,
    /// Rows that were read, and are not as they were stored or lack what they rest on; they stay in the damaged file alone.
    pub dropped: u64,
    /// Places at which rows could not be read.
    pub unreadable: u64,
}

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Where the damaged file is now.
    pub damaged: PathBuf,
    pub tables: Vec<RepairedTable>,
}

/// Makes a new file of what can be read of the one at `path`, and puts it in its place.
pub(super) fn repair(path: &Path) -> Result<Repair, StoreError> {
    // Before anything is opened: SQLite makes a journal beside whatever it is.
    file::regular(path).map_err(|error| file::of_io(path, &error))?;
    let (damaged, new) = (beside(path, ".damaged"), beside(path, ".repair"));
    let old = open_alone(path)?;
    if damaged.exists() {
        let what = format!(
            "a repair beside {}, which an earlier one left; move it away first",
            damaged.display()
        );
        return Err(StoreError::Unsupported { what });
    }
    remove(&new)?;
    file::require_newest(&old, path)?;
    let mut made = file::create_store(&new)?;
    let tables = fill(&old, &mut made).map_err(StoreError::from)?;
    file::settle(&made)?;
    drop((made, old));
    for end in ["-wal", "-shm"] {
        remove(&beside(&new, end))?;
    }
    // The damaged file has both names until the new one takes the first: at every moment a store is there, and its log with it.
    std::fs::hard_link(path, &damaged)
        .or_else(|_| std::fs::copy(path, &damaged).map(drop))
        .map_err(|error| file::of_io(&damaged, &error))?;
    for end in ["-wal", "-shm"] {
        let log = beside(path, end);
        if log.exists() {
            rename(&log, &beside(&damaged, end))?;
        }
    }
    rename(&new, path)?;
    Ok(Repair { damaged, tables })
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(file::of_io(path, &error))
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| file::of_io(from, &error))
}

/// Opens a file that no other process has open: one that writes on would write to the damaged file.
fn open_alone(path: &Path) -> Result<Connection, StoreError> {
    let connection = connection::open_damaged(path)?;
    // Rolled back: where the file is shorter than its header says, SQLite corrects the header when it begins.
    let alone =
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK");
    let busy = alone.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
    if matches!(busy, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
        let why = format!("another process uses {}; end it first", path.display());
        return Err(StoreError::Unavailable { why, retry_after: None });
    }
    Ok(connection)
}

fn fill(old: &Connection, new: &mut Connection) -> Result<Vec<RepairedTable>, SqliteFailure> {
    new.execute_batch("PRAGMA foreign_keys = OFF")?;
    let transaction = new.transaction()?;
    let mut report = Vec::new();
    for name in schema::TABLES {
        let (kept, unreadable) = copy(old, &transaction, name)?;
        report.push(RepairedTable { table: name, kept, dropped: 0, unreadable });
    }
    let mut drop_rows = |name: &str, dropped: u64| {
        if let Some(one) = report.iter_mut().find(|one| one.table == name) {
            one.kept -= dropped.min(one.kept);
            one.dropped += dropped;
        }
    };
    for table in HashedTable::ALL {
        let wrong = verify::wrong(&transaction, table)?;
        for (_, id) in &wrong {
            transaction.execute(&format!("DELETE FROM {} WHERE rowid = ?1", table.name()), [id])?;
        }
        drop_rows(table.name(), wrong.len() as u64);
    }
    let tools = verify::wrong_tools(&transaction)?;
    for key in &tools {
        let sql = "DELETE FROM tool_schemas
             WHERE tenant = ?1 AND server_name = ?2 AND tool_name = ?3";
        transaction.execute(sql, (&key.0, &key.1, &key.2))?;
    }
    drop_rows("tool_schemas", tools.len() as u64);
    for (name, without) in ORPHANS {
        drop_rows(name, change(&transaction, without, [])?);
    }
    count_anew(&transaction)?;
    transaction.commit()?;
    Ok(report)
}

/// Rows that rest on others which are lost.
const ORPHANS: &[(&str, &str)] = &[
    (
        "cas_refs",
        "DELETE FROM cas_refs AS r WHERE NOT EXISTS (
             SELECT 1 FROM cas_contents AS c WHERE c.tenant = r.tenant AND c.digest = r.digest)",
    ),
    ("memory_tags", "DELETE FROM memory_tags WHERE record NOT IN (SELECT id FROM memory_records)"),
    (
        "semantic_cache_refs",
        "DELETE FROM semantic_cache_refs AS r WHERE NOT EXISTS (
             SELECT 1 FROM semantic_cache AS c
             WHERE c.tenant = r.tenant AND c.cache_key = r.cache_key)",
    ),
];

/// Copies the rows of a table; returns how many, and at how many places none could be read.
fn copy(
    old: &Connection,
    new: &Connection,
    table: &'static str,
) -> Result<(u64, u64), SqliteFailure> {
    let columns: Vec<String> =
        rows(new, "SELECT name FROM pragma_table_info(?1) ORDER BY cid", [table], |row| {
            Ok(row.get(0)?)
        })?;
    let has_rowid = new.prepare(&format!("SELECT rowid FROM {table} LIMIT 0")).is_ok();
    let names = columns.join(", ");
    let marks = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})");
    let mut copying = Copying { old, new, columns: columns.len(), insert, kept: 0, reads: 0 };
    let unreadable = if has_rowid {
        copying.between(
            &format!(
                "SELECT rowid, {names} FROM {table} WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid"
            ),
            i64::MIN,
            i64::MAX,
        )?
    } else {
        let key: Vec<String> = rows(
            new,
            "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk",
            [table],
            |row| Ok(row.get(0)?),
        )?;
        copying.copy_from_both_ends(&format!("SELECT 0, {names} FROM {table}"), &key)?
    };
    Ok((copying.kept, unreadable))
}

struct Copying<'a> {
    old: &'a Connection,
    new: &'a Connection,
    columns: usize,
    insert: String,
    kept: u64,
    reads: usize,
}

impl Copying<'_> {
    /// Copies rows until one cannot be read; returns the last that could, and whether all could.
    fn run(
        &mut self,
        select: &str,
        range: Option<(i64, i64)>,
    ) -> Result<(Option<i64>, bool), SqliteFailure> {
        self.reads += 1;
        let mut last = None;
        let Ok(mut query) = self.old.prepare_cached(select) else { return Ok((None, false)) };
        let found = match range {
            Some(range) => query.query(range),
            None => query.query([]),
        };
        let Ok(mut found) = found else { return Ok((None, false)) };
        let mut insert = self.new.prepare_cached(&self.insert)?;
        loop {
            let row = match found.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok((last, true)),
                Err(_) => return Ok((last, false)),
            };
            let id = row.get::<_, i64>(0);
            let values: Result<Vec<Value>, _> =
                (1..=self.columns).map(|column| row.get(column)).collect();
            let (Ok(id), Ok(values)) = (id, values) else { return Ok((last, false)) };
            last = Some(id);
            // A row that breaks a rule of its table, such as a type, is not one that was stored.
            self.kept += insert.execute(params_from_iter(values)).unwrap_or(0) as u64;
        }
    }

    /// Copies the rows of a range of row numbers; returns at how many places it could not.
    fn between(&mut self, select: &str, from: i64, to: i64) -> Result<u64, SqliteFailure> {
        let backwards = format!("{select} DESC");
        let mut ranges = vec![(from, to)];
        let mut places = 0;
        while let Some((from, to)) = ranges.pop() {
            let (last, whole) = self.run(select, Some((from, to)))?;
            if whole {
                continue;
            }
            let from = last.map_or(from, |last| last.saturating_add(1));
            let (first, whole) = self.run(&backwards, Some((from, to)))?;
            let to = first.map_or(to, |first| first.saturating_sub(1));
            if whole || from >= to || self.reads > READS {
                places += 1;
                continue;
            }
            let middle = i64::midpoint(from, to);
            ranges.extend([(from, middle), (middle + 1, to)]);
        }
        Ok(places)
    }

    fn copy_from_both_ends(&mut self, select: &str, key: &[String]) -> Result<u64, SqliteFailure> {
        let order = |way: &str| {
            let columns: Vec<String> = key.iter().map(|name| format!("{name}{way}")).collect();
            format!("{select} ORDER BY {}", columns.join(", "))
        };
        if self.run(&order(""), None)?.1 {
            return Ok(0);
        }
        self.run(&order(" DESC"), None)?;
        Ok(1)
    }
}

/// Makes what follows from the rows: tenants with their numbers and text indexes, and the counts of sessions.
fn count_anew(new: &Connection) -> Result<(), SqliteFailure> {
    let names: Vec<String> = rows(
        new,
        "SELECT tenant FROM unified_logs UNION SELECT tenant FROM context_cards
         UNION SELECT tenant FROM cas_refs UNION SELECT tenant FROM memory_records
         UNION SELECT tenant FROM summarize_jobs UNION SELECT tenant FROM tool_schemas
         UNION SELECT tenant FROM semantic_cache UNION SELECT tenant FROM memory_tombstones",
        [],
        |row| Ok(row.get(0)?),
    )?;
    for name in names {
        let Ok(tenant) = TenantId::new(&name) else { continue };
        let number = tenants::ensure(new, &tenant)?;
        verify::index_words(new, &tenant, number)?;
        change(
            new,
            "UPDATE tenants SET
                 last_job = (SELECT coalesce(max(id), 0) FROM summarize_jobs WHERE tenant = ?1),
                 generation = max(
                     (SELECT coalesce(max(generation), 0) FROM context_cards WHERE tenant = ?1),
                     (SELECT coalesce(max(generation), 0) FROM memory_records WHERE tenant = ?1))
             WHERE tenant = ?1",
            [tenant.as_str()],
        )?;
    }
    word_index::add_all(new)?;
    new.execute_batch(
        "INSERT INTO sessions (tenant, session_id, messages, tokens, first_at, last_at)
         SELECT tenant, session_id, max(iif(node_type = 'message', number + 1, 0)),
             total(tokens), min(recorded_at), max(recorded_at)
         FROM unified_logs WHERE true GROUP BY tenant, session_id
         ON CONFLICT (tenant, session_id) DO UPDATE SET messages = excluded.messages,
             tokens = excluded.tokens, first_at = excluded.first_at, last_at = excluded.last_at;
         DELETE FROM sessions AS s WHERE branch_of IS NULL AND NOT EXISTS (
             SELECT 1 FROM unified_logs AS l
             WHERE l.tenant = s.tenant AND l.session_id = s.session_id);
         UPDATE sessions AS s SET messages = 0, tokens = 0
         WHERE branch_of IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM unified_logs AS l
             WHERE l.tenant = s.tenant AND l.session_id = s.session_id)",
    )?;
    let begun = rows(
        new,
        "SELECT tenant, session_id FROM sessions WHERE branch_of IS NOT NULL",
        [],
        |row| Ok((row.get::<_, String>(0)?, session(row, 1)?)),
    )?;
    for (name, session) in begun {
        let Ok(tenant) = TenantId::new(&name) else { continue };
        branches::count_shared(new, &tenant, &session)?;
    }
    Ok(())
}
