//! `plimsoll models`: lists providers with their keys and models, and the prices of models.

mod prices;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use plimsoll_engine::{ChatModel, Embedder, ModelError};
use plimsoll_models::{
    BuiltInEmbedder, EmbedderConfig, ModelApi, Models, ModelsConfig, Provider, SpendingConfig,
};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::arguments::{ModelsArguments, ModelsCommand};
use crate::config::{self, environment};
use crate::error::CommandError;
use crate::figures::aligned;
use crate::output::{self, BAD, DIM, GOOD, RESET};
use crate::pricing::pricing;
use crate::system::outside;

/// The longest wait for a provider's list of models (chosen).
const PATIENCE: Duration = Duration::from_secs(3);

/// Opens the models of a configuration, with keys from the environment.
pub(crate) fn open(config: &ModelsConfig) -> Result<Models, CommandError> {
    Models::new(config.clone(), pricing(None)?, outside(), &environment)
        .map_err(CommandError::usage)
}

/// Returns the chat model of a name; `None` for an empty name, and with a warning for a model that cannot be used.
pub(crate) fn chat(models: &Models, name: &str, without: &str) -> Option<Arc<dyn ChatModel>> {
    if name.is_empty() {
        return None;
    }
    match models.chat(name) {
        Ok(model) => Some(model),
        Err(error) => {
            output::warning(&format!("{name}: {error}; {without}"));
            None
        }
    }
}

/// Returns the embedder that the settings name, else the built-in one.
pub(crate) fn embedder(models: &Models) -> Option<Arc<dyn Embedder>> {
    match models.embedder() {
        Ok(Some(embedder)) => Some(embedder),
        Ok(None) => Some(Arc::new(BuiltInEmbedder)),
        Err(error) => {
            output::warning(&format!("{error}; cards have no vectors"));
            None
        }
    }
}

pub(crate) fn run(arguments: &ModelsArguments) -> Result<(), CommandError> {
    if let Some(ModelsCommand::Prices(prices)) = &arguments.command {
        return prices::run(prices);
    }
    let config = config::for_sending(arguments.config.as_deref())?.models;
    let models = Arc::new(open(&config)?);
    let mut found = if arguments.offline { BTreeMap::new() } else { ask(&models)? };
    let rows: Vec<Row> =
        models.providers().map(|provider| row(provider, found.remove(&provider.name))).collect();
    let (embedder, spending) = (&config.embedder, config.spending);
    output::show(arguments.json, &Listing { providers: &rows, embedder, spending }, || {
        table(&rows, embedder)
    })?;
    let failed: Vec<&str> =
        rows.iter().filter(|row| row.is_failed()).map(|row| &*row.provider).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(CommandError::finding(anyhow!("can't be used as configured: {}", failed.join(", "))))
}

type Lists = BTreeMap<String, Result<Vec<String>, ModelError>>;

/// Asks all providers at once that have their key.
fn ask(models: &Arc<Models>) -> Result<Lists, CommandError> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(CommandError::failure)?;
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        for provider in models.providers().filter(|provider| provider.has_access()) {
            let (models, name) = (models.clone(), provider.name.clone());
            asked.spawn(async move {
                let list = models.list(&name, PATIENCE).await;
                (name, list)
            });
        }
        Ok(asked.join_all().await.into_iter().collect())
    })
}

#[derive(Serialize)]
struct Listing<'a> {
    providers: &'a [Row],
    embedder: &'a EmbedderConfig,
    spending: SpendingConfig,
}

/// One provider. No key is in it, only the name of its variable.
#[derive(Serialize)]
struct Row {
    provider: String,
    api: ModelApi,
    base_url: String,
    configured: bool,
    key_env: Option<String>,
    /// `None` where none is needed.
    key_present: Option<bool>,
    /// `None` where nobody was asked.
    reachable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    models: Vec<String>,
}

fn row(provider: &Provider, list: Option<Result<Vec<String>, ModelError>>) -> Row {
    let (reachable, problem, models) = match list {
        None => (None, None, Vec::new()),
        Some(Ok(models)) => (Some(true), None, models),
        Some(Err(error)) => (Some(false), Some(error.to_string()), Vec::new()),
    };
    Row {
        provider: provider.name.clone(),
        api: provider.api,
        base_url: provider.base_url.clone(),
        configured: provider.is_configured,
        key_env: provider.key_env.clone(),
        key_present: provider.key_env.is_some().then(|| provider.has_access()),
        reachable,
        problem,
        models,
    }
}

impl Row {
    /// Returns whether a configured provider cannot be used.
    fn is_failed(&self) -> bool {
        self.configured && (self.key_present == Some(false) || self.reachable == Some(false))
    }

    fn key(&self) -> String {
        match (&self.key_env, self.key_present) {
            (Some(variable), Some(true)) => format!("{variable} is set"),
            (Some(variable), _) => format!("{variable} is missing"),
            (None, _) => "no key needed".to_owned(),
        }
    }

    fn state(&self) -> String {
        match (self.reachable, self.models.len()) {
            (Some(true), 1) => format!("{GOOD}reachable{RESET}, 1 model"),
            (Some(true), number) => format!("{GOOD}reachable{RESET}, {number} models"),
            (Some(false), _) => format!("{BAD}not reachable{RESET}"),
            (None, _) => format!("{DIM}not asked{RESET}"),
        }
    }
}

fn table(rows: &[Row], embedder: &EmbedderConfig) -> String {
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let api = format!("{:9}", row.api.as_str());
            let [name, url, key] =
                [&row.provider, &row.base_url, &row.key()].map(|it| output::plain(it));
            [name, api, url, key, row.state()]
        })
        .collect();
    let mut out = String::new();
    let name = cells.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    for (line, row) in aligned(&cells).lines().zip(rows) {
        let _ = writeln!(out, "{line}");
        // An error of a server that is not configured says nothing.
        if let Some(problem) = row.problem.as_ref().filter(|_| row.configured) {
            let _ = writeln!(out, "{:name$}  {DIM}{}{RESET}", "", output::line(problem, 160));
        }
    }
    let embedder = embedder.model.as_deref().unwrap_or("built-in");
    let _ = writeln!(out, "embedder: {}", output::plain(embedder));
    out
}
