//! Programs: the shell and Python, in a process group of their own that ends with the call.

use std::process::Stdio;

use plimsoll_engine::{Clock, ToolAnswer, ToolError};
use serde_json::{Map, Value};
use tokio::process::Command as Process;

use super::StarterLimits;
use crate::command::run;

/// Runs the code of the arguments with the other arguments as variables, and prints `result` where the code sets it.
const PYTHON: &str = r"
import json, sys
given = json.loads(sys.stdin.read() or '{}')
scope = {name: value for name, value in given.items() if name.isidentifier()}
scope['__name__'] = '__main__'
scope['inputs'] = given
exec(compile(given['__code__'], '<code>', 'exec'), scope)
if 'result' in scope:
    print(json.dumps(scope['result'], default=str))
";

pub(super) async fn shell(
    name: &str,
    command: &str,
    values: &Map<String, Value>,
    limits: &StarterLimits,
    clock: &dyn Clock,
) -> Result<ToolAnswer, ToolError> {
    let mut process = Process::new("sh");
    process.arg("-c").arg(command);
    // A validator in the shell reads `$CONTENT` and `$ORIGINAL_INPUT`.
    for (key, value) in values {
        let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if is_name && !key.is_empty() && text.len() < LONGEST_VARIABLE && !text.contains('\0') {
            process.env(key.to_ascii_uppercase(), text);
        }
    }
    let input = Value::Object(values.clone()).to_string();
    bounded(name, process, &input, limits, clock).await
}

pub(super) async fn python(
    name: &str,
    code: &str,
    values: &Map<String, Value>,
    limits: &StarterLimits,
    clock: &dyn Clock,
) -> Result<ToolAnswer, ToolError> {
    let mut process = Process::new("python3");
    process.arg("-I").arg("-c").arg(PYTHON);
    let mut values = values.clone();
    values.insert("__code__".to_owned(), Value::String(code.to_owned()));
    let input = Value::Object(values).to_string();
    bounded(name, process, &input, limits, clock).await
}

/// Linux passes variables of up to 128 KiB to a program.
const LONGEST_VARIABLE: usize = 100_000;

async fn bounded(
    name: &str,
    mut process: Process,
    input: &str,
    limits: &StarterLimits,
    clock: &dyn Clock,
) -> Result<ToolAnswer, ToolError> {
    let own: Vec<_> = process
        .as_std()
        .get_envs()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
        .collect();
    process
        .env_clear()
        .envs(own)
        .envs(&limits.environment)
        .current_dir(&limits.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    run(name, process, input, limits.output, limits.timeout, Some(limits.memory), clock).await
}
