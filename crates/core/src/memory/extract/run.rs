//! Runs: the commands of a session with their outcomes, and what they teach about the workspace.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::file_access::{Access, file_access};
use crate::memory::MemoryKind;
use crate::memory::quote::line;
use crate::message::{Block, Message, ToolCall, ToolResult};
use crate::text::{Limit, error_lines, head, shortened};

use super::{ExtractedRecord, TOOL, pattern};

patterns! {
    CHECKS r"^\s*(?:(?:timeout \S+|time|sudo|env|[A-Z_]+=\S+)\s+)*((?:(?:npm|pnpm|yarn|bun)(?: run)? (?:test|build|lint|typecheck|type-check|check|format|ci)[\w:-]*|npx (?:vitest|jest|tsc|eslint)(?: run)?|python3? -m (?:pytest|unittest)|pytest|cargo (?:test|nextest run|build|check|clippy|fmt)|(?:python3? )?(?:\S*/)?runtests\.py|bin/test|go (?:test|build|vet)|mix (?:test|compile|format|credo|dialyzer|precommit)|make(?: [a-z][\w-]*)?|tsc|vitest|jest|eslint|ruff(?: check| format)?|mypy|tox|rspec|phpunit|gradle\w* \w+|\./gradlew \w+|mvn \w+|dotnet (?:test|build)|uv run \S+|poetry run \S+|bundle exec \S+))(?:\s|$)";
    EXIT r"(?i)<returncode>\s*(-?\d+)|\bexit(?:ed with)?(?: code| status)?:?\s*(-?\d+)\b";
    FAILED r"(?m)\b[1-9]\d* (?:tests? )?fail(?:ed|ures?|ing)\b|^(?:FAILED|FAIL|ERROR|error(?:\[\w+\])?:|E   )|\bnpm ERR!|\bTraceback \(most recent|\bcommand not found\b|: error TS\d+";
    MISSING r"(?m)(?:^|: |/)([\w.-]+): (?:command )?not found\b|No module named ['\x22]?([\w.]+)";
    VERSION r"^\s*([\w.-]+) (?:--version|-V|version)\s*$";
    NUMBER r"\bv?\d+\.\d+(?:\.\d+)?[\w.+-]*";
    FILE r"\.[a-z]{1,4}\b";
    VAGUE r"(?i)\bAssertionError$|\b(?:Syntax|Indentation)Error\b|exit (?:status|code)|errors? (?:found|in)|^\W*\d+ |warnings?\b.*\d|^npm (?:err|warn)|<returncode>";
    SCRIPTS r#""scripts"\s*:\s*\{([^{}]{4,4000})\}"#;
    SCRIPT r#""([\w:.-]+)"\s*:\s*""#;
    PACKAGE r#"(?m)^[\s{\d→|]*"name"\s*:\s*"([@\w/.-]+)""#;
    REMOTE r"(?m)^origin\s+((?:https?://|git@|ssh://)[\w.@-]+[:/][\w.-]+/[\w-][\w.-]*?)(?:\.git)?\s+\(fetch\)";
    CHANGES_BY_SHELL r"\bapply_patch\b|\bsed -i\b|cat >+ ?\S|<<\s*'?EOF|\*\*\* (?:Update|Add) File";
    PATCHED r#"\*\*\* (?:Update|Add) File: ([\w./@-]+)|\bsed -i\S* .*?\s([\w./-]+\.\w+)\s*$|\bcat >+ ?["']?([\w./-]+\.\w+)|<<-?\s*['"]?\w+['"]?\s*>+\s*["']?([\w./-]+\.\w+)"#;
}

/// Characters of a command or of an error that is quoted (chosen: a line).
const QUOTED: usize = 140;
/// Characters of an output that are looked at for facts (chosen: a manifest).
const OUTPUT: usize = 6_000;
/// The most commands, fixes and failures that one session gives (chosen: the rest repeats them).
const MOST: usize = 4;

/// A command that ran.
#[derive(Debug)]
pub(super) struct CommandRun {
    /// The message of its result.
    pub(super) message: usize,
    /// The check without arguments that name places, such as `cargo test`.
    pub(super) check: Option<String>,
    pub(super) command: String,
    pub(super) is_ok: bool,
    pub(super) error: Option<String>,
    output: String,
}

