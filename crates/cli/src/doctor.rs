//! `plimsoll doctor`: checks whether a gateway would work here.

mod store_file;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use plimsoll_engine::{HistoryBatch, HistoryStore, TenantId};
use plimsoll_store::StoreAddress;
use serde::Serialize;

use crate::arguments::DoctorArguments;
use crate::client::Client;
use crate::config::{self, Config, environment};
use crate::error::CommandError;
use crate::figures::aligned;
use crate::output::{self, BAD, GOOD, RESET};
use crate::probe;
use crate::serve::{self, runtime};
use crate::store::{self, Addresses};

/// The result of one check.
#[derive(Debug, Serialize)]
struct DoctorFinding {
    what: String,
    fine: bool,
    told: String,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<(), CommandError> {
    if arguments.running {
        return running(arguments);
    }
    let runtime = runtime()?;
    let mut findings = Vec::new();
    let mut note = |what: &str, found: Result<String, String>| {
        let fine = found.is_ok();
        let told = found.unwrap_or_else(|why| why);
        findings.push(DoctorFinding { what: what.to_owned(), fine, told });
    };
    let read = config::read(arguments.config.as_deref());
    let places = read.as_ref().map(|config| config.store.clone()).unwrap_or_default();
    let addresses = Addresses::new(&arguments.store, &places);
    match read {
        Ok(config) => {
            let policy = &config.gateway.policy;
            let known = config.policy(policy).map_err(|error| error.to_string());
            note("settings", known.map(|_| format!("policy {policy}")));
            note("port", port(&config));
            let served = serve::check(&config).map(|()| "`plimsoll serve` takes them".to_owned());
            note("gateway", served.map_err(|error| error.to_string()));
            if !arguments.offline {
                for (name, upstream) in config.gateway.all_upstreams() {
                    let reached = probe::reach(&upstream.base_url);
                    let told = reached.map(|()| upstream.base_url.clone());
                    note(
                        &format!("upstream {name}"),
                        told.map_err(|why| format!("{}: {why}", upstream.base_url)),
                    );
                }
            }
            for (name, upstream) in &config.gateway.upstreams {
                if let Some(variable) = &upstream.key_env {
                    let set = environment(variable).filter(|key| !key.trim().is_empty());
                    let set = set.map(|_| format!("{variable} is set"));
                    note(
                        &format!("key of {name}"),
                        set.ok_or_else(|| format!("{variable} is not set or empty")),
                    );
                }
            }
        }
        Err(error) => note("settings", Err(error.to_string())),
    }
    match addresses {
        // A check makes nothing that stays.
        Ok(Addresses { store, history: None }) if !plimsoll_store::exists(&store) => {
            let told = format!("{store} is not there yet; the first answer makes it");
            note("store", store_file::check(&store).map(|()| told));
        }
        Ok(Addresses { store, history }) => {
            let found = store_file::check(&store).and_then(|()| {
                let opened = runtime.block_on(keeps(&store, async || {
                    Ok(plimsoll_store::open(&store).await.map_err(store::failure)?.0)
                }));
                opened.map_err(|error| error.to_string())
            });
            note("store", found);
            if let Some(history) = &history {
                let opened = store::open_history(history);
                let opened = runtime.block_on(keeps(history, async || opened.await));
                note("history", opened.map_err(|error| error.to_string()));
            }
        }
        Err(error) => note("store", Err(error.to_string())),
    }
    let found: Vec<&str> = Client::ALL
        .into_iter()
        .map(Client::program)
        .filter(|program| is_on_path(program))
        .collect();
    let clients =
        if found.is_empty() { "none of those that are known".to_owned() } else { found.join(", ") };
    note("clients", Ok(clients));
    if found.contains(&Client::Claude.program()) {
        let told = "Remote Control is off behind another base URL; `plimsoll run-agent --forward -- claude` keeps it";
        note("claude", Ok(told.to_owned()));
    }
    output::show(arguments.json, &findings, || table(&findings))?;
    match findings.iter().filter(|finding| !finding.fine).count() {
        0 => Ok(()),
        bad => {
            Err(CommandError::finding(anyhow::anyhow!("{bad} of {} checks failed", findings.len())))
        }
    }
}

/// Checks that a gateway answers where the settings have it.
fn running(arguments: &DoctorArguments) -> Result<(), CommandError> {
    let address = config::read(arguments.config.as_deref())?.gateway.listen;
    if !probe::is_gateway(address) {
        return Err(CommandError::finding(anyhow::anyhow!("no gateway answers on {address}")));
    }
    let findings = [DoctorFinding {
        what: "gateway".to_owned(),
        fine: true,
        told: format!("it answers on {address}"),
    }];
    output::show(arguments.json, &findings, || table(&findings))
}

fn port(config: &Config) -> Result<String, String> {
    let address = config.gateway.listen;
    if !address.ip().is_loopback() && config.gateway.keys.is_empty() {
        return Err(format!("{address} can be reached from elsewhere, and there are no keys"));
    }
    if probe::is_gateway(address) {
        return Ok(format!("a gateway answers on {address}"));
    }
    match TcpListener::bind(address) {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) => Err(format!("{address}: {error}")),
    }
}

/// Opens a history and appends nothing to it, which takes the way that records take.
async fn keeps(
    address: &StoreAddress,
    open: impl AsyncFnOnce() -> Result<Arc<dyn HistoryStore>, CommandError>,
) -> Result<String, CommandError> {
    let history = open().await?;
    let nothing = HistoryBatch::default();
    history.append(&TenantId::default(), nothing).await.map_err(store::failure)?;
    Ok(format!("{address} can be written"))
}

fn is_on_path(program: &str) -> bool {
    let path = environment("PATH").unwrap_or_default();
    let separator = if cfg!(windows) { ';' } else { ':' };
    path.split(separator).any(|folder| Path::new(folder).join(program).is_file())
}

fn table(findings: &[DoctorFinding]) -> String {
    let row = |DoctorFinding { what, fine, told }: &DoctorFinding| {
        let mark =
            if *fine { format!("{GOOD}fine{RESET}") } else { format!("{BAD}not fine{RESET}") };
        [what.clone(), format!("{mark}  {}", output::line(told, 160))]
    };
    aligned(&findings.iter().map(row).collect::<Vec<_>>())
}
