//! `plimsoll ui`: serves the dashboard over a store, or over recorded sessions.

use std::path::Path;
use std::sync::Arc;

use plimsoll_gateway::serve;
use tempfile::TempDir;

use crate::arguments::{ImportArguments, StoreArguments, StorePlaceArguments, UiArguments};
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::figures::counted;
use crate::import::import_file;
use crate::output;
use crate::pages;
use crate::serve::{failed, log_from, open_with, runtime, stopped};
use crate::sessions::{self, ENDINGS};
use crate::store::{Addresses, Store};

pub(crate) fn run(arguments: &UiArguments) -> Result<(), CommandError> {
    let mut config = config::for_sending(arguments.config.as_deref())?;
    config.gateway.listen = arguments.listen;
    log_from(&config.gateway, "warn")?;
    // Held until the end: dropped, it takes the sessions with it.
    let (_folder, place) = if arguments.files.is_empty() {
        (None, arguments.store.clone())
    } else {
        let folder = tempfile::tempdir().map_err(CommandError::failure)?;
        let place = filled(arguments, &config, &folder)?;
        (Some(folder), place)
    };
    runtime()?.block_on(async {
        let (history, knowledge) = Addresses::new(&place, &config.store)?.open().await?;
        let pages = pages::open_alone(&config, history.clone(), knowledge.clone()).await?;
        let (gateway, listener) = open_with(config, history, knowledge, pages).await?;
        let address = listener.local_addr().map_err(CommandError::failure)?;
        output::data(&format!("plimsoll shows http://{address}/ui/\n"))?;
        serve(listener, Arc::new(gateway), stopped()).await.map_err(failed)
    })
}

/// Puts the sessions that are named into a store of their own.
fn filled(
    arguments: &UiArguments,
    config: &Config,
    folder: &TempDir,
) -> Result<StorePlaceArguments, CommandError> {
    let path = folder.path().join("sessions.db").to_string_lossy().into_owned();
    let place = StorePlaceArguments { store: Some(path), history: None };
    let import = ImportArguments {
        files: Vec::new(),
        store: StoreArguments { place: place.clone(), tenant: None },
        session: None,
        config: arguments.config.clone(),
        verbose: false,
        json: false,
    };
    let store = Store::open(&import.store, arguments.config.as_deref())?;
    // Cards and their jobs are of no use to a store that ends with the process.
    let mut config = config.clone();
    config.cards.observe = false;
    let mut shown = 0;
    for file in sessions::files(&arguments.files)? {
        match import_file(&store, &config, &file, &import) {
            Ok(report) => shown += u64::from(report.added > 0),
            // Much in a folder is no session; a file that was named should be one.
            Err(error) if !is_named(arguments, &file) => output::warning(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if shown == 0 {
        let error = anyhow::anyhow!("there is no session in what was named");
        return Err(CommandError::usage(error).hint(ENDINGS));
    }
    output::note(&format!("{} read", counted(shown, "session")));
    Ok(place)
}

fn is_named(arguments: &UiArguments, file: &Path) -> bool {
    arguments.files.iter().any(|named| named == file)
}
