//! Commands: programs of the machine, declared by the operator, that take their arguments as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_engine::{Clock, Tool, ToolAnswer, ToolError, ToolSource};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command as Process};

/// A program that is a tool.
///
/// It reads the call's arguments, a JSON object, from its standard input; a place `{name}` in its own arguments is filled
/// with the argument of that name, as one word, so no shell ever reads what a model wrote.
#[derive(Debug, Clone)]
pub struct Command {
    pub description: String,
    /// The JSON schema of the arguments.
    pub schema: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    pub folder: Option<PathBuf>,
    /// All that it finds in its environment: nothing is inherited.
    pub environment: BTreeMap<String, String>,
    pub timeout: Duration,
    /// Bytes of output after which it is ended.
    pub output_limit: usize,
}

/// The commands that are declared, by name.
#[derive(Debug, Clone)]
pub struct Commands {
    commands: BTreeMap<String, Command>,
    clock: Arc<dyn Clock>,
}

impl Commands {
    /// Makes tools of commands; `clock` measures their timeouts.
    pub fn new(commands: BTreeMap<String, Command>, clock: Arc<dyn Clock>) -> Self {
        Self { commands, clock }
    }
}

#[async_trait]
impl ToolSource for Commands {
    async fn tools(&self) -> Result<Vec<Tool>, ToolError> {
        let tools = self.commands.iter().map(|(name, command)| Tool {
            name: name.as_str().into(),
            description: command.description.as_str().into(),
            schema: command.schema.as_str().into(),
        });
        Ok(tools.collect())
    }

    async fn call(&self, name: &str, arguments: &str) -> Result<ToolAnswer, ToolError> {
        let Some(command) = self.commands.get(name) else {
            return Err(ToolError::Unknown { name: name.to_owned() });
        };
        let unavailable = |why: String| ToolError::Unavailable { name: name.to_owned(), why };
        let words = words(name, &command.program, arguments)?;
        let Some((program, words)) = words.split_first() else {
            return Err(unavailable("it names no program".to_owned()));
        };
        let mut process = Process::new(program);
        process.args(words).env_clear().envs(&command.environment);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &command.folder {
            process.current_dir(folder);
        }
        let (limit, timeout) = (command.output_limit, command.timeout);
        run(name, process, arguments, limit, timeout, None, &*self.clock).await
    }
}

/// Runs a program that is a tool to its end, within limits of time, output and memory.
pub(crate) async fn run(
    name: &str,
    mut process: Process,
    input: &str,
    output_limit: usize,
    timeout: Duration,
    memory: Option<u64>,
    clock: &dyn Clock,
) -> Result<ToolAnswer, ToolError> {
    let unavailable = |why: String| ToolError::Unavailable { name: name.to_owned(), why };
    // A group of its own, so that what it starts ends with it.
    process.process_group(0).kill_on_drop(true);
    let program = process.as_std().get_program().to_string_lossy().into_owned();
    let child = process.spawn().map_err(|error| unavailable(format!("{program}: {error}")))?;
    let mut running = Running(child);
    if let Some(memory) = memory {
        running.limit_memory(memory);
    }
    let answer = tokio::select! {
        biased;
        answer = running.answer(input, output_limit) => answer.map_err(|error| unavailable(error.to_string())),
        () = clock.sleep(timeout) => {
            Err(unavailable(format!("it ran longer than {} s and was ended", timeout.as_secs_f64())))
        }
    };
    running.end();
    answer
}

/// Fills the places of a program's words with a call's arguments.
fn words(name: &str, program: &[String], arguments: &str) -> Result<Vec<String>, ToolError> {
    let invalid = |why: String| ToolError::Invalid { name: name.to_owned(), why };
    let values: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments)
        .map_err(|error| invalid(format!("its arguments are no JSON object: {error}")))?;
    let fill = |word: &String| {
        let place = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        // Braces around anything else, such as JSON, are the program's own.
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let Some(place) = place.filter(|place| !place.is_empty() && place.chars().all(is_name))
        else {
            return Ok(word.clone());
        };
        match values.get(place) {
            Some(serde_json::Value::String(text)) if text.contains('\0') => {
                Err(invalid(format!("`{place}` holds a NUL")))
            }
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(invalid(format!("the argument `{place}` is missing"))),
        }
    };
    program.iter().map(fill).collect()
}

/// A process that is ended, with all that it started, when it is no longer looked at.
struct Running(Child);

impl Running {
    async fn answer(&mut self, arguments: &str, limit: usize) -> std::io::Result<ToolAnswer> {
        let (input, output, errors) =
            (self.0.stdin.take(), self.0.stdout.take(), self.0.stderr.take());
        let write = async {
            if let Some(mut input) = input {
                // A program that does not read its input is none the worse.
                let _ = input.write_all(arguments.as_bytes()).await;
            }
        };
        let ((), output, errors) = tokio::join!(write, read(output, limit), read(errors, limit));
        let (output, errors) = (output?, errors?);
        let is_cut = output.len() >= limit || errors.len() >= limit;
        if is_cut {
            self.end();
        }
        let status = self.0.wait().await?;
        let mut text = String::from_utf8_lossy(&output).into_owned();
        let errors = String::from_utf8_lossy(&errors);
        if !errors.trim().is_empty() && !status.success() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&errors);
        }
        if is_cut {
            let _ = write!(text, "\n[ended: more than {limit} bytes of output]");
        } else if let Some(code) = status.code().filter(|code| *code != 0) {
            let _ = write!(text, "\n[exit status {code}]");
        }
        let is_error = is_cut || !status.success();
        Ok(ToolAnswer { text, images: Vec::new(), is_error })
    }

    /// `StarterLimits` the memory of the program; it reads its input first, so it has done nothing yet.
    #[cfg(target_os = "linux")]
    fn limit_memory(&self, bytes: u64) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        if let Some(pid) = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // One that ended already needs no limit.
            let _ = prlimit(Some(pid), Resource::As, limit);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn limit_memory(&self, _: u64) {}

    fn end(&mut self) {
        let group = self.0.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            // One that ended by itself is no longer there.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads until the end, or until `limit` bytes are there.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(limit as u64).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
