//! `plimsoll store`: checks a store's file, repairs and copies it.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_engine::HistoryStore as _;
use plimsoll_store::{Repair, SqliteStore, StoreAddress};
use serde_json::json;

use crate::arguments::{StoreCommand, StoreCommandArguments, StorePlaceArguments};
use crate::config;
use crate::error::CommandError;
use crate::figures::counted;
use crate::output;
use crate::store::{Addresses, failure, missing, unanswered};

pub(crate) fn run(arguments: &StoreCommandArguments) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::failure)?;
    match &arguments.command {
        StoreCommand::Check { store, json } => runtime.block_on(check(store, *json)),
        StoreCommand::Repair { store, json } => runtime.block_on(repair(store, *json)),
        StoreCommand::Backup { file, store } => runtime.block_on(back_up(store, file)),
    }
}

fn address(place: &StorePlaceArguments) -> Result<StoreAddress, CommandError> {
    let address = Addresses::new(place, &config::read(None)?.store)?.store;
    if plimsoll_store::exists(&address) {
        return Ok(address);
    }
    Err(missing(&address))
}

async fn open(place: &StorePlaceArguments) -> Result<SqliteStore, CommandError> {
    plimsoll_store::open_file(&address(place)?).await.map_err(failure)
}

async fn repair(place: &StorePlaceArguments, json: bool) -> Result<(), CommandError> {
    let address = address(place)?;
    let faults = match plimsoll_store::open_file(&address).await {
        Ok(store) => store.check().await.map_or(true, |faults| !faults.is_empty()),
        Err(_) => true,
    };
    if !faults {
        let nothing = || "nothing to repair: the store has no fault\n".to_owned();
        return output::show(json, &json!({"damaged": null, "tables": []}), nothing);
    }
    let Repair { damaged, tables } = plimsoll_store::repair(&address).await.map_err(failure)?;
    let rows: Vec<_> = tables
        .iter()
        .map(|one| {
            json!({
                "table": one.table,
                "kept": one.kept,
                "dropped": one.dropped,
                "unreadable_places": one.unreadable,
            })
        })
        .collect();
    let text = || {
        let mut text = String::new();
        for one in &tables {
            let _ = write!(text, "{}: {} kept", one.table, counted(one.kept, "row"));
            if one.dropped > 0 {
                let _ = write!(text, ", {} dropped, no longer as stored", one.dropped);
            }
            if one.unreadable > 0 {
                let _ = write!(text, ", {} unreadable", counted(one.unreadable, "place"));
            }
            text.push('\n');
        }
        let _ = writeln!(text, "the damaged file is {}", damaged.display());
        text
    };
    output::show(json, &json!({"damaged": damaged, "tables": rows}), text)
}

async fn check(place: &StorePlaceArguments, json: bool) -> Result<(), CommandError> {
    let store = open(place).await?;
    let faults = store.check().await.map_err(unanswered)?;
    let mut messages = 0;
    for tenant in store.tenants().await.map_err(unanswered)? {
        let sessions = store.sessions(&tenant, usize::MAX >> 1).await.map_err(unanswered)?;
        messages += sessions.iter().map(|session| u64::from(session.messages)).sum::<u64>();
    }
    let text = || faults.iter().map(|fault| format!("{}\n", output::plain(fault))).collect();
    output::show(json, &json!({"messages": messages, "faults": faults}), text)?;
    let summary = format!(
        "{} checked, {}",
        counted(messages, "message"),
        counted(faults.len() as u64, "fault")
    );
    if !faults.is_empty() {
        return Err(CommandError::finding(anyhow::anyhow!(summary)));
    }
    if !json {
        output::note(&summary);
    }
    Ok(())
}

async fn back_up(place: &StorePlaceArguments, file: &Path) -> Result<(), CommandError> {
    open(place).await?.back_up(file).await.map_err(unanswered)?;
    output::note(&format!("copied to {}", file.display()));
    Ok(())
}
