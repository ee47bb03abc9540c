//! `plimsoll tools`: the registry of tools, and the directory that stands for their schemas.

mod file;

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_core::lazy_tools::{ToolDefinition, ToolPlan, ToolSession, described, plan_tools};
use plimsoll_engine::tool_registry::{
    RegisterError, RegisteredTool, register_tools, registered_tools,
};
use serde_json::json;

use crate::arguments::{StoreArguments, ToolsArguments, ToolsCommand};
use crate::clock;
use crate::config;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::load::tokenizer;
use crate::output;
use crate::store::Store;

pub(crate) fn run(arguments: &ToolsArguments) -> Result<(), CommandError> {
    match &arguments.command {
        ToolsCommand::List { store, json } => {
            let tools = registered(store, None)?;
            if *json {
                return output::json(&tools);
            }
            output::page(&list(&tools))
        }
        ToolsCommand::Add { file, store, server, tokens, json } => {
            add(file, store, server.as_deref(), tokens, *json)
        }
        ToolsCommand::Show { name, store, server, json } => {
            let tools = registered(store, None)?;
            let tool = one(&tools, name, server.as_deref())?;
            if *json {
                return output::json(tool);
            }
            output::data(&(described(&tool.definition) + "\n"))
        }
        ToolsCommand::Directory { store, config, tokens, json } => {
            directory(store, config.as_deref(), tokens, *json)
        }
    }
}

fn registered(
    store: &StoreArguments,
    settings: Option<&Path>,
) -> Result<Vec<RegisteredTool>, CommandError> {
    Store::open_existing(store, settings)?
        .knowledge(async |knowledge, tenant| registered_tools(knowledge, tenant).await)
}

fn list(tools: &[RegisteredTool]) -> String {
    let mut out = String::new();
    for tool in tools {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{:30} {:>5} {:>7} tokens  {}",
            output::plain(&tool.definition.name),
            output::plain(&tool.version),
            thousands(u64::from(tool.token_count)),
            output::plain(&tool.server),
        );
    }
    if tools.is_empty() {
        out.push_str("no tool is registered\n");
    }
    out
}

fn add(
    path: &Path,
    store: &StoreArguments,
    server: Option<&str>,
    tokens: &str,
    json: bool,
) -> Result<(), CommandError> {
    let tokenizer = tokenizer(tokens)?;
    let tools = file::read(path)?;
    let server = match server {
        Some(server) => server.to_owned(),
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let store = Store::open(store, None)?;
    let registered = store.with(async |_, knowledge, tenant| {
        register_tools(&*knowledge, tenant, &server, &tools, tokenizer, clock::now()).await
    });
    let registered = registered.map_err(|error| match error {
        RegisterError::NoSchema(error) => CommandError::usage(error),
        RegisterError::Store(error) => CommandError::failure(error),
    })?;
    if json {
        return output::json(&registered);
    }
    output::data(&format!(
        "{} tools added, {} changed, {} as before\n",
        registered.added.len(),
        registered.changed.len(),
        registered.unchanged.len(),
    ))
}

/// Returns the tool of a name; servers may have one each.
fn one<'a>(
    tools: &'a [RegisteredTool],
    name: &str,
    server: Option<&str>,
) -> Result<&'a RegisteredTool, CommandError> {
    let mut found = tools.iter().filter(|tool| {
        tool.definition.name == name && server.is_none_or(|server| tool.server == server)
    });
    let Some(tool) = found.next() else {
        let error = CommandError::usage(anyhow::anyhow!("no tool `{name}` is registered"));
        let known = tools.iter().map(|tool| &*tool.definition.name);
        return Err(match plimsoll_core::nearest(name, known) {
            Some(nearest) => error.hint(format!("the nearest is `{nearest}`")),
            None => error,
        });
    };
    if found.next().is_some() {
        return Err(CommandError::usage(anyhow::anyhow!("several servers have a tool `{name}`"))
            .hint("name one with `--server`"));
    }
    Ok(tool)
}

fn directory(
    store: &StoreArguments,
    settings: Option<&Path>,
    tokens: &str,
    json: bool,
) -> Result<(), CommandError> {
    let tokenizer = tokenizer(tokens)?;
    let tools: Vec<ToolDefinition> =
        registered(store, settings)?.into_iter().map(|tool| tool.definition).collect();
    let settings = config::read(settings)?.lazy_tools;
    let plan = plan_tools(&tools, &ToolSession::default(), &settings, tokenizer);
    let mut lines = String::new();
    for tool in &plan.directory {
        let _ = writeln!(lines, "- {}: {}", tool.name, tool.intent);
    }
    let directory_tokens = u64::from(tokenizer.count(&lines));
    if json {
        return output::json(&json!({
            "directory": plan.directory,
            "sent": plan.sent.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            "deferred": plan.deferred,
            "tokens": plan.tokens + directory_tokens,
            "all_tokens": plan.all_tokens,
        }));
    }
    output::page(&page(&plan, directory_tokens))
}

fn page(plan: &ToolPlan, directory_tokens: u64) -> String {
    let mut out = String::new();
    for tool in &plan.directory {
        let _ =
            writeln!(out, "{:30} {}", output::plain(&tool.name), output::line(&tool.intent, 90));
    }
    let all = plan.all_tokens;
    if plan.directory.is_empty() && plan.deferred.is_empty() {
        let _ = writeln!(out, "all schemas are sent: {} tokens", thousands(all));
        return out;
    }
    let _ = writeln!(
        out,
        "\n{} tokens with the schemas that are sent, {} with all",
        thousands(plan.tokens + directory_tokens),
        thousands(all),
    );
    out
}
