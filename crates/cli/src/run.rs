//! `plimsoll run`: a cascade, from its file to its output.

mod dry;
mod library;
mod table;
mod watch;

use std::path::Path;
use std::sync::Arc;

use plimsoll_cascade::Cascade;
use plimsoll_cascade::run::{Human, ModelSource, RunError, RunSettings, Runner};
use plimsoll_core::cost::Pricing;
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::{ChatModel, ModelError, SessionId, ToolSource};
use plimsoll_models::{Models, ScriptedModel};
use plimsoll_tools::{Commands, McpServers};
use serde_json::{Map, Value};

use crate::arguments::RunArguments;
use crate::cascade;
use crate::config::{self, environment};
use crate::error::CommandError;
use crate::models;
use crate::output;
use crate::pricing::{Unlisted, pricing};
use crate::store::{Store, session_id};
use crate::system::outside;

pub(crate) fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    let cascade = Arc::new(read(&arguments.cascade)?);
    let input = input(arguments.input.as_deref())?;
    let config = config::for_sending(arguments.config.as_deref())?;
    if arguments.dry_run {
        return dry::run(&cascade, input);
    }
    let store = Store::open(&arguments.store, arguments.config.as_deref())?;
    let session = session(arguments, &cascade)?;
    let model = arguments.model.clone().or_else(|| config.run.model.clone());
    let models = Arc::new(models::open(&config.models)?);
    let pricing = Arc::new(pricing(None)?);
    let sources = Sources::new(models.clone(), model, pricing.clone())?;
    let watch = Arc::new(watch::Watch::new(arguments.json));
    let clock = outside().clock;
    let commands = config.tools.commands(&environment).map_err(CommandError::usage)?;
    let servers = config.tools.servers(&environment).map_err(CommandError::usage)?;
    let tools: Vec<Arc<dyn ToolSource>> = vec![
        Arc::new(Commands::new(commands, clock.clone())),
        Arc::new(McpServers::new(servers, clock.clone())),
    ];
    let folder = arguments.cascade.parent().unwrap_or(Path::new(""));
    let settings = RunSettings {
        images: Some(arguments.images.clone().unwrap_or_default()),
        stubs: arguments.stub_tools,
        safety: config.safety,
        cards: config.cards.clone(),
        ..config.run
    };
    let embedder = models::embedder(&models);
    let outcome = store.with(async |history, knowledge, tenant| {
        let runner = Runner {
            tenant: tenant.clone(),
            history,
            knowledge,
            models: Arc::new(sources),
            tools,
            human: Arc::new(Terminal),
            library: Arc::new(library::Folder::new(folder, &arguments.cascade)),
            embedder,
            clock,
            pricing,
            observer: watch.clone(),
            settings,
        };
        runner.run(cascade, input, &session).await
    });
    watch.finish(&session)?;
    let outcome = outcome.map_err(|error| failed(error, &session, arguments))?;
    if !arguments.json {
        output::data(&format!("{}\n", outcome.output.trim_end()))?;
    }
    Ok(())
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
        CommandError::usage(anyhow::anyhow!("the input is no JSON object: {error}"))
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
    let file = arguments.cascade.display();
    CommandError::failure(error)
        .hint(format!("`plimsoll run {file} --resume {session}` goes on where it stopped"))
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
        usual: Option<String>,
        pricing: Arc<Pricing>,
    ) -> Result<Self, CommandError> {
        // `scripted:FILE` is the older spelling of `scripted/FILE`.
        let file = usual.as_deref().and_then(|name| {
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

/// The person at the terminal; nobody answers if input is not a terminal.
#[derive(Debug)]
struct Terminal;

#[async_trait::async_trait]
impl Human for Terminal {
    async fn ask(&self, question: &str) -> Option<String> {
        use std::io::IsTerminal as _;
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
}
