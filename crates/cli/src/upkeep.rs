//! `plimsoll store`: checks a store's file and copies it.

use std::path::Path;

use plimsoll_engine::HistoryStore as _;
use plimsoll_store::SqliteStore;
use serde_json::json;

use crate::arguments::{StoreCommand, StoreCommandArguments, StorePlaceArguments};
use crate::config;
use crate::error::CommandError;
use crate::figures::counted;
use crate::output;
use crate::store::{Addresses, failure, unanswered};

pub(crate) fn run(arguments: &StoreCommandArguments) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CommandError::failure)?;
    match &arguments.command {
        StoreCommand::Check { store, json } => runtime.block_on(check(store, *json)),
        StoreCommand::Backup { file, store } => runtime.block_on(back_up(store, file)),
    }
}

async fn open(place: &StorePlaceArguments) -> Result<SqliteStore, CommandError> {
    let address = Addresses::new(place, &config::read(None)?.store)?.store;
    if !plimsoll_store::exists(&address) {
        return Err(CommandError::usage(anyhow::anyhow!("there is no store at {address}")));
    }
    plimsoll_store::open_file(&address).await.map_err(failure)
}

async fn check(place: &StorePlaceArguments, json: bool) -> Result<(), CommandError> {
    let store = open(place).await?;
    let mut faults = store.check().await.map_err(unanswered)?;
    let mut messages = 0;
    for tenant in store.tenants().await.map_err(unanswered)? {
        let found = store.verify(&tenant).await.map_err(unanswered)?;
        messages += found.messages;
        if found.mismatches > 0 {
            let damaged = counted(found.mismatches, "message");
            faults.push(format!("tenant {tenant}: {damaged} no longer as stored"));
        }
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
