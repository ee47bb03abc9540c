//! `plimsoll trust`: allows a project's settings beyond the harmless ones, such as models, upstreams, commands and stores.

use std::path::PathBuf;

use crate::arguments::TrustArguments;
use crate::config::{files, trust};
use crate::error::CommandError;
use crate::output;

pub(crate) fn run(arguments: &TrustArguments) -> Result<(), CommandError> {
    let project = files::project();
    let path = match &arguments.folder {
        Some(folder) => folder.join(project),
        None => project,
    };
    let text = files::read(&path)?;
    let keys = trust::guarded_keys(&text);
    if arguments.show {
        let word = if trust::is_trusted(&path, &text) { "trusted" } else { "not trusted" };
        let keys: String = keys.iter().map(|key| format!("{key}\n")).collect();
        return output::data(&format!("{}: {word}\n{keys}", place(path)));
    }
    trust::trust(&path, &text, !arguments.revoke)?;
    let word = if arguments.revoke { "no longer trusted" } else { "trusted" };
    let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
    output::note(&format!("{} is {word}; it sets {keys} of what needs trust", place(path)));
    Ok(())
}

fn place(path: PathBuf) -> String {
    output::plain(&path.canonicalize().unwrap_or(path).to_string_lossy()).clone()
}
