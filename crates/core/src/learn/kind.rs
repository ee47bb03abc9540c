//! The kinds of tools that the law has a hazard for.

use serde::Serialize;

use crate::file_access::{Access, file_access};
use crate::message::ToolCall;
use crate::policy::Need;
use crate::transcript::{Position, Transcript};

/// The kind of the tool that gave a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// Shows a file.
    Reads,
    /// Finds or lists.
    Finds,
    /// Runs a command or changes a file.
    Runs,
    Others,
}

/// Names of agents' tools by kind; those of shells are weighed by their command first.
const READS: [&str; 4] = ["read", "view", "read_file", "cat"];
const FINDS: [&str; 6] = ["grep", "glob", "ls", "find", "search", "list"];
const RUNS: [&str; 18] = [
    "bash",
    "shell",
    "exec_command",
    "shell_command",
    "local_shell",
    "local_shell_call",
    "write_stdin",
    "run_shell_command",
    "run",
    "exec",
    "bashoutput",
    "edit",
    "write",
    "multiedit",
    "apply_patch",
    "todowrite",
    "update_plan",
    "replace",
];
/// Commands that show a file, and those that find or list.
const SHOWING: [&str; 7] = ["cat", "sed", "nl", "head", "tail", "bat", "less"];
const FINDING: [&str; 6] = ["rg", "grep", "find", "ls", "tree", "fd"];

impl ResultKind {
    pub const ALL: [Self; 4] = [Self::Reads, Self::Finds, Self::Runs, Self::Others];

    /// Returns the name of its setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Finds => "finds",
            Self::Runs => "runs",
            Self::Others => "others",
        }
    }

    /// Returns its hazard.
    pub fn hazard(self, need: &Need) -> f64 {
        match self {
            Self::Reads => need.reads,
            Self::Finds => need.finds,
            Self::Runs => need.runs,
            Self::Others => need.others,
        }
    }

    pub(super) fn hazard_mut(self, need: &mut Need) -> &mut f64 {
        match self {
            Self::Reads => &mut need.reads,
            Self::Finds => &mut need.finds,
            Self::Runs => &mut need.runs,
            Self::Others => &mut need.others,
        }
    }

    /// Returns the kind of the result at `position`, as settling judges it.
    pub(super) fn of(transcript: &Transcript, position: Position) -> Self {
        let Some(call) = transcript.call_answered(position) else { return Self::Others };
        match file_access(call) {
            Some((_, Access::ReadsAll | Access::ReadsPart)) => return Self::Reads,
            Some((_, Access::Changes)) => return Self::Runs,
            None => {}
        }
        let name = call.name.to_ascii_lowercase();
        if READS.contains(&name.as_str()) {
            return Self::Reads;
        }
        if FINDS.contains(&name.as_str()) {
            return Self::Finds;
        }
        Self::of_command(&command(transcript, position, call), &name)
    }

    fn of_command(command: &str, name: &str) -> Self {
        let has = |wanted: &[&str]| {
            command
                .split(|letter: char| !letter.is_ascii_alphanumeric())
                .any(|word| wanted.contains(&word))
        };
        if has(&SHOWING) && !command.contains("EOF") {
            Self::Reads
        } else if has(&FINDING) {
            Self::Finds
        } else if RUNS.contains(&name) {
            Self::Runs
        } else {
            Self::Others
        }
    }
}

/// Returns a call's arguments; agents without tools write their command into a fence.
fn command(transcript: &Transcript, position: Position, call: &ToolCall) -> String {
    if !call.arguments.is_empty() {
        return call.arguments.to_string();
    }
    let exchange = transcript.entries()[position].exchange.map(|at| &transcript.exchanges()[at]);
    let said = exchange.map(|one| transcript.entries()[one.call].message.shown());
    said.and_then(|said| Some(said.split_once("```")?.1.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_judged_by_its_command() {
        for (command, kind) in [
            (r#"{"command":"sed -n 1,20p a.rs"}"#, ResultKind::Reads),
            (r#"{"command":"rg quay"}"#, ResultKind::Finds),
            (r#"{"command":"cargo test"}"#, ResultKind::Runs),
            (r#"{"command":"cat > a <<EOF"}"#, ResultKind::Runs),
        ] {
            assert_eq!(ResultKind::of_command(command, "bash"), kind, "{command}");
        }
        assert_eq!(ResultKind::of_command("{}", "weather"), ResultKind::Others);
    }
}
