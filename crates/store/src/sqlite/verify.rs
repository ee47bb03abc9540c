//! Rows that have a hash: which are no longer as they were stored, and the words that they are found by.

use plimsoll_engine::TenantId;
use rusqlite::{Connection, Row};

use super::answers::{self, answer_columns};
use super::artefacts;
use super::cards::{self, card_columns};
use super::failure::SqliteFailure;
use super::memories::{self, memory_columns};
use super::messages::{self, message_columns};
use super::query::rows;
use super::receipts::{self, receipt_columns};
use super::tenants::TenantNumber;
use super::tool_schemas::{self, tool_columns};

/// Rows of a kind whose hash is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashedTable {
    Messages,
    Receipts,
    Cards,
    Memories,
    Answers,
    Contents,
}

impl HashedTable {
    pub(super) const ALL: [Self; 6] = [
        Self::Messages,
        Self::Receipts,
        Self::Cards,
        Self::Memories,
        Self::Answers,
        Self::Contents,
    ];

    /// Returns the table's name in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Messages | Self::Receipts => "unified_logs",
            Self::Cards => "context_cards",
            Self::Memories => "memory_records",
            Self::Answers => "semantic_cache",
            Self::Contents => "cas_contents",
        }
    }

    /// Returns the word for one of its rows.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Messages => "message",
            Self::Receipts => "receipt",
            Self::Cards => "card",
            Self::Memories => "memory record",
            Self::Answers => "answer",
            Self::Contents => "artefact",
        }
    }

    /// The tenant and the row's number, then what the table's reader expects.
    fn select(self) -> &'static str {
        match self {
            Self::Messages => concat!(
                "SELECT ",
                message_columns!(),
                ", tenant, rowid FROM unified_logs WHERE node_type = 'message'"
            ),
            Self::Receipts => concat!(
                "SELECT ",
                receipt_columns!(),
                ", tenant, rowid FROM unified_logs WHERE node_type = 'context_selection'"
            ),
            Self::Cards => {
                concat!("SELECT ", card_columns!(), ", tenant, rowid FROM context_cards")
            }
            Self::Memories => {
                concat!("SELECT ", memory_columns!(), ", tenant, rowid FROM memory_records")
            }
            Self::Answers => {
                concat!("SELECT ", answer_columns!(), ", tenant, rowid FROM semantic_cache")
            }
            Self::Contents => "SELECT digest, size, content, tenant, rowid FROM cas_contents",
        }
    }

    fn check(self, tenant: &TenantId, row: &Row<'_>) -> Result<(), SqliteFailure> {
        match self {
            Self::Messages => messages::read(row).map(drop),
            Self::Receipts => receipts::read(row).map(drop),
            Self::Cards => cards::read(tenant, row).map(drop),
            Self::Memories => memories::read(tenant, row).map(drop),
            Self::Answers => answers::read(tenant, row).map(drop),
            Self::Contents => artefacts::unpack(row).map(drop),
        }
    }
}

/// Returns the tenants and the numbers of the rows that are not as they were stored.
pub(super) fn wrong(
    connection: &Connection,
    table: HashedTable,
) -> Result<Vec<(String, i64)>, SqliteFailure> {
    let checked = rows(connection, table.select(), [], |row| {
        let end = row.as_ref().column_count();
        let tenant: String = row.get(end - 2)?;
        let right = TenantId::new(&tenant).is_ok_and(|tenant| table.check(&tenant, row).is_ok());
        let number = row.get(end - 1)?;
        Ok((!right).then_some((tenant, number)))
    })?;
    Ok(checked.into_iter().flatten().collect())
}

/// Returns tenant, server and name of the tools whose schema is not as it was stored. Their table has no row numbers.
pub(super) fn wrong_tools(
    connection: &Connection,
) -> Result<Vec<(String, String, String)>, SqliteFailure> {
    let sql = concat!("SELECT ", tool_columns!(), ", tenant FROM tool_schemas");
    let checked = rows(connection, sql, [], |row| {
        let tenant: String = row.get(row.as_ref().column_count() - 1)?;
        let read = TenantId::new(&tenant).map(|tenant| tool_schemas::read(&tenant, row));
        Ok(match read {
            Ok(Ok(_)) => None,
            _ => Some((tenant, row.get(0)?, row.get(1)?)),
        })
    })?;
    Ok(checked.into_iter().flatten().collect())
}

/// Adds the words of all cards and records of a tenant to text indexes that are empty.
pub(super) fn index_words(
    connection: &Connection,
    tenant: &TenantId,
    number: TenantNumber,
) -> Result<(), SqliteFailure> {
    let of = |sql| rows(connection, sql, [tenant.as_str()], |row| Ok(row.get::<_, i64>(0)?));
    for id in of("SELECT id FROM context_cards WHERE tenant = ?1")? {
        if let Some(card) = cards::by_row(connection, tenant, id)? {
            cards::index(connection, number, id, &card)?;
        }
    }
    for id in of("SELECT id FROM memory_records WHERE tenant = ?1 AND is_present = 1")? {
        if let Some(record) = memories::by_row(connection, tenant, id)? {
            memories::index(connection, number, id, &record)?;
        }
    }
    Ok(())
}
