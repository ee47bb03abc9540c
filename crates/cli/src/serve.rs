//! `plimsoll serve`: starts the gateway from its settings and runs it until it is stopped.

use std::io::IsTerminal as _;
use std::sync::Arc;

use plimsoll_core::Tokenizer;
use plimsoll_core::policy::{Budget, Policy};
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::{HistoryStore, KnowledgeStore};
use plimsoll_gateway::{
    Answers, Gateway, GatewayConfig, Memory, Mode, Observation, Pages, Parts, Policies, ServeError,
    StoredAnswers, StoredMemory, serve,
};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::filter::LevelFilter;

use crate::arguments::{ServeArguments, StorePlaceArguments};
use crate::config::{self, Config, environment};
use crate::error::CommandError;
use crate::heaps;
use crate::models::{self, embedder};
use crate::output;
use crate::pages;
use crate::pricing::pricing;
use crate::store::Addresses;
use crate::system::outside;

/// `PLIMSOLL_LOG`: the level of log lines, off, error, warn, info, debug or trace.
pub(crate) const LOG: &str = "PLIMSOLL_LOG";

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), CommandError> {
    config::for_sending(arguments.settings.config.as_deref())?;
    let mut config = config::config(&arguments.settings)?;
    if let Some(listen) = arguments.listen {
        config.gateway.listen = listen;
    }
    if let Some(mode) = arguments.mode.as_deref().and_then(Mode::parse) {
        config.gateway.mode = mode;
    }
    if let Some(policy) = &arguments.policy {
        config.gateway.policy.clone_from(policy);
    }
    log(&config.gateway)?;
    raise_descriptors();
    heaps::share();
    let runtime = runtime()?;
    runtime.block_on(async {
        let gateway = open(config, &arguments.store).await?;
        let (gateway, listener) = (Arc::new(gateway.0), gateway.1);
        let address = listener.local_addr().map_err(CommandError::failure)?;
        output::data(&format!("plimsoll listens on http://{address}\n"))?;
        output::note(&format!("the dashboard is at http://{address}/ui/"));
        serve(listener, gateway, stopped()).await.map_err(failed)
    })
}

/// Makes the runtime that a gateway serves on.
pub(crate) fn runtime() -> Result<Runtime, CommandError> {
    let runtime =
        Builder::new_multi_thread().enable_all().build().map_err(CommandError::failure)?;
    outlive_file_limits(&runtime);
    Ok(runtime)
}

/// Has a write beyond a limit of file sizes fail, as on a full disk, where the signal would end the process.
fn outlive_file_limits(runtime: &Runtime) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        // The handler outlives what is returned.
        if signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).is_err() {
            tracing::warn!("a limit of file sizes ends the process");
        }
    }
    #[cfg(not(unix))]
    let _ = runtime;
}

/// Opens the store and the port.
pub(crate) async fn open(
    config: Config,
    store: &StorePlaceArguments,
) -> Result<(Gateway, TcpListener), CommandError> {
    check(&config)?;
    let (history, knowledge) = Addresses::new(store, &config.store)?.open().await?;
    let pages = pages::open(&config, history.clone(), knowledge.clone()).await?;
    open_with(config, history, knowledge, pages).await
}

