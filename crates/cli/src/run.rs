//! `plimsoll run`: a cascade, from its file to its output.

mod dry;
mod served;
mod table;
mod watch;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::{Either, select};
use plimsoll_cascade::run::{Human, ModelOverrides, ModelSource, RunError, RunSettings, Runner};
use plimsoll_cascade::{Cascade, NeedKind};
use plimsoll_core::cost::Pricing;
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::{ChatModel, ModelError, SessionId, ToolSource};
use plimsoll_models::{Models, ScriptedModel};
use plimsoll_tools::{Commands, McpServers, StarterConfig};
use serde_json::{Map, Value};

use crate::arguments::RunArguments;
use crate::cascade;
use crate::config::{self, Config, environment};
use crate::error::CommandError;
use crate::models;
use crate::needs;
use crate::output;
use crate::pricing::{Unlisted, pricing};
use crate::store::{Store, session_id};
use crate::system::outside;

pub(crate) use served::ServedCascades;

pub(crate) fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    let cascade = Arc::new(read(&arguments.cascade)?);
    let input = input(arguments.input.as_deref())?;
    let config = config::for_sending(arguments.config.as_deref())?;
    if arguments.dry_run {
        return dry::run(&cascade, input);
    }
    let store = Store::open(&arguments.store, arguments.config.as_deref())?;
    let session = session(arguments, &cascade)?;
    let overrides = ModelOverrides {
        all: arguments.model.clone(),
        phases: pairs(&arguments.model_for, "--model-for PHASE=MODEL")?,
        renamed: pairs(&arguments.model_map, "--model-map OLD=NEW")?,
    };
    if let Some(name) = overrides.phases.keys().find(|name| cascade.phase(name).is_none()) {
        return Err(CommandError::usage(anyhow::anyhow!(
            "`--model-for {name}`: the cascade has no such phase"
        )));
    }
    let answers = pairs(&arguments.answer, "--answer PHASE=ANSWER")?;
    let models = Arc::new(models::open(&config.models)?);
    let pricing = Arc::new(pricing(None)?);
    let usual = config.run.model.clone();
    let sources = Sources::new(models.clone(), &overrides, usual, pricing.clone())?;
    let watch = Arc::new(watch::Watch::new(arguments.json));
    let clock = outside().clock;
    let mut starter = config.tools.starter.clone();
    starter.allow.extend(arguments.allow_tool.iter().cloned());
    let off = starters_off(&cascade, &starter);
    let tools = tools(&config, &starter)?;
    let folder = arguments.cascade.parent().unwrap_or(Path::new(""));
    let settings = RunSettings {
        images: Some(arguments.images.clone().unwrap_or_default()),
        stubs: arguments.stub_tools,
        models: overrides,
        safety: config.safety,
        cards: config.cards.clone(),
        ..config.run
    };
    let embedder = models::embedder(&models);
    let recorded = store.with(async |history, _, tenant| {
        history.messages(tenant, &session, 0, 1).await.map(|messages| !messages.is_empty())
    });
    let recorded = recorded.map_err(CommandError::failure)?;
    check_session(arguments, &session, recorded)?;
    let outcome = store.with(async |history, knowledge, tenant| {
        let runner = Runner {
            tenant: tenant.clone(),
            history,
            knowledge,
            models: Arc::new(sources),
            tools,
            human: Arc::new(Terminal { answers }),
            library: Arc::new(crate::library::Folder::new(folder, &arguments.cascade)),
            embedder,
            clock,
            pricing,
            observer: watch.clone(),
            settings,
        };
        let run = std::pin::pin!(runner.run(cascade, input, &session));
        let stopped = std::pin::pin!(tokio::signal::ctrl_c());
        match select(run, stopped).await {
            Either::Left((outcome, _)) => Some(outcome),
            Either::Right(_) => None,
        }
    });
    watch.finish(&session)?;
    let outcome = outcome.ok_or_else(|| {
        let stopped = CommandError::failure(anyhow::anyhow!("the run was stopped"));
        stopped.hint(goes_on(&session, arguments))
    })?;
    let outcome = outcome.map_err(|error| {
        let is_missing = matches!(error, RunError::Missing { .. });
        let error = failed(error, &session, arguments);
        let starter = off.iter().find(|_| is_missing);
        match starter {
            Some(starter) => error.hint(needs::not_allowed(starter)),
            None => error,
        }
    })?;
    if !arguments.json {
        output::data(&format!("{}\n", outcome.output.trim_end()))?;
    }
    Ok(())
}

