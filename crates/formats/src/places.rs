//! The directories in which each agent keeps its sessions.

use std::path::{Path, PathBuf};

use plimsoll_core::MillisSinceEpoch;

use crate::format::SessionFormat;

/// A directory in which an agent keeps sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsualPlace {
    pub format: SessionFormat,
    pub root: PathBuf,
    /// Levels between `root` and the session files: 1 is directly in it.
    pub depth: usize,
    /// The beginning of the session files' names.
    pub prefix: &'static str,
    /// The end of the session files' names.
    pub suffix: &'static str,
    /// The name of the directory that holds the session files, where it is fixed.
    pub parent: Option<&'static str>,
}

/// A session file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    /// The format of its directory; [`crate::read`] goes by the file's content.
    pub format: SessionFormat,
    pub path: PathBuf,
    pub bytes: u64,
    pub modified: Option<MillisSinceEpoch>,
}

/// Returns the directories below a home directory in which agents keep their sessions.
pub fn usual_places(home: &Path) -> Vec<UsualPlace> {
    let place = |format, root: &str, depth, prefix, suffix, parent| UsualPlace {
        format,
        root: home.join(root),
        depth,
        prefix,
        suffix,
        parent,
    };
    vec![
        place(SessionFormat::ClaudeCode, ".claude/projects", 2, "", ".jsonl", None),
        place(SessionFormat::Codex, ".codex/sessions", 4, "rollout-", ".jsonl", None),
        place(SessionFormat::Codex, ".codex/archived_sessions", 4, "rollout-", ".jsonl", None),
        place(SessionFormat::Pi, ".pi/agent/sessions", 4, "", ".jsonl", None),
        place(SessionFormat::GeminiCli, ".gemini/tmp", 3, "session-", ".json", Some("chats")),
        place(SessionFormat::GeminiCli, ".gemini/tmp", 3, "session-", ".jsonl", Some("chats")),
        place(SessionFormat::CopilotCli, ".copilot/session-state", 2, "", ".jsonl", None),
        place(
            SessionFormat::CopilotCli,
            ".copilot/history-session-state",
            1,
            "session_",
            ".json",
            None,
        ),
        place(SessionFormat::Cursor, ".cursor/projects", 4, "", ".jsonl", None),
        place(SessionFormat::Cline, ".cline/data/tasks", 2, CLINE, ".json", None),
        place(
            SessionFormat::Cline,
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
            2,
            CLINE,
            ".json",
            None,
        ),
        place(
            SessionFormat::Cline,
            "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
            2,
            CLINE,
            ".json",
            None,
        ),
        place(
            SessionFormat::Cline,
            "AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
            2,
            CLINE,
            ".json",
            None,
        ),
        place(SessionFormat::OpenHands, ".openhands/sessions", 2, "", ".json", None),
        place(SessionFormat::MiniSweAgent, ".config/mini-swe-agent", 2, "", ".traj.json", None),
    ]
}

/// The beginning of the name of the file in which Cline keeps the conversation of a task.
const CLINE: &str = "api_conversation_history";

/// What the names of session files in any folder end with.
const SUFFIXES: [&str; 3] = [".jsonl", ".json", ".traj"];

/// Lists the files in a folder, and at most `depth` levels below it, that may be sessions: only their content tells.
pub fn candidates_in(folder: &Path, depth: usize) -> Vec<FoundSession> {
    let place = |suffix| UsualPlace {
        // The format is a stand-in.
        format: SessionFormat::Pi,
        root: folder.to_owned(),
        depth,
        prefix: "",
        suffix,
        parent: None,
    };
    let mut found: Vec<_> =
        SUFFIXES.into_iter().flat_map(|suffix| sessions_under(&place(suffix))).collect();
    newest_first(&mut found);
    found
}

/// Lists the files in which the agent of a place keeps the conversations of its sub-agents.
pub fn sub_agents_under(place: &UsualPlace) -> Vec<FoundSession> {
    if place.format != SessionFormat::ClaudeCode {
        return Vec::new();
    }
    // PROJECT/SESSION/subagents/agent-ID.jsonl
    let (depth, parent) = (place.depth + 2, Some("subagents"));
    sessions_under(&UsualPlace { depth, prefix: "agent-", parent, ..place.clone() })
}

