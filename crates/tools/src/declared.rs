//! The parts that every declared tool has: variables of the environment, a timeout, and faults.

use std::collections::BTreeMap;
use std::time::Duration;

/// Variables that every program gets: where programs are, where to write, which language.
const GIVEN: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TERM"];

/// Reads a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A tool that cannot be called as it is declared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolConfigError {
    #[error("`timeout_seconds` of the tool `{name}` is {seconds}")]
    Timeout { name: String, seconds: f64 },
    #[error("the MCP server `{0}` needs a command or a url; one of them, not both")]
    Reached(String),
    #[error("there is no starter tool `{0}`")]
    Starter(String),
}

pub(crate) fn given(names: &[String], environment: Environment<'_>) -> BTreeMap<String, String> {
    let all = GIVEN.into_iter().chain(names.iter().map(String::as_str));
    all.filter_map(|name| Some((name.to_owned(), environment(name)?))).collect()
}

pub(crate) fn timeout(name: &str, seconds: f64) -> Result<Duration, ToolConfigError> {
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    timeout.ok_or_else(|| ToolConfigError::Timeout { name: name.to_owned(), seconds })
}
