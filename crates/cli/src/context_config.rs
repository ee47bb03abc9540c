//! `context.json`: shares and thresholds of a context window, in the shape of its document.

use std::path::{Path, PathBuf};

use plimsoll_core::ContextBudget;
use plimsoll_formats::Session;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::arguments::WindowArguments;
use crate::error::CommandError;
use crate::pricing::pricing;

/// The file's name in the current folder.
pub(crate) const FILE: &str = "context.json";

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
    let Some(path) = found else { return Ok(recorded_budget(arguments.window, session)) };
    let (budget, is_stated) = parse(&path)?;
    let recorded = recorded_budget(arguments.window, session).total_tokens;
    let is_kept = is_stated && arguments.window.is_none();
    Ok(ContextBudget {
        total_tokens: if is_kept { budget.total_tokens } else { recorded },
        ..budget
    })
}

/// Returns the document's shares of `window`, else of the recorded one, else of the listed one of the session's model, else of
/// the document's.
pub(crate) fn recorded_budget(window: Option<u64>, session: &Session) -> ContextBudget {
    let mut budget = ContextBudget::default();
    let is_known = |window: &u64| *window > 0;
    let recorded = || session.header.context_window.filter(is_known);
    let listed = || {
        let model = session.header.model.as_deref()?;
        let pricing = pricing(None).ok()?;
        let priced = pricing.of(Some(model), None);
        Some(u64::from(priced.prices.window)).filter(|_| !priced.is_estimate()).filter(is_known)
    };
    budget.total_tokens = window.or_else(recorded).or_else(listed).unwrap_or(budget.total_tokens);
    budget
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