/// Puts the files of sub-agents before all others: they say more than what the main session's file repeats of them.
pub fn sub_agents_first(files: &mut [PathBuf]) {
    let is_main =
        |path: &Path| path.parent().and_then(Path::file_name) != Some("subagents".as_ref());
    files.sort_by(|a, b| (is_main(a), a).cmp(&(is_main(b), b)));
}

/// Sorts files by the time of their last change, then by path.
pub fn newest_first(files: &mut [FoundSession]) {
    files.sort_by(|a, b| (b.modified, &a.path).cmp(&(a.modified, &b.path)));
}

/// Lists the session files of a directory, newest first.
///
/// Shape: leaves out entries that cannot be read; does not follow symbolic links to directories.
pub fn sessions_under(place: &UsualPlace) -> Vec<FoundSession> {
    let mut found = Vec::new();
    walk(place, &place.root, place.depth, &mut found);
    newest_first(&mut found);
    found
}

fn walk(place: &UsualPlace, directory: &Path, depth: usize, found: &mut Vec<FoundSession>) {
    let Ok(entries) = directory.read_dir() else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if depth > 1 {
                walk(place, &entry.path(), depth - 1, found);
            }
            continue;
        }
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let right_parent =
            place.parent.is_none_or(|parent| directory.file_name() == Some(parent.as_ref()));
        if !(right_parent && name.starts_with(place.prefix) && name.ends_with(place.suffix)) {
            continue;
        }
        let Ok(metadata) = entry.path().metadata() else { continue };
        let modified = metadata.modified().ok().and_then(|time| {
            let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_millis()).ok().map(MillisSinceEpoch)
        });
        found.push(FoundSession {
            format: place.format,
            path: entry.path(),
            bytes: metadata.len(),
            modified,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sessions_are_found_where_agents_keep_them() {
        let home = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        };
        put(".claude/projects/-work/one.jsonl");
        put(".claude/projects/-work/one/subagents/agent-1.jsonl");
        put(".claude/projects/notes.txt");
        put(".codex/sessions/2026/05/12/rollout-2.jsonl");
        put(".codex/sessions/2026/05/12/other.jsonl");
        put(".pi/agent/sessions/--work--/three.jsonl");
        put(".gemini/tmp/hash/chats/session-4.json");
        put(".gemini/tmp/hash/logs.json");
        put(".gemini/tmp/hash/chats/session-5.jsonl");
        put(".copilot/session-state/one/events.jsonl");
        put(".cursor/projects/work/agent-transcripts/two/two.jsonl");
        put(".cline/data/tasks/7/api_conversation_history.json");
        put(".cline/data/tasks/7/ui_messages.json");
        let mut found: Vec<String> = usual_places(home.path())
            .iter()
            .flat_map(sessions_under)
            .map(|found| {
                assert_eq!(found.bytes, 3);
                assert!(found.modified.is_some());
                let path = found.path.strip_prefix(home.path()).unwrap().display().to_string();
                format!("{} {path}", found.format)
            })
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "claude-code .claude/projects/-work/one.jsonl",
                "cline .cline/data/tasks/7/api_conversation_history.json",
                "codex .codex/sessions/2026/05/12/rollout-2.jsonl",
                "copilot-cli .copilot/session-state/one/events.jsonl",
                "cursor .cursor/projects/work/agent-transcripts/two/two.jsonl",
                "gemini-cli .gemini/tmp/hash/chats/session-4.json",
                "gemini-cli .gemini/tmp/hash/chats/session-5.jsonl",
                "pi .pi/agent/sessions/--work--/three.jsonl",
            ]
        );
        let names = |files: Vec<FoundSession>| -> Vec<String> {
            let name = |file: &FoundSession| file.path.file_name().unwrap().to_owned();
            let mut names: Vec<_> =
                files.iter().map(|file| name(file).into_string().unwrap()).collect();
            names.sort();
            names
        };
        let places = usual_places(home.path());
        let agents: Vec<_> = places.iter().flat_map(sub_agents_under).collect();
        let mut paths = vec![home.path().join("a.jsonl"), agents[0].path.clone()];
        sub_agents_first(&mut paths);
        assert_eq!(paths[0], agents[0].path);
        assert_eq!(names(agents), ["agent-1.jsonl"]);
        let all = candidates_in(&home.path().join(".gemini"), 4);
        assert_eq!(names(all), ["logs.json", "session-4.json", "session-5.jsonl"]);
        assert_eq!(names(candidates_in(&home.path().join(".gemini"), 3)), ["logs.json"]);
    }
}
