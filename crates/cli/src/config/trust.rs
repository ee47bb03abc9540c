//! Trust: without the user's word, only harmless settings of a project are in force.
//!
//! A cloned folder can bring a `plimsoll.toml`. Without this check it could send the user's keys and stored messages to any address,
//! have any model read them, or write instructions into every context.
//! The trust holds for the folder and for what the file says there, as with direnv: another address needs another word.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toml::{Table, Value};

use super::files;
use crate::error::CommandError;
use crate::output;

/// Settings that need no trust: budgets, windows, policies, weights and thresholds, as `table` or `table.key`.
///
/// The list names what is harmless and not what is dangerous, so that a new setting needs trust until somebody has thought about it.
const FREE: &[&str] = &[
    "answers.max_age_seconds",
    "answers.most_bytes",
    "answers.most_entries",
    "budget",
    "cards.batch_size",
    "cards.lease_seconds",
    "cards.max_attempts",
    "cards.per_artifact",
    "cards.retry_seconds",
    "clear_tool_uses",
    "gateway.marks",
    "gateway.policy",
    "intra_phase",
    "lazy_tools",
    "memory.confidence",
    "memory.context",
    "memory.extraction",
    "memory.frame_selection",
    "memory.lifecycles",
    "memory.search",
    "newest",
    "pin",
    "recall",
    "request",
    "run.artefact_from",
    "run.inter_phase_enabled",
    "run.intra_phase_enabled",
    "run.max_attempts",
    "run.max_depth",
    "run.max_tokens",
    "run.max_turns",
    "said_once",
    "selection.callout_weight",
    "selection.keyword_weight",
    "selection.max_messages",
    "selection.max_tokens",
    "selection.recency_weight",
    "selection.similarity_threshold",
    "settle",
    "thinking",
];

/// Tables that name where text goes, what runs, and what it costs. Without the rest, a command does less than the file says;
/// without these it would do something else.
const DECISIVE: &[&str] = &["cards", "gateway", "models", "run", "selection", "tools"];

/// Splits settings into those that anybody may give, and those that need trust.
fn split(all: &Table) -> (Table, Table) {
    let (mut free, mut guarded) = (Table::new(), Table::new());
    for (name, value) in all {
        match value {
            Value::Table(table) if !FREE.contains(&name.as_str()) => {
                for (key, value) in table {
                    let is_free = FREE.contains(&format!("{name}.{key}").as_str());
                    let place = if is_free { &mut free } else { &mut guarded };
                    let table = place.entry(name.clone()).or_insert(Value::Table(Table::new()));
                    if let Value::Table(table) = table {
                        table.insert(key.clone(), value.clone());
                    }
                }
            }
            _ => {
                let place = if FREE.contains(&name.as_str()) { &mut free } else { &mut guarded };
                place.insert(name.clone(), value.clone());
            }
        }
    }
    (free, guarded)
}

/// Returns the keys that need trust, as `gateway.upstreams`.
pub(crate) fn guarded_keys(text: &str) -> Vec<String> {
    let (_, guarded) = split(&text.parse::<Table>().unwrap_or_default());
    let keys = guarded.iter().flat_map(|(name, value)| match value {
        Value::Table(table) => table.keys().map(|key| format!("{name}.{key}")).collect(),
        _ => vec![name.clone()],
    });
    keys.collect()
}

/// Returns what the project's settings become without trust: its own free keys, and the user's for the rest.
///
/// `None` where nothing changes. A word about what is left out goes to standard error.
pub(super) fn untrusted(path: &Path, text: &str) -> Option<Table> {
    let user = files::user().and_then(|path| files::read(&path).ok());
    let (mut free, guarded) = split(&text.parse().ok()?);
    let (_, users) = split(&user.and_then(|text| text.parse().ok()).unwrap_or_default());
    if guarded.is_empty() && users.is_empty() || is_trusted(path, text) {
        return None;
    }
    if !guarded.is_empty() {
        output::warning(&format!(
            "{} is not trusted, so its {} are ignored; `plimsoll trust` allows them",
            path.display(),
            guarded_keys(text).join(", ")
        ));
    }
    for (name, value) in users {
        match (free.get_mut(&name), value) {
            (Some(Value::Table(table)), Value::Table(users)) => table.extend(users),
            (_, value) => drop(free.insert(name, value)),
        }
    }
    Some(free)
}

