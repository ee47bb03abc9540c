//! The tool plan: what the scripted model does at each turn, with whatever tools the client offers.

use plimsoll_core::lazy_tools::DESCRIBE_TOOL;
use plimsoll_core::lookup::EXPAND_REF;
use serde_json::{Value, json};

use super::offered::{OfferedTool, ToolForm};

/// One thing that the scripted model does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanAction {
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
    /// Calls the tool whose name ends so, with these arguments.
    Use { tool: String, arguments: Value },
}

/// What the scripted model does: at each turn some actions, then a last text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedPlan {
    pub turns: Vec<Vec<PlanAction>>,
    /// The folder in which the client works; paths are given to its tools in full.
    pub workspace: String,
    pub last: String,
}

/// A call that the scripted model makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedCall {
    pub(crate) name: String,
    /// Responses: the group that the tool is a member of.
    pub(crate) namespace: Option<String>,
    pub(crate) kind: ToolForm,
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

impl ScriptedPlan {
    /// Fourteen turns of mending a failing test: reads that repeat, two at once, bulky output, an edit and errors.
    ///
    /// They fit the workspace that `e2e/run` makes.
    pub fn mending(workspace: impl Into<String>) -> Self {
        let shell = |line: &str| PlanAction::Shell(line.to_owned());
        let read = |path: &str| PlanAction::Read(path.to_owned());
        let edit = PlanAction::Edit {
            path: "meter.py".to_owned(),
            old: "CEILING = 250".to_owned(),
            new: "CEILING = 251  # one more than before".to_owned(),
        };
        let turns = vec![
            vec![shell("ls -la . parts; wc -l *.py parts/*.py")],
            vec![read("meter.py")],
            vec![PlanAction::Search("def reading".to_owned())],
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
        let last = "RecordCallback: case 417 failed because the ceiling was one too low, and meter.py has the new one. \
                    The key of the table is HERON-4417.";
        Self { turns, workspace: workspace.into(), last: last.to_owned() }
    }

    /// Adds turns that each use one tool, spread evenly and none at the beginning.
    #[must_use]
    pub fn using(mut self, uses: Vec<PlanAction>) -> Self {
        let (turns, count) = (self.turns.len(), uses.len());
        for (at, action) in uses.into_iter().enumerate() {
            // Each that was put in before moved the others on by one.
            let place = ((at + 1) * turns / (count + 1)).max(1) + at;
            self.turns.insert(place.min(self.turns.len()), vec![action]);
        }
        self
    }

    /// Answers at once, without tools.
    pub fn text(last: impl Into<String>) -> Self {
        Self { turns: Vec::new(), workspace: String::new(), last: last.into() }
    }

    /// Returns the calls of a turn with the tools that are offered, none when the plan is over or nothing fits.
    ///
    /// Where one of them is of a tool that has only an outline, these ask what such tools take, and the turn is still to come.
    pub(crate) fn calls(
        &self,
        turn: usize,
        tools: &[OfferedTool],
        request: &str,
    ) -> Vec<PlannedCall> {
        let actions = self.turns.get(turn).map(Vec::as_slice).unwrap_or_default();
        let calls: Vec<PlannedCall> =
            actions.iter().filter_map(|action| self.call(action, tools, request)).collect();
        let Some(describe) = OfferedTool::find(tools, &[DESCRIBE_TOOL]) else { return calls };
        let unknown = |call: &&PlannedCall| {
            tools.iter().any(|tool| {
                tool.is_outline && tool.name == call.name && tool.namespace == call.namespace
            })
        };
        let mut names: Vec<&str> = calls.iter().filter(unknown).map(|call| &*call.name).collect();
        names.dedup();
        if names.is_empty() {
            return calls;
        }
        names.into_iter().map(|name| self::call(describe, json!({"name": name}))).collect()
    }

    fn call(
        &self,
        action: &PlanAction,
        tools: &[OfferedTool],
        request: &str,
    ) -> Option<PlannedCall> {
        match action {
            PlanAction::Shell(line) => self.shell(line, tools),
            PlanAction::Read(path) => match OfferedTool::find(tools, READ) {
                Some(tool) => Some(call(tool, tool.arguments(&[(PATH, self.path(path))]))),
                None => self.shell(&format!("cat {path}"), tools),
            },
            PlanAction::Search(text) => match OfferedTool::find(tools, SEARCH) {
                Some(tool) => {
                    let wanted: &[(&[&str], Value)] = &[
                        (&["pattern", "query"], json!(text)),
                        (&["output_mode"], json!("content")),
                    ];
                    Some(call(tool, tool.arguments(wanted)))
                }
                None => self.shell(&format!("grep -rn '{text}' . | head -n 50"), tools),
            },
            PlanAction::Edit { path, old, new } => match OfferedTool::find(tools, EDIT) {
                Some(tool) => Some(call(tool, self.edit(tool, path, old, new))),
                None => self.shell(&format!("sed -i 's/{old}/{new}/' {path}"), tools),
            },
            PlanAction::Expand => {
                match (OfferedTool::find(tools, &["expand_ref"]), first_ref(request)) {
                    (Some(tool), Some(found)) => {
                        let wanted: &[(&[&str], Value)] =
                            &[(&["ref", "reference", "id"], json!(found))];
                        Some(call(tool, tool.arguments(wanted)))
                    }
                    _ => self.shell("true", tools),
                }
            }
            PlanAction::Use { tool, arguments } => {
                OfferedTool::ending(tools, tool).map(|tool| call(tool, arguments.clone()))
            }
        }
    }

    fn edit(&self, tool: &OfferedTool, path: &str, old: &str, new: &str) -> Value {
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

    fn shell(&self, line: &str, tools: &[OfferedTool]) -> Option<PlannedCall> {
        let tool = OfferedTool::find(tools, SHELL)?;
        let arguments = match tool.kind {
            ToolForm::LocalShell => json!(line),
            // Codex runs JavaScript in which its tools are functions.
            ToolForm::Custom => {
                let command = json!({"cmd": line});
                json!(format!("const result = await tools.exec_command({command}); text(result);"))
            }
            ToolForm::Function => tool.arguments(&[
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

fn call(tool: &OfferedTool, arguments: Value) -> PlannedCall {
    let OfferedTool { name, namespace, kind, .. } = tool.clone();
    PlannedCall { name, namespace, kind, arguments }
}

/// Finds `ref:KIND:HEX` in a request, other than the one that `expand_ref` shows as an example.
fn first_ref(request: &str) -> Option<&str> {
    let is_example = |found: &str| {
        [EXPAND_REF.description, EXPAND_REF.parameters].iter().any(|it| it.contains(found))
    };
    request.match_indices("ref:").find_map(|(at, _)| {
        let rest = &request[at..];
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || ":_-".contains(letter)))
            .unwrap_or(rest.len());
        let digits = rest[..end].split(':').nth(2)?;
        let is_ref = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_ref && !is_example(&rest[..end])).then_some(&rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_core::lazy_tools::OUTLINE_HINT;
    use plimsoll_wire::Wire;

    use super::super::offered::offered;
    use super::*;

    fn calls(plan: &ScriptedPlan, body: &Value) -> Vec<(String, Value)> {
        let tools = offered(Wire::Responses, body);
        let calls = plan.calls(1, &tools, &body.to_string());
        calls.into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    #[test]
    fn an_outline_is_asked_about_once_and_then_called() {
        let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
        let function = |name: &str, told: &str| json!({"type": "function", "name": name, "description": told, "parameters": open});
        let hint = format!("Notes things {OUTLINE_HINT}");
        let group =
            json!({"type": "namespace", "name": "mcp__notes", "tools": [function("add", &hint)]});
        let shell = function("shell", OUTLINE_HINT);
        let mut body = json!({"tools": [group, shell, function("describe_tool", "")], "input": []});
        let arguments = json!({"text": "a"});
        let uses = PlanAction::Use { tool: "add".to_owned(), arguments: arguments.clone() };
        let turns = vec![vec![PlanAction::Shell("ls".to_owned())]; 2];
        let plan = ScriptedPlan { turns, workspace: "/w".to_owned(), last: String::new() };
        let plan = plan.using(vec![uses]);
        assert_eq!(plan.turns.len(), 3, "a turn more, and not the first");
        let asks = |name: &str| vec![("describe_tool".to_owned(), json!({"name": name}))];
        assert_eq!(calls(&plan, &body), asks("add"));
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let told = format!("add: Notes things\nArguments, as JSON Schema: {schema}");
        body["input"] = json!([{"type": "function_call_output", "call_id": "x", "output": told}]);
        assert_eq!(calls(&plan, &body), [("add".to_owned(), arguments)]);
    }

    #[test]
    fn the_example_of_a_ref_is_none() {
        let example = EXPAND_REF.description;
        assert_eq!(first_ref(example), None);
        let shown = format!("{example} ref:message:00112233aabbccdd");
        assert_eq!(first_ref(&shown), Some("ref:message:00112233aabbccdd"));
    }
}
