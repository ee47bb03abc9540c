//! `context.json`: shares and thresholds of a context window, in the shape of its document.

use std::path::{Path, PathBuf};

use plimsoll_core::ContextBudget;
use plimsoll_formats::Session;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::arguments::WindowArguments;
use crate::error::CommandError;

/// The file's name in the current folder.
const FILE: &str = "context.json";

/// Reads the budget that the arguments name.
///
/// The window is that of `--window`, else the one that the file states, else the recorded one, else the document's.
pub(crate) fn context_budget(
    arguments: &WindowArguments,
    session: &Session,
) -> Result<ContextBudget, CommandError> {
    let found = arguments
        .context_config
        .clone()
        .or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.is_file()));
    let (mut budget, stated) = match found {
        Some(path) => parse(&path)?,
        None => (ContextBudget::default(), false),
    };
    if let Some(window) = arguments.window {
        budget.total_tokens = window;
    } else if let Some(recorded) = session.header.context_window.filter(|_| !stated)
        && recorded > 0
    {
        budget.total_tokens = recorded;
    }
    budget.checked().map_err(|error| CommandError::usage(error).hint("give a window of tokens"))
}

fn parse(path: &Path) -> Result<(ContextBudget, bool), CommandError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Stated {
        total_tokens: Option<IgnoredAny>,
    }
    let wrong = |error: anyhow::Error| {
        CommandError::usage(error.context(path.display().to_string()))
            .hint("another file is read with `--context-config`")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.into()))?;
    let budget = ContextBudget::parse(&text).map_err(|error| wrong(error.into()))?;
    let stated: Stated = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
    Ok((budget, stated.total_tokens.is_some()))
}
