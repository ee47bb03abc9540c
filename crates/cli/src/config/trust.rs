//! Trust: a project's settings may name upstreams, keys, commands and stores only after the user has said so.
//!
//! A cloned folder can bring a `plimsoll.toml`. Without this check it could send the user's keys and stored messages to any address.
//! The trust holds for the folder and for what the file says there, as with direnv: another address needs another word.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toml::{Table, Value};

use super::files;
use crate::error::CommandError;
use crate::output;

/// Tables of settings that need trust. Of the others, nothing leaves the machine, runs or opens a file.
const GUARDED: &[&str] = &["gateway", "models", "safety", "store", "tools"];

/// Keys of those tables that need none.
const FREE: &[(&str, &str)] = &[("gateway", "policy"), ("gateway", "marks")];

/// Splits settings into those that anybody may give, and those that need trust.
fn split(all: &Table) -> (Table, Table) {
    let (mut free, mut guarded) = (Table::new(), Table::new());
    for (name, value) in all {
        match value {
            Value::Table(table) if GUARDED.contains(&name.as_str()) => {
                let is_free = |key: &str| FREE.contains(&(name.as_str(), key));
                for (key, value) in table {
                    let place = if is_free(key) { &mut free } else { &mut guarded };
                    let table = place.entry(name.clone()).or_insert(Value::Table(Table::new()));
                    if let Value::Table(table) = table {
                        table.insert(key.clone(), value.clone());
                    }
                }
            }
            _ => {
                let place = if GUARDED.contains(&name.as_str()) { &mut guarded } else { &mut free };
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
            "{} is not trusted, so its {} are left out; `plimsoll trust` allows them",
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

/// Refuses settings of a project that name where text is sent, and that the user has not trusted.
///
/// Without them the text would go somewhere else than the file says, which may be worse than nowhere.
pub(super) fn refuse_unsent(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut keys = guarded_keys(text);
    keys.retain(|key| !key.starts_with("store.") && !key.starts_with("safety."));
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

    #[test]
    fn keys_that_send_run_or_open_something_need_trust() {
        let text = "budget = 5\n[gateway]\npolicy = \"full\"\n[gateway.upstreams.a]\nbase_url = \"http://a\"\n[tools.commands.x]\ncommand = [\"x\"]\n[models.providers.a]\nkey_env = \"K\"\n[settle]\nleast = 3\n[store]\naddress = \"a\"\n[safety.logs]\npersonal = \"flag\"\n";
        let mut keys = guarded_keys(text);
        keys.sort();
        assert_eq!(
            keys,
            [
                "gateway.upstreams",
                "models.providers",
                "safety.logs",
                "store.address",
                "tools.commands"
            ]
        );
        let (free, _) = split(&text.parse().expect("TOML"));
        assert_eq!(free["gateway"].as_table().expect("a table").len(), 1);
        assert!(free.contains_key("budget") && free.contains_key("settle"));
    }
}
