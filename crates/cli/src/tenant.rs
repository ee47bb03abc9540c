//! `plimsoll tenant`: the tenants of a store, for its operator.

use plimsoll_engine::{LogQuery, MemoryVersion, RefQuery, StoreError, TenantId};
use serde::Serialize;
use serde_json::json;

use crate::arguments::{StoreArguments, StorePlaceArguments, TenantArguments, TenantCommand};
use crate::error::CommandError;
use crate::figures::{aligned, thousands};
use crate::output;
use crate::store::Store;

/// A tenant in the list.
#[derive(Debug, Serialize)]
struct TenantRow {
    tenant: String,
    sessions: usize,
    messages: u64,
}

pub(crate) fn run(arguments: &TenantArguments) -> Result<(), CommandError> {
    match &arguments.command {
        TenantCommand::List { store, json } => list(store, *json),
        TenantCommand::Export { name, store } => export(name, store),
        TenantCommand::Erase { name, store, yes } => erase(name, store, *yes),
    }
}

fn open(place: &StorePlaceArguments, tenant: Option<&str>) -> Result<Store, CommandError> {
    let (place, tenant) = (place.clone(), tenant.map(str::to_owned));
    Store::open_existing(&StoreArguments { place, tenant }, None)
}

fn list(place: &StorePlaceArguments, json: bool) -> Result<(), CommandError> {
    let rows = open(place, None)?.history(async |history, _| {
        let mut rows = Vec::new();
        for tenant in history.tenants().await? {
            let sessions = history.sessions(&tenant, usize::MAX >> 1).await?;
            let messages = sessions.iter().map(|session| u64::from(session.messages)).sum();
            let tenant = tenant.as_str().to_owned();
            rows.push(TenantRow { tenant, sessions: sessions.len(), messages });
        }
        Ok(rows)
    })?;
    output::show(json, &rows, || {
        let row = |row: &TenantRow| {
            let (sessions, messages) = (thousands(row.sessions as u64), thousands(row.messages));
            [
                output::plain(&row.tenant),
                format!("{sessions} sessions"),
                format!("{messages} messages"),
            ]
        };
        aligned(&rows.iter().map(row).collect::<Vec<_>>())
    })
}

fn export(name: &str, place: &StorePlaceArguments) -> Result<(), CommandError> {
    let store = open(place, Some(name))?;
    let all = usize::MAX >> 1;
    let lines = store.both(async |history, knowledge, tenant| {
        match history.tenants().await {
            // A store that cannot list its tenants has those that one asks for.
            Err(StoreError::Unsupported { .. }) => {}
            all => known(&all?, tenant)?,
        }
        let mut lines = Vec::new();
        let query = LogQuery { session: None, node_type: None, since: None, limit: all };
        for row in history.log(tenant, &query).await?.into_iter().rev() {
            lines.push(json!({"kind": "log", "record": row}));
        }
        for session in history.sessions(tenant, all).await? {
            // The log has the first line of each message; an export has all.
            for record in history.messages(tenant, &session.session, 0, all).await? {
                lines.push(json!({
                    "kind": "message",
                    "record": {
                        "session": record.session,
                        "position": record.position,
                        "message": record.message,
                    },
                }));
            }
            for card in history.cards(tenant, &session.session).await? {
                lines.push(json!({"kind": "card", "record": card}));
            }
        }
        let memories = knowledge.memory_changes(tenant, MemoryVersion::default()).await?;
        for record in memories.records {
            lines.push(json!({"kind": "memory", "record": record}));
        }
        let query = RefQuery { limit: all, ..RefQuery::default() };
        for artefact in knowledge.artefacts(tenant, &query).await? {
            lines.push(json!({"kind": "artefact", "record": artefact}));
        }
        for answer in knowledge.answers(tenant, all).await? {
            lines.push(json!({
                "kind": "answer",
                "record": {"key": answer.cache_key, "answer": answer.answer_text, "used_refs": answer.used_refs}
            }));
        }
        for schema in knowledge.tool_schemas(tenant).await? {
            lines.push(json!({"kind": "tool", "record": schema}));
        }
        Ok(lines)
    })?;
    output::page(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn erase(name: &str, place: &StorePlaceArguments, yes: bool) -> Result<(), CommandError> {
    if !yes {
        let error = anyhow::anyhow!("all that the tenant {name} has would be removed for ever");
        return Err(CommandError::usage(error).hint("`--yes` does it"));
    }
    let store = open(place, Some(name))?;
    let (rows, is_purged) = store.both(async |history, knowledge, tenant| {
        known(&history.tenants().await?, tenant)?;
        let rows = knowledge.erase_tenant(tenant).await?;
        Ok((rows, knowledge.purge().await?))
    })?;
    let left = if is_purged { "none is left".to_owned() } else { still_in_log() };
    output::data(&format!("{} rows erased, {left}\n", thousands(rows)))
}

/// Says that what was removed is not yet out of every file.
pub(crate) fn still_in_log() -> String {
    "but the log beside the store still holds them while another process uses it; they go with its next checkpoint"
        .to_owned()
}

fn known(all: &[TenantId], tenant: &TenantId) -> Result<(), StoreError> {
    if all.contains(tenant) {
        return Ok(());
    }
    Err(StoreError::NotFound { what: format!("tenant {tenant}") })
}