/// All that the tools of a session did, in order.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) commands: Vec<CommandRun>,
    /// Outputs that may describe the workspace, each with the message of the result.
    shown: Vec<(usize, String)>,
    /// Files that were changed, each with the message of the result.
    pub(super) changes: Vec<(usize, String)>,
}

impl Runs {
    /// Reads the calls of `messages` with their results.
    pub(super) fn read(messages: &[&Message]) -> Self {
        let mut calls: BTreeMap<&str, (&ToolCall, &Message)> = BTreeMap::new();
        let mut runs = Self::default();
        for (at, message) in messages.iter().enumerate() {
            for block in &message.blocks {
                match block {
                    Block::ToolCall(call) => {
                        calls.insert(&call.id, (call, message));
                    }
                    Block::ToolResult(result) => {
                        if SCRIPTS.is_match(&result.text) || REMOTE.is_match(&result.text) {
                            runs.shown.push((at, beginning(&result.text)));
                        }
                        if let Some((call, asked)) = calls.get(&*result.call_id) {
                            runs.take(at, call, asked, result);
                        }
                    }
                    _ => {}
                }
            }
        }
        runs
    }

    fn take(&mut self, at: usize, call: &ToolCall, asked: &Message, result: &ToolResult) {
        // Some agents write their commands into the text of the answer.
        let is_in_text = call.arguments.trim().is_empty();
        let command = if is_in_text { fenced_command(asked) } else { command_of(call) };
        let Some(command) = command else {
            if let Some((path, Access::Changes)) = file_access(call)
                && !result.is_error
            {
                self.changes.push((at, path));
            }
            return;
        };
        self.ran(at, command, &result.text, result.is_error);
    }

    fn ran(&mut self, at: usize, command: String, output: &str, is_error: bool) {
        let is_ok = is_ok(output, is_error);
        if CHANGES_BY_SHELL.is_match(&command) {
            for found in PATCHED.captures_iter(&command) {
                let path = found.iter().skip(1).flatten().next();
                self.changes.extend(path.map(|path| (at, path.as_str().to_owned())));
            }
            return;
        }
        let error = (!is_ok).then(|| error_of(output)).flatten();
        self.commands.push(CommandRun {
            message: at,
            check: check_of(&command),
            command,
            is_ok,
            error,
            output: beginning(output),
        });
    }

    /// Returns the records of commands that work, of what fixed what, of what is missing, and of versions.
    pub(super) fn records(&self) -> Vec<ExtractedRecord> {
        let mut found = self.working();
        found.extend(self.fixes());
        found.extend(self.missing());
        found.extend(self.versions());
        found.extend(self.manifest());
        found
    }

    /// The scripts of the package at the root of the workspace, and where its repository is.
    fn manifest(&self) -> Vec<ExtractedRecord> {
        let fact = |text: String, at: usize, tag: &str| ExtractedRecord {
            tags: vec![tag.to_owned()],
            ..ExtractedRecord::new(MemoryKind::Fact, text, at, TOOL)
        };
        let scripts = self.shown.iter().find_map(|(at, output)| {
            let found = SCRIPTS.captures(output)?;
            let package = PACKAGE.captures(output)?;
            let names: Vec<String> =
                SCRIPT.captures_iter(&found[1]).map(|script| quoted(&script[1])).collect();
            let shown = &names[..names.len().min(12)];
            (names.len() > 1).then(|| {
                let text = format!(
                    "The package `{}` has the scripts {}.",
                    quoted(&package[1]),
                    shown.join(", ")
                );
                fact(text, *at, "workspace")
            })
        });
        let remote = self.origin_shown().map(|(at, address)| {
            let text = format!("The repository's origin is {}.", quoted(address));
            fact(text, at, "workspace")
        });
        scripts.into_iter().chain(remote).collect()
    }

    /// Returns the address of the repository that the session shows.
    pub(super) fn origin(&self) -> Option<&str> {
        self.origin_shown().map(|(_, address)| address)
    }

    fn origin_shown(&self) -> Option<(usize, &str)> {
        self.shown.iter().find_map(|(at, output)| {
            let address = REMOTE.captures(output)?.get(1)?.as_str();
            (!pattern::is_secret(address)).then_some((*at, address))
        })
    }

