//! The workspace of a session: the name of its repository, or of the folder that it works in.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::file_access::file_access;
use crate::message::{Block, Message, Role, ToolCall};
use crate::text::{Limit, head};

patterns! {
    /// The folder as clients tell it the model, at the start of a line or within tags.
    TOLD r"(?im)(?:^\s*[-*]?\s*(?:primary |current )?working dir(?:ectory)?:\s*|<cwd>\s*)(/[^\n<>\x22]{1,300}|[A-Za-z]:\\[^\n<>\x22]{1,300})";
    ENTERED r"^\s*cd\s+[\x22']?(/[^\s;&|\x22']+)";
}

/// Characters of a message in which its folder is looked for (chosen: a system prompt names it in its last lines).
const LOOKED_AT: usize = 100_000;
/// The least number of files from whose paths a folder is guessed (chosen: two may lie anywhere).
const LEAST_FILES: usize = 3;
/// The share of all files that the guessed folder holds, in tenths (chosen: some files of other places are read too).
const MOST_OF_FILES: usize = 7;
/// Folders inside a workspace.
const INSIDE: [&str; 14] = [
    "src", "lib", "app", "apps", "crates", "packages", "tests", "test", "docs", "scripts", "cmd",
    "pkg", "internal", ".github",
];
/// Folders around workspaces, which name none.
const AROUND: [&str; 16] = [
    "",
    "home",
    "users",
    "tmp",
    "var",
    "mnt",
    "root",
    "opt",
    "usr",
    "private",
    "workspace",
    "workspaces",
    "code",
    "projects",
    "repos",
    "work",
];

/// Returns the name of the workspace: that of the repository with this origin, else of the folder that the session shows.
pub(super) fn workspace(messages: &[&Message], origin: Option<&str>) -> Option<String> {
    let repository = origin.and_then(|origin| name_of(origin.trim_end_matches(".git")));
    repository.or_else(|| name_of(&folder(messages)?))
}

/// Returns the folder that the client told the model, else the one that most commands entered, else the one of most files.
fn folder(messages: &[&Message]) -> Option<String> {
    let told = messages.iter().filter(|message| matches!(message.role, Role::System | Role::User));
    let told = told.take(3).find_map(|message| {
        let shown = message.shown();
        let found = TOLD.captures(head(&shown, Limit::Bytes(LOOKED_AT)))?;
        Some(found[1].trim_end().to_owned())
    });
    if told.is_some() {
        return told;
    }
    let mut entered: BTreeMap<String, usize> = BTreeMap::new();
    let mut files: Vec<String> = Vec::new();
    let calls =
        messages.iter().flat_map(|message| &message.blocks).filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        });
    for call in calls {
        if let Some(folder) = entered_by(call) {
            *entered.entry(folder).or_default() += 1;
        }
        files.extend(file_access(call).map(|(path, _)| path).filter(|path| path.starts_with('/')));
    }
    let most = entered.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
    most.map(|(folder, _)| folder).or_else(|| folder_of(&files))
}

/// Returns the folder that a command runs in.
fn entered_by(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let named = arguments.get("workdir").or_else(|| arguments.get("cwd")).and_then(Value::as_str);
    if let Some(folder) = named.filter(|folder| folder.starts_with('/')) {
        return Some(folder.to_owned());
    }
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    let command = match command {
        Value::String(command) => command,
        Value::Array(parts) => parts.last()?.as_str()?,
        _ => return None,
    };
    ENTERED.captures(command).map(|found| found[1].to_owned())
}

/// Returns the folder that holds most of the files, without the folders that workspaces have inside.
fn folder_of(files: &[String]) -> Option<String> {
    if files.len() < LEAST_FILES {
        return None;
    }
    let mut folder = String::new();
    loop {
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        for rest in files.iter().filter_map(|file| file.strip_prefix(&folder)?.strip_prefix('/')) {
            if let Some((part, _)) = rest.split_once('/') {
                *next.entry(part).or_default() += 1;
            }
        }
        let most = next.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)));
        match most {
            Some((part, count))
                if count * 10 >= files.len() * MOST_OF_FILES && !INSIDE.contains(&part) =>
            {
                folder = format!("{folder}/{part}");
            }
            _ => return (!folder.is_empty()).then_some(folder),
        }
    }
}

/// Returns the last part of a path or an address, as a tag has it; `None` for the folders that everybody has.
fn name_of(path: &str) -> Option<String> {
    let parts: Vec<&str> =
        path.split(['/', '\\', ':']).filter(|part| !part.is_empty() && *part != "~").collect();
    let name = parts.last()?.to_lowercase();
    let is_home = parts.len() == 2 && AROUND.contains(&parts[0].to_lowercase().as_str());
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    (plain && !is_home && !AROUND.contains(&&*name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> Message {
        let call = ToolCall { id: "1".into(), name: "Read".into(), arguments: arguments.into() };
        Message { blocks: vec![Block::ToolCall(call)], ..Message::text(Role::Assistant, "") }
    }

    fn read(path: &str) -> Message {
        call(&serde_json::json!({ "file_path": path }).to_string())
    }

    #[track_caller]
    fn check(messages: &[Message], origin: Option<&str>, expected: Option<&str>) {
        let messages: Vec<&Message> = messages.iter().collect();
        assert_eq!(workspace(&messages, origin).as_deref(), expected);
    }

    #[test]
    fn the_repository_names_it_before_the_folder() {
        let told = [Message::text(Role::User, "<cwd>/home/ann/newton-2</cwd>")];
        check(&told, Some("git@example.org:ann/newton.git"), Some("newton"));
        check(&told, Some("https://example.org/ann/Newton"), Some("newton"));
        check(&told, None, Some("newton-2"));
    }

    #[test]
    fn a_folder_is_told_entered_or_seen() {
        let prompt = "You are an agent.\nWorking directory: /srv/shop\nPlatform: linux";
        check(&[Message::text(Role::System, prompt)], None, Some("shop"));
        let entered = [call(r#"{"command": "cd /srv/shop && ls"}"#), call(r#"{"cmd": "ls"}"#)];
        check(&entered, None, Some("shop"));
        check(
            &[call(r#"{"command": ["bash", "-lc", "ls"], "workdir": "/srv/shop"}"#)],
            None,
            Some("shop"),
        );
        let files =
            ["/srv/shop/src/a.rs", "/srv/shop/src/b.rs", "/srv/shop/src/b.rs", "/etc/hosts"];
        check(&files.map(read), None, Some("shop"));
        check(&files[..2].iter().map(|path| read(path)).collect::<Vec<_>>(), None, None);
    }

    #[test]
    fn nobodys_folder_names_nothing() {
        for path in ["/home/ann", "/tmp", "/", "/workspace"] {
            check(&[Message::text(Role::User, format!("<cwd>{path}</cwd>"))], None, None);
        }
        check(&[Message::text(Role::Assistant, "Working directory: /srv/shop")], None, None);
    }
}