/// Refuses settings of a project that say where text is sent or what runs, and that the user has not trusted.
///
/// Without them the text would go somewhere else than the file says, which may be worse than nowhere.
pub(super) fn refuse_unsent(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut keys = guarded_keys(text);
    keys.retain(|key| DECISIVE.contains(&key.split('.').next().unwrap_or(key)));
    if keys.is_empty() || is_trusted(path, text) {
        return Ok(());
    }
    let error = anyhow::anyhow!("{} is not trusted, and sets {}", path.display(), keys.join(", "));
    Err(CommandError::usage(error)
        .hint("`plimsoll trust` allows that; `--config FILE` takes other settings"))
}

/// Returns the line by which a trusted file is known: the digest of what needs trust, and its place.
fn line_of(path: &Path, text: &str) -> Option<String> {
    let place = path.canonicalize().ok()?;
    let (_, guarded) = split(&text.parse::<Table>().unwrap_or_default());
    // The order of a table's keys is its own, so comments and spaces do not matter.
    let digest = plimsoll_engine::digest(guarded.to_string().as_bytes());
    Some(format!("{digest} {}", place.display()))
}

fn list() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.data_dir().join("plimsoll").join("trusted"))
}

fn trusted() -> Vec<String> {
    let text = list().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns whether the user has trusted what a file says now.
pub(crate) fn is_trusted(path: &Path, text: &str) -> bool {
    line_of(path, text).is_some_and(|line| trusted().contains(&line))
}

/// Trusts what a file says now, or no longer.
pub(crate) fn trust(path: &Path, text: &str, trusts: bool) -> Result<(), CommandError> {
    let none = || CommandError::failure(anyhow::anyhow!("there is no place for the list of trust"));
    let list = list().ok_or_else(none)?;
    let line = line_of(path, text).ok_or_else(none)?;
    let place = line.split_once(' ').map_or("", |(_, place)| place).to_owned();
    let mut lines = trusted();
    // The word about an earlier content of the same file goes.
    lines.retain(|known| known.split_once(' ').is_none_or(|(_, known)| known != place));
    if trusts {
        lines.push(line);
    }
    let cannot = |error: std::io::Error| {
        let what = format!("cannot write {}", list.display());
        CommandError::failure(anyhow::Error::new(error).context(what))
    };
    if let Some(folder) = list.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    let mut text = lines.join("\n");
    text.push('\n');
    std::fs::write(&list, text).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::config::Config;

    fn guarded(text: &str) -> Vec<String> {
        let mut keys = guarded_keys(text);
        keys.sort();
        keys
    }

    #[test]
    fn keys_that_send_run_or_open_something_need_trust() {
        let text = "budget = 5\n[gateway]\npolicy = \"full\"\n[gateway.upstreams.a]\nbase_url = \"http://a\"\n[tools.commands.x]\ncommand = [\"x\"]\n[models.providers.a]\nkey_env = \"K\"\n[settle]\nleast = 3\n[store]\naddress = \"a\"\n[safety.logs]\npersonal = \"flag\"\n";
        let expected = [
            "gateway.upstreams",
            "models.providers",
            "safety.logs",
            "store.address",
            "tools.commands",
        ];
        assert_eq!(guarded(text), expected);
        let (free, _) = split(&text.parse().expect("TOML"));
        assert_eq!(free["gateway"].as_table().expect("a table").len(), 1);
        assert!(free.contains_key("budget") && free.contains_key("settle"));
    }

    #[test]
    fn models_and_operator_text_need_trust() {
        let text = "[cards]\nsummarizer_model = 'a/b'\nobserve = true\nbatch_size = 3\n[run]\nmodel = 'a/b'\nmax_turns = 3\n[selection]\nstrategy = 'llm'\nselector_model = 'a/b'\nmax_tokens = 3\n[memory]\nidentity = 'x'\nrules = 'x'\nprofile = 'x'\n[[memory.frames]]\nname = 'x'\n[memory.search]\nfacts = 3\n";
        let expected = [
            "cards.observe",
            "cards.summarizer_model",
            "memory.frames",
            "memory.identity",
            "memory.profile",
            "memory.rules",
            "run.model",
            "selection.selector_model",
            "selection.strategy",
        ];
        assert_eq!(guarded(text), expected);
    }

    #[test]
    fn a_setting_that_is_new_needs_trust() {
        assert_eq!(
            guarded("brand_new = 1\n[memory]\nbrand_new = 1\n"),
            ["brand_new", "memory.brand_new"]
        );
    }

    #[test]
    fn each_free_setting_exists() {
        let all = Table::try_from(Config::default()).expect("settings are TOML");
        for path in FREE {
            let (table, key) = path.split_once('.').unwrap_or((path, ""));
            let found =
                all.get(table).is_some_and(|table| key.is_empty() || table.get(key).is_some());
            assert!(found, "{path}");
        }
    }
}