    fn working(&self) -> Vec<ExtractedRecord> {
        let mut works: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for run in self.commands.iter().filter(|run| run.is_ok) {
            if let Some(check) = &run.check {
                let (count, _) = works.entry(check).or_insert((0, run.message));
                *count += 1;
            }
        }
        let mut works: Vec<(&str, usize, usize)> =
            works.into_iter().map(|(check, (count, at))| (check, count, at)).collect();
        works.sort_by_key(|(_, count, at)| (std::cmp::Reverse(*count), *at));
        let record = |(check, _, at): (&str, usize, usize)| {
            let text = format!("The command `{}` works in this workspace.", quoted(check));
            ExtractedRecord {
                tags: vec!["command".into()],
                ..ExtractedRecord::new(MemoryKind::Fact, text, at, TOOL)
            }
        };
        works.into_iter().take(MOST).map(record).collect()
    }

    /// A check failed, files were changed, and the same check passed.
    fn fixes(&self) -> Vec<ExtractedRecord> {
        let mut found = Vec::new();
        let mut failed: BTreeMap<&str, &CommandRun> = BTreeMap::new();
        for run in &self.commands {
            let Some(check) = run.check.as_deref() else { continue };
            if !run.is_ok {
                if run.error.is_some() {
                    failed.insert(check, run);
                }
                continue;
            }
            let Some(before) = failed.remove(check) else { continue };
            let between = before.message..run.message;
            let mut files: Vec<String> = self
                .changes
                .iter()
                .filter(|(at, _)| between.contains(at))
                .map(|(_, path)| short_path(path))
                .collect();
            files.dedup();
            let Some(error) = before.error.as_deref().filter(|_| !files.is_empty()) else {
                continue;
            };
            // Many files between are a piece of work, and nobody can tell which of them was the remedy.
            files.sort();
            files.dedup();
            if files.len() > 3 || !files.iter().any(|path| path.contains('/')) {
                continue;
            }
            let (check, error, files) = (quoted(check), quoted(error), files.join(", "));
            let text = format!(
                "When `{check}` failed with \"{error}\", a change of {files} made it pass."
            );
            found.push(ExtractedRecord {
                name: format!("Fix {error}"),
                points: vec![
                    format!("`{check}` failed: {error}"),
                    format!("Change {files}"),
                    format!("`{check}` passes"),
                ],
                tags: vec!["fix".into()],
                ..ExtractedRecord::new(MemoryKind::Procedure, text, run.message, TOOL)
            });
        }
        found.truncate(MOST);
        found
    }

    /// Programs and modules that are not there, and were not installed later.
    fn missing(&self) -> Vec<ExtractedRecord> {
        let mut found: Vec<ExtractedRecord> = Vec::new();
        for (at, run) in self.commands.iter().enumerate().filter(|(_, run)| !run.is_ok) {
            let Some(gone) = MISSING.captures(&run.output) else { continue };
            let Some(name) = gone.iter().skip(1).flatten().next() else { continue };
            let (name, is_module) = (name.as_str().to_owned(), gone.get(2).is_some());
            let uses = |run: &CommandRun| {
                crate::words(&run.command).any(|word| word == name.to_lowercase())
            };
            let is_there = self.commands[at + 1..]
                .iter()
                .any(|later| later.is_ok && uses(later) || later.command.contains("install"));
            let is_used = is_module || uses(run);
            if is_there || !is_used || found.iter().any(|one| one.text.contains(&name)) {
                continue;
            }
            let name = quoted(&name);
            let what = if is_module { "The module" } else { "The program" };
            found.push(ExtractedRecord {
                name: format!("Do not rely on `{name}`"),
                tags: vec!["failure".into()],
                ..ExtractedRecord::new(
                    MemoryKind::Censor,
                    format!("{what} `{name}` is not installed in this workspace."),
                    run.message,
                    TOOL,
                )
            });
        }
        found.truncate(MOST);
        found
    }

    fn versions(&self) -> Vec<ExtractedRecord> {
        let mut found = Vec::new();
        for run in self.commands.iter().filter(|run| run.is_ok) {
            let Some(program) = VERSION.captures(&run.command) else { continue };
            let names = |line: &&str| {
                let line = line.trim();
                line.len() < 80
                    && (line.to_lowercase().contains(&program[1].to_lowercase())
                        || NUMBER.find(line).is_some_and(|number| number.start() == 0))
            };
            let number = run.output.lines().filter(names).find_map(|line| NUMBER.find(line));
            let Some(number) = number else { continue };
            let text = format!("This workspace has {} {}.", quoted(&program[1]), number.as_str());
            found.push(ExtractedRecord {
                tags: vec!["version".into()],
                ..ExtractedRecord::new(MemoryKind::Fact, text, run.message, TOOL)
            });
        }
        found.truncate(MOST);
        found
    }