/// Returns the tools of the settings, with these starter tools.
fn tools(
    config: &Config,
    starter: &StarterConfig,
) -> Result<Vec<Arc<dyn ToolSource>>, CommandError> {
    let clock = outside().clock;
    let commands = config.tools.commands(&environment).map_err(CommandError::usage)?;
    let servers = config.tools.servers(&environment).map_err(CommandError::usage)?;
    let starter = starter.tools(&environment, clock.clone()).map_err(CommandError::usage)?;
    Ok(vec![
        Arc::new(Commands::new(commands, clock.clone())),
        Arc::new(McpServers::new(servers, clock)),
        Arc::new(starter),
    ])
}

/// Reads a cascade and prints its problems; an error ends the command.
pub(crate) fn read(path: &Path) -> Result<Cascade, CommandError> {
    let (cascade, problems) = cascade::read(path)?;
    for problem in &problems {
        output::progress(cascade::line(path, problem).trim_end());
    }
    cascade.ok_or_else(|| {
        CommandError::usage(anyhow::anyhow!("{} can't be run", path.display()))
            .hint("`plimsoll validate` tells the same")
    })
}

/// Reads the input: a JSON object, or `@FILE` that holds one.
fn input(given: Option<&str>) -> Result<Map<String, Value>, CommandError> {
    let Some(given) = given else { return Ok(Map::new()) };
    let text = match given.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            CommandError::usage(anyhow::Error::new(error).context(format!("cannot read {path}")))
        })?,
        None => given.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        CommandError::usage(anyhow::anyhow!("the input is not a JSON object: {error}"))
            .hint("give '{\"name\": \"value\"}' or @FILE")
    })
}

fn session(arguments: &RunArguments, cascade: &Cascade) -> Result<SessionId, CommandError> {
    if let Some(id) = arguments.resume.as_deref().or(arguments.session.as_deref()) {
        return session_id(id);
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name = head(cascade.cascade_id.as_str(), Limit::Characters(60));
    let name: String = name.chars().map(plain).collect();
    session_id(&format!("{name}-{}", crate::clock::now().0))
}

fn failed(error: RunError, session: &SessionId, arguments: &RunArguments) -> CommandError {
    let is_usage = matches!(
        error,
        RunError::Missing { .. } | RunError::Changed { .. } | RunError::Template { .. }
    );
    if is_usage {
        return CommandError::usage(error);
    }
    if let RunError::Waiting { phase, .. } = &error {
        let file = arguments.cascade.display();
        let hint = format!(
            "`plimsoll run {file} --resume {session} --answer '{phase}=ANSWER'` goes on with an answer"
        );
        return CommandError::failure(error).hint(hint);
    }
    CommandError::failure(error).hint(goes_on(session, arguments))
}

/// Returns the sentence that says how a run that stopped goes on.
fn goes_on(session: &SessionId, arguments: &RunArguments) -> String {
    let file = arguments.cascade.display();
    format!("`plimsoll run {file} --resume {session}` goes on where it stopped")
}

/// Returns the starter tools that a cascade needs and that are off.
fn starters_off(cascade: &Cascade, config: &StarterConfig) -> Vec<&'static str> {
    let names = config.names();
    let tools = cascade.needs().into_iter().filter(|need| need.kind == NeedKind::Tool);
    let off = tools.filter_map(|need| need.name).filter(|name| !names.contains(&name.as_str()));
    off.filter_map(|name| StarterConfig::starter_of(&name)).collect()
}

