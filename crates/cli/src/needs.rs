//! Tools, models, validators and cascades that a run of a cascade needs, and which of them are missing here.

use std::path::Path;

use plimsoll_cascade::run::{Library as _, own_tools, starter_validator};
use plimsoll_cascade::{Cascade, NeedKind, RunNeed};
use plimsoll_models::Models;
use plimsoll_tools::StarterConfig;
use serde::Serialize;

use crate::config::Config;
use crate::error::CommandError;
use crate::library::Folder;
use crate::models;

/// A need, and what is missing about it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CheckedNeed {
    #[serde(flatten)]
    need: RunNeed,
    is_missing: bool,
    /// Why it is missing, and how it comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The sources of tools and models that a configuration gives.
#[derive(Debug)]
pub(crate) struct Means {
    config: Config,
    models: Models,
}

impl Means {
    pub(crate) fn new(config: Config) -> Result<Self, CommandError> {
        let models = models::open(&config.models)?;
        Ok(Self { config, models })
    }

    /// Returns what a cascade needs.
    pub(crate) fn check(&self, cascade: &Cascade, path: &Path) -> Vec<CheckedNeed> {
        let folder = Folder::new(path.parent().unwrap_or(Path::new("")), path);
        let checked = cascade.needs().into_iter().map(|need| {
            let why = match (need.kind, need.name.as_deref()) {
                (NeedKind::Tool, Some(name)) => self.without_tool(name),
                (NeedKind::Validator, Some(name)) => {
                    let is_there =
                        starter_validator(name).is_some() || folder.cascade(name).is_ok();
                    if is_there { None } else { self.without_tool(name) }
                }
                (NeedKind::Cascade, Some(name)) => folder.cascade(name).err(),
                (NeedKind::Model, name) => {
                    let usual = self.config.run.model.as_deref();
                    match name.or(usual) {
                        Some(name) => self.models.chat(name).err().map(|error| error.to_string()),
                        None => Some("give `--model`, or `model` under [run]".to_owned()),
                    }
                }
                _ => None,
            };
            CheckedNeed { need, is_missing: why.is_some(), why }
        });
        checked.collect()
    }

    /// Returns why a tool is missing; `None` where it is there.
    fn without_tool(&self, name: &str) -> Option<String> {
        let tools = &self.config.tools;
        if own_tools().contains(&name)
            || tools.commands.contains_key(name)
            || tools.starter.names().contains(&name)
        {
            return None;
        }
        Some(match StarterConfig::starter_of(name) {
            Some(starter) => not_allowed(starter),
            None if !tools.mcp.is_empty() => "no command; an MCP server may have it".to_owned(),
            None => "nobody has it".to_owned(),
        })
    }
}

/// Returns how a starter tool that is off is allowed.
pub(crate) fn not_allowed(starter: &str) -> String {
    format!(
        "the starter tool `{starter}` is off; `--allow-tool {starter}` allows it, or `allow` under [tools.starter]"
    )
}

/// Returns the lines on needs: all of them by kind, and why some are missing.
pub(crate) fn lines(needs: &[CheckedNeed]) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in [NeedKind::Tool, NeedKind::Model, NeedKind::Validator, NeedKind::Cascade] {
        let of_kind = needs.iter().filter(|one| one.need.kind == kind && one.need.name.is_some());
        let names: Vec<String> = of_kind
            .map(|one| {
                let name = one.need.name.as_deref().unwrap_or_default();
                let mark = if one.is_missing { " (missing)" } else { "" };
                format!("`{name}`{mark}")
            })
            .collect();
        if !names.is_empty() {
            lines.push(format!("a run needs the {}s {}", kind.as_str(), names.join(", ")));
        }
    }
    lines
}

/// Returns how what is missing comes, each reason once.
pub(crate) fn hints(needs: &[CheckedNeed]) -> Vec<&str> {
    let mut hints: Vec<&str> = Vec::new();
    for one in needs.iter().filter(|one| one.need.kind == NeedKind::Tool) {
        if let Some(why) = one.why.as_deref().filter(|why| why.contains("--allow-tool"))
            && !hints.contains(&why)
        {
            hints.push(why);
        }
    }
    hints
}