    /// Returns the files that were changed, each once, in the order of their first change.
    pub(super) fn changed_files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for (_, path) in &self.changes {
            let path = short_path(path);
            if !files.contains(&path) {
                files.push(path);
            }
        }
        // Files at the top are scripts of one trial more often than parts of the work.
        files.sort_by_key(|path| !path.contains('/'));
        files
    }
}

/// Returns the beginning of an output, which is all that is looked at.
fn beginning(output: &str) -> String {
    head(output, Limit::Characters(OUTPUT)).to_owned()
}

/// Returns the text of a shell's command.
fn command_of(call: &ToolCall) -> Option<String> {
    let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(&call.arguments) else {
        let is_shell = ["bash", "shell", "exec"].iter().any(|name| call.name.contains(name));
        return is_shell.then(|| call.arguments.to_string());
    };
    if arguments.contains_key("path") || arguments.contains_key("file_path") {
        return None;
    }
    match arguments.get("command").or_else(|| arguments.get("cmd"))? {
        Value::String(command) => Some(command.clone()),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            // `bash -lc COMMAND`
            Some(
                parts
                    .last()
                    .filter(|_| parts.len() == 3)
                    .map_or_else(|| parts.join(" "), |last| (*last).to_owned()),
            )
        }
        _ => None,
    }
}

/// Returns the last command in a fence of an answer, for agents that call no tools.
fn fenced_command(message: &Message) -> Option<String> {
    let Some(Block::Text(text)) =
        message.blocks.iter().rev().find(|block| matches!(block, Block::Text(_)))
    else {
        return None;
    };
    let from = text.rfind("```bash").or_else(|| text.rfind("```sh"))?;
    let body = text[from..].split_once('\n')?.1;
    Some(body.split("```").next().unwrap_or_default().trim().to_owned())
}

/// Returns the check that a command makes, without what stands around it.
fn check_of(command: &str) -> Option<String> {
    let part = command
        .split(['\n', ';'])
        .flat_map(|line| line.split("&&"))
        .find(|part| CHECKS.is_match(part))?;
    let part = part.split(['|', '>']).next()?.trim().trim_end_matches(" 2").trim();
    let found = CHECKS.captures(part)?;
    let check = found.get(1)?;
    let rest = &part[check.end()..];
    let names_places = rest.contains(['/', ':', '$', '"', '\'', '='])
        || FILE.is_match(rest)
        || rest.split_whitespace().count() > 3;
    // Words in front, such as `timeout 60`, belong to this one run.
    Some(if names_places { check.as_str() } else { &part[check.start()..] }.trim().to_owned())
}

fn is_ok(output: &str, is_error: bool) -> bool {
    let codes: Vec<&str> = EXIT
        .captures_iter(output)
        .filter_map(|found| found.iter().skip(1).flatten().next().map(|code| code.as_str()))
        .collect();
    // The last one is the shell's own; texts before it may speak of others.
    match codes.last() {
        Some(code) => *code == "0" && !FAILED.is_match(output),
        None => !is_error && !FAILED.is_match(output) && !output.trim().is_empty(),
    }
}

/// Returns the line that says most about a failure.
fn error_of(output: &str) -> Option<String> {
    let says = |text: &&str| {
        text.chars().filter(|c| c.is_alphabetic()).count() > 12
            && text.contains(':')
            && !text.starts_with(['[', '|', '('])
            && !text.ends_with(['|', ':'])
            && !VAGUE.is_match(text)
            && super::statement::is_named(text)
    };
    let mut lines =
        error_lines(output).map(str::trim).filter(says).filter(|line| !pattern::is_secret(line));
    lines.next().map(ToOwned::to_owned)
}

/// Returns a text on one line, cut and without marks that would end its quotation.
pub(super) fn quoted(text: &str) -> String {
    shortened(&line(text).replace('`', "'"), QUOTED).into_owned()
}

/// Returns the last parts of a path: folders above them are of one machine.
pub(super) fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    quoted(&parts[parts.len().saturating_sub(3)..].join("/"))
}