/// Reads `KEY=VALUE` arguments.
fn pairs(given: &[String], shape: &str) -> Result<BTreeMap<String, String>, CommandError> {
    let pair = |text: &String| {
        let split =
            text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
        let (key, value) = split.ok_or_else(|| {
            CommandError::usage(anyhow::anyhow!("`{text}` is not of the form {shape}"))
        })?;
        Ok((key.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}

/// Refuses to resume a session without a record, and asks before a session goes on that has one.
fn check_session(
    arguments: &RunArguments,
    session: &SessionId,
    is_recorded: bool,
) -> Result<(), CommandError> {
    if arguments.resume.is_some() && !is_recorded {
        let error = anyhow::anyhow!("there is no record of the session {session}");
        return Err(CommandError::usage(error)
            .hint("`plimsoll sessions` lists those in the store; `--session` begins a new one"));
    }
    if arguments.session.is_some() && is_recorded && !confirms(session) {
        let error = anyhow::anyhow!("the session {session} has a record already");
        return Err(CommandError::usage(error)
            .hint(format!("`--resume {session}` goes on with it, another id begins anew")));
    }
    Ok(())
}

/// Asks whether a recorded session goes on; nobody answers where input is not a terminal.
fn confirms(session: &SessionId) -> bool {
    let question = format!("The session {session} has a record. Go on with it? (yes or no)");
    ask(&question).is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Models by name, with a default for phases that name none.
#[derive(Debug)]
struct Sources {
    models: Arc<Models>,
    usual: Option<String>,
    /// A script answers for every model.
    script: Option<Arc<ScriptedModel>>,
    pricing: Arc<Pricing>,
    unlisted: Unlisted,
}

impl Sources {
    fn new(
        models: Arc<Models>,
        overrides: &ModelOverrides,
        usual: Option<String>,
        pricing: Arc<Pricing>,
    ) -> Result<Self, CommandError> {
        // `scripted:FILE` is the older spelling of `scripted/FILE`.
        let given = overrides.all.as_deref().or(usual.as_deref());
        let file = given.and_then(|name| {
            name.strip_prefix("scripted:").or_else(|| name.strip_prefix("scripted/"))
        });
        let script = match file {
            Some(file) => {
                let script = ScriptedModel::from_file("scripted", Path::new(file));
                Some(Arc::new(script.map_err(CommandError::usage)?))
            }
            None => None,
        };
        Ok(Self { models, usual, script, pricing, unlisted: Unlisted::default() })
    }
}

impl ModelSource for Sources {
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError> {
        if let Some(script) = &self.script {
            return Ok(script.clone());
        }
        match name.or(self.usual.as_deref()) {
            Some(name) => {
                let model = self.models.chat(name)?;
                let priced = self.pricing.of(Some(model.model()), None);
                self.unlisted.warn(Some(model.model()), &priced);
                Ok(model)
            }
            None => Err(ModelError::Invalid(
                "no model is named: give `--model provider/model`, or `model` in the cascade or under [run]".to_owned(),
            )),
        }
    }

    fn passed_over(&self, _: Option<&str>) {
        if let Some(script) = &self.script {
            script.pass_over();
        }
    }
}

/// The person at the terminal; without answers from the arguments nobody answers if input is not a terminal.
#[derive(Debug)]
struct Terminal {
    /// By phase.
    answers: BTreeMap<String, String>,
}

#[async_trait::async_trait]
impl Human for Terminal {
    async fn ask(&self, phase: &str, question: &str) -> Option<String> {
        self.answers.get(phase).cloned().or_else(|| ask(question))
    }
}

/// Asks at the terminal.
fn ask(question: &str) -> Option<String> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return None;
    }
    output::note(&format!("? {question}"));
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(read) if read > 0 => Some(line.trim_end().to_owned()),
        _ => None,
    }
}
