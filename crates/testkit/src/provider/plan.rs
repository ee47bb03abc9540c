//! The tool plan: what the scripted model does at each turn, with whatever tools the client offers.

use serde_json::{Value, json};

use super::offered::{Kind, Offered};

/// One thing that the scripted model does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a command line.
    Shell(String),
    /// Reads a file of the workspace.
    Read(String),
    /// Looks for a text in the workspace.
    Search(String),
    /// Replaces a text in a file of the workspace.
    Edit { path: String, old: String, new: String },
    /// Expands the first ref that the request shows, if `expand_ref` is offered; else runs an empty command.
    Expand,
}

/// What the scripted model does: at each turn some actions, then a last text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub turns: Vec<Vec<Action>>,
    /// The folder in which the client works; paths are given to its tools in full.
    pub workspace: String,
    pub last: String,
}

/// A call that the scripted model makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// For a custom tool its text, for the provider's own shell the command line, else an object.
    pub(crate) arguments: Value,
}

const READ: &[&str] =
    &["read", "read_file", "view", "readfile", "view_file", "read_text_file", "open_file"];
const SHELL: &[&str] = &[
    "bash",
    "shell",
    "shell_command",
    "exec_command",
    "local_shell",
    "run_shell_command",
    "execute_command",
    "exec",
];
const SEARCH: &[&str] = &["grep", "search_file_content", "grep_search", "search"];
const EDIT: &[&str] = &["edit", "edit_file", "str_replace", "replace"];
const PATH: &[&str] =
    &["file_path", "filePath", "path", "absolute_path", "target_file", "filename"];

impl Plan {
    /// Fourteen turns of mending a failing test: reads that repeat, two at once, bulky output, an edit and errors.
    ///
    /// They fit the workspace that `e2e/run` makes.
    pub fn mending(workspace: impl Into<String>) -> Self {
        let shell = |line: &str| Action::Shell(line.to_owned());
        let read = |path: &str| Action::Read(path.to_owned());
        let edit = Action::Edit {
            path: "meter.py".to_owned(),
            old: "CEILING = 250".to_owned(),
            new: "CEILING = 251  # one more than before".to_owned(),
        };
        let turns = vec![
            vec![shell("ls -la . parts; wc -l *.py parts/*.py")],
            vec![read("meter.py")],
            vec![Action::Search("def reading".to_owned())],
            vec![read("parts/small.py"), read("parts/large.py")],
            vec![shell("cat history.log")],
            vec![read("meter.py")],
            vec![edit],
            vec![read("meter.py")],
            vec![shell("python3 check.py")],
            vec![read("table.json")],
            vec![shell("sed -n 1,40p check.py; grep -rn CEILING . | head")],
            vec![shell("ls no-such-folder")],
            vec![read("parts/large.py")],
            vec![shell("python3 check.py | tail -n 3")],
        ];
        let last = "Done: case 417 failed because the ceiling was one too low, and meter.py has the new one. \
                    The key of the table is HERON-4417.";
        Self { turns, workspace: workspace.into(), last: last.to_owned() }
    }

    /// Answers at once, without tools.
    pub fn text(last: impl Into<String>) -> Self {
        Self { turns: Vec::new(), workspace: String::new(), last: last.into() }
    }

    /// Returns the calls of a turn with the tools that are offered, none when the plan is over or nothing fits.
    pub(crate) fn calls(&self, turn: usize, tools: &[Offered], request: &str) -> Vec<Call> {
        let actions = self.turns.get(turn).map(Vec::as_slice).unwrap_or_default();
        actions.iter().filter_map(|action| self.call(action, tools, request)).collect()
    }

    fn call(&self, action: &Action, tools: &[Offered], request: &str) -> Option<Call> {
        match action {
            Action::Shell(line) => self.shell(line, tools),
            Action::Read(path) => match Offered::find(tools, READ) {
                Some(tool) => Some(call(tool, tool.arguments(&[(PATH, self.path(path))]))),
                None => self.shell(&format!("cat {path}"), tools),
            },
            Action::Search(text) => match Offered::find(tools, SEARCH) {
                Some(tool) => {
                    let wanted: &[(&[&str], Value)] = &[
                        (&["pattern", "query"], json!(text)),
                        (&["output_mode"], json!("content")),
                    ];
                    Some(call(tool, tool.arguments(wanted)))
                }
                None => self.shell(&format!("grep -rn '{text}' . | head -n 50"), tools),
            },
            Action::Edit { path, old, new } => match Offered::find(tools, EDIT) {
                Some(tool) => Some(call(tool, self.edit(tool, path, old, new))),
                None => self.shell(&format!("sed -i 's/{old}/{new}/' {path}"), tools),
            },
            Action::Expand => match (Offered::find(tools, &["expand_ref"]), first_ref(request)) {
                (Some(tool), Some(found)) => {
                    let wanted: &[(&[&str], Value)] =
                        &[(&["ref", "reference", "id"], json!(found))];
                    Some(call(tool, tool.arguments(wanted)))
                }
                _ => self.shell("true", tools),
            },
        }
    }

    fn edit(&self, tool: &Offered, path: &str, old: &str, new: &str) -> Value {
        const OLD: &[&str] = &["old_string", "oldString", "old_str", "oldText"];
        const NEW: &[&str] = &["new_string", "newString", "new_str", "newText"];
        let name = |names: &[&'static str]| {
            names.iter().copied().find(|name| tool.item_takes("edits", name))
        };
        let edits = match (name(OLD), name(NEW)) {
            (Some(before), Some(after)) => json!([{before: old, after: new}]),
            _ => json!([]),
        };
        let instruction: &[&str] = &["instruction"];
        tool.arguments(&[
            (PATH, self.path(path)),
            (&["edits"], edits),
            (OLD, json!(old)),
            (NEW, json!(new)),
            (instruction, json!("Raise the ceiling by one.")),
        ])
    }

    fn shell(&self, line: &str, tools: &[Offered]) -> Option<Call> {
        let tool = Offered::find(tools, SHELL)?;
        let arguments = match tool.kind {
            Kind::LocalShell => json!(line),
            // Codex runs JavaScript in which its tools are functions.
            Kind::Custom => {
                let command = json!({"cmd": line});
                json!(format!("const result = await tools.exec_command({command}); text(result);"))
            }
            Kind::Function => tool.arguments(&[
                (&["command", "cmd", "script"], json!(line)),
                (&["description"], json!("a scripted step")),
                (&["workdir", "cwd"], json!(self.workspace)),
            ]),
        };
        Some(call(tool, arguments))
    }

    fn path(&self, path: &str) -> Value {
        json!(format!("{}/{path}", self.workspace.trim_end_matches('/')))
    }
}

fn call(tool: &Offered, arguments: Value) -> Call {
    Call { name: tool.name.clone(), kind: tool.kind, arguments }
}

/// Finds `ref:KIND:HEX` in a request.
fn first_ref(request: &str) -> Option<&str> {
    request.match_indices("ref:").find_map(|(at, _)| {
        let rest = &request[at..];
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || ":_-".contains(letter)))
            .unwrap_or(rest.len());
        let digits = rest[..end].split(':').nth(2)?;
        let is_ref = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ref.then_some(&rest[..end])
    })
}