/// Opens the port over a store that is open.
pub(crate) async fn open_with(
    config: Config,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    pages: Arc<dyn Pages>,
) -> Result<(Gateway, TcpListener), CommandError> {
    let settings = config.gateway.clone();
    let clock = outside().clock;
    let lazy_tools = settings.add.lazy_tools.then(|| config.lazy_tools.clone());
    let ingestion = config.safety.ingestion;
    let cards = config.cards.clone();
    let observation = cards.observe.then(|| Observation { knowledge: knowledge.clone(), cards });
    let mut answers: Option<Arc<dyn Answers>> = None;
    if settings.add.answers {
        let is_similar = config.answers.similar;
        let embedder = if is_similar { embedder(&models::open(&config.models)?) } else { None };
        let (knowledge, settings) = (knowledge.clone(), config.answers.clone());
        answers = Some(Arc::new(StoredAnswers::new(knowledge, embedder, settings, clock.clone())));
    }
    let mut memory: Option<Arc<dyn Memory>> = None;
    if settings.add.memory {
        let embedder = embedder(&models::open(&config.models)?);
        let frames = FrameBook::new(config.frames()?, embedder.as_deref()).await;
        memory = Some(Arc::new(StoredMemory::new(
            &config.memory,
            &config.request,
            frames.map_err(CommandError::failure)?,
            (history.clone(), knowledge),
            embedder,
            clock.clone(),
        )));
    }
    let parts = Parts {
        pages: Some(pages),
        history,
        clock,
        policies: Arc::new(Configured(config)),
        pricing: pricing(None)?,
        memory,
        answers,
        observation,
        ingestion,
        lazy_tools,
    };
    let listen = settings.listen;
    let gateway = Gateway::new(settings, parts, &environment).map_err(CommandError::usage)?;
    // The gateway would build the tables of the vocabulary itself. Here, the memory that this frees goes back to the system.
    Tokenizer::for_model("").count("a word");
    heaps::trim();
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot listen on {listen}"));
        CommandError::failure(error).hint("another port with `--listen 127.0.0.1:PORT`")
    })?;
    Ok((gateway, listener))
}

/// The smallest ceiling of a gateway (chosen: a system prompt and one question of an agent; less would hide the question itself).
const LEAST_BUDGET: u64 = 1000;

/// Refuses settings that a gateway cannot serve with, before anything is opened or said.
pub(crate) fn check(config: &Config) -> Result<(), CommandError> {
    if let Budget::Tokens(budget) = config.budget
        && budget < LEAST_BUDGET
    {
        let error = anyhow::anyhow!("a budget of {budget} tokens leaves no room for a request");
        return Err(CommandError::usage(error).hint(format!("give at least {LEAST_BUDGET}")));
    }
    if config.gateway.is_open_to_all() {
        return Err(failed(ServeError::Open { address: config.gateway.listen }));
    }
    let policies = Configured(config.clone());
    Gateway::check(&config.gateway, &policies, &outside().clock, &environment)
        .map_err(CommandError::usage)
}

/// Raises the limit of open files to the most that the system allows: each response in progress needs two, and the usual limit is 1,024.
fn raise_descriptors() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        if setrlimit(Resource::Nofile, limit).is_err() {
            tracing::warn!("the limit of open files stays as it is");
        }
    }
}

/// Makes the error of a gateway that could not serve.
pub(crate) fn failed(error: ServeError) -> CommandError {
    match error {
        ServeError::Open { .. } => CommandError::usage(error)
            .hint("listen on 127.0.0.1, or give `[gateway.keys]`; docs/gateway.md says how"),
        ServeError::Listen(_) => CommandError::failure(error),
    }
}

/// Policies by name, with the settings of the command line.
#[derive(Debug)]
struct Configured(Config);

impl Policies for Configured {
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy> {
        self.0.policy_within(name, budget)
    }
}

/// Begins to log to standard error, as lines or as JSON.
pub(crate) fn log(config: &GatewayConfig) -> Result<(), CommandError> {
    log_from(config, "info")
}

/// Begins to log from a level on, unless [`LOG`] names another.
pub(crate) fn log_from(config: &GatewayConfig, level: &str) -> Result<(), CommandError> {
    let level = environment(LOG).unwrap_or_else(|| level.to_owned());
    let level: LevelFilter = level.parse().map_err(|_| {
        CommandError::usage(anyhow::anyhow!("{LOG} is `{level}`"))
            .hint("one of off, error, warn, info, debug, trace")
    })?;
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    if config.log_json {
        lines.json().init();
    } else {
        lines.init();
    }
    Ok(())
}

/// Returns when the process is asked to stop.
pub(crate) async fn stopped() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            let interrupted = std::pin::pin!(interrupted);
            let terminated = std::pin::pin!(terminated.recv());
            futures_util::future::select(interrupted, terminated).await;
            return;
        }
    }
    let _ = interrupted.await;
}
