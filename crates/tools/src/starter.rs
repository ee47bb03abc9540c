//! Starter tools: shell, Python, files, HTTP and SQL, each off until the configuration allows it, and each within limits.

mod files;
mod http;
mod process;
mod sql;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_engine::{Clock, Tool, ToolAnswer, ToolError, ToolSource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::declared::{Environment, ToolConfigError, given, timeout};

/// Settings of the tools that come with Plimsoll.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StarterConfig {
    /// Names of the tools that runs may call: `shell`, `python`, `read_file`, `write_file`, `http_get`, `sql` and `sql_search`;
    /// none by default.
    pub allow: Vec<String>,
    /// The folder in which programs run and beyond which no file is read or written; by default the current one.
    pub folder: Option<PathBuf>,
    /// Names of the variables of the environment that programs get.
    pub env: Vec<String>,
    /// Seconds after which a call fails.
    pub timeout_seconds: f64,
    /// The most bytes that a call returns, or that it writes to a file.
    pub output_limit: usize,
    /// The most memory of a program, in MiB; limited on Linux.
    pub memory_mib: u64,
    /// Hosts that `http_get` may ask; `*.example.org` means its subdomains, and `*` every public one.
    pub hosts: Vec<String>,
    /// The SQLite file of `sql`; without one each run has a database of its own, in memory.
    pub database: Option<PathBuf>,
    /// Whether `sql` may change the file.
    pub database_writes: bool,
    /// The most rows that a query returns.
    pub rows: usize,
}

impl Default for StarterConfig {
    /// `StarterLimits` were chosen: a minute and about 30,000 tokens as for other tools, 1 GiB, and as many rows as a model reads.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            folder: None,
            env: Vec::new(),
            timeout_seconds: 60.0,
            output_limit: 100_000,
            memory_mib: 1_024,
            hosts: Vec::new(),
            database: None,
            database_writes: false,
            rows: 200,
        }
    }
}

/// One starter tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starter {
    Shell,
    Python,
    ReadFile,
    WriteFile,
    HttpGet,
    Sql,
    SqlSearch,
}

impl Starter {
    const ALL: [Self; 7] = [
        Self::Shell,
        Self::Python,
        Self::ReadFile,
        Self::WriteFile,
        Self::HttpGet,
        Self::Sql,
        Self::SqlSearch,
    ];

    /// Returns the tool's name, and the names that cascades of this kind have for it.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Shell => &["shell", "linux_shell", "bash", "run_bash", "bash_data"],
            Self::Python => &["python", "run_code", "run_python", "python_data"],
            Self::ReadFile => &["read_file"],
            Self::WriteFile => &["write_file"],
            Self::HttpGet => &["http_get"],
            Self::Sql => &["sql", "sql_query", "run_sql", "sql_data", "smart_sql_run"],
            Self::SqlSearch => &["sql_search"],
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|starter| starter.names().contains(&name))
    }

    fn description(self) -> &'static str {
        match self {
            Self::Shell => "Runs a command of the shell and returns its output.",
            Self::Python => {
                "Runs Python and returns what it prints; a variable `result` is printed as JSON."
            }
            Self::ReadFile => "Returns the text of a file.",
            Self::WriteFile => "Writes a text to a file.",
            Self::HttpGet => "Returns the text behind a web address.",
            Self::Sql => "Runs SQL on a SQLite database and returns the rows as JSON.",
            Self::SqlSearch => {
                "Finds tables and columns of the SQLite database by words of their names."
            }
        }
    }

    fn schema(self) -> Value {
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
        match self {
            Self::Shell => object(json!({"command": {"type": "string"}}), &["command"]),
            Self::Python => object(json!({"code": {"type": "string"}}), &["code"]),
            Self::ReadFile => object(json!({"path": {"type": "string"}}), &["path"]),
            Self::WriteFile => object(
                json!({"path": {"type": "string"}, "content": {"type": "string"}}),
                &["path", "content"],
            ),
            Self::HttpGet => object(json!({"url": {"type": "string"}}), &["url"]),
            Self::Sql | Self::SqlSearch => object(json!({"query": {"type": "string"}}), &["query"]),
        }
    }

    /// Returns the arguments that may hold the program, the query or the address.
    fn text_keys(self) -> &'static [&'static str] {
        match self {
            Self::Shell => &["command", "code", "script", "cmd"],
            Self::Python => &["code", "script", "command"],
            Self::ReadFile | Self::WriteFile => &["path", "file", "file_path", "filename"],
            Self::HttpGet => &["url", "address"],
            Self::Sql => &["query", "sql", "code", "statement"],
            Self::SqlSearch => &["query", "question", "text", "search"],
        }
    }
}

/// `StarterLimits` of a call.
#[derive(Debug, Clone)]
struct StarterLimits {
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    timeout: Duration,
    output: usize,
    memory: u64,
    hosts: Vec<String>,
    rows: usize,
}

/// The starter tools that a configuration allows.
#[derive(Debug)]
pub struct StarterTools {
    allowed: Vec<Starter>,
    limits: StarterLimits,
    database: sql::SqlDatabase,
    clock: Arc<dyn Clock>,
}

impl StarterConfig {
    /// Returns what keeps the tools from being called as they are configured.
    pub(crate) fn fault(&self) -> Option<(&'static str, ToolConfigError)> {
        if let Some(name) = self.allow.iter().find(|name| Starter::named(name).is_none()) {
            return Some(("allow", ToolConfigError::Starter(name.clone())));
        }
        timeout("starter", self.timeout_seconds).err().map(|error| ("timeout_seconds", error))
    }

    /// Returns every name of the tools that are allowed.
    pub fn names(&self) -> Vec<&'static str> {
        let allowed = self.allow.iter().filter_map(|name| Starter::named(name));
        allowed.flat_map(|starter| starter.names().iter().copied()).collect()
    }

    /// Returns the name under which the configuration allows a tool, if it comes with Plimsoll.
    pub fn starter_of(tool: &str) -> Option<&'static str> {
        Starter::named(tool).map(|starter| starter.names()[0])
    }

    /// Makes the tools, with the variables that programs get of `environment`; `clock` measures timeouts.
    pub fn tools(
        &self,
        environment: Environment<'_>,
        clock: Arc<dyn Clock>,
    ) -> Result<StarterTools, ToolConfigError> {
        if let Some((_, fault)) = self.fault() {
            return Err(fault);
        }
        let mut allowed: Vec<Starter> = Vec::new();
        for starter in self.allow.iter().filter_map(|name| Starter::named(name)) {
            if !allowed.contains(&starter) {
                allowed.push(starter);
            }
        }
        let folder = self.folder.clone().unwrap_or_else(|| PathBuf::from("."));
        Ok(StarterTools {
            allowed,
            limits: StarterLimits {
                folder,
                environment: given(&self.env, environment),
                timeout: timeout("starter", self.timeout_seconds)?,
                output: self.output_limit,
                memory: self.memory_mib.saturating_mul(1 << 20),
                hosts: self.hosts.clone(),
                rows: self.rows,
            },
            database: sql::SqlDatabase::new(self.database.clone(), self.database_writes),
            clock,
        })
    }
}

#[async_trait]
impl ToolSource for StarterTools {
    async fn tools(&self) -> Result<Vec<Tool>, ToolError> {
        let tools = self.allowed.iter().flat_map(|starter| {
            starter.names().iter().map(|name| Tool {
                name: (*name).into(),
                description: starter.description().into(),
                schema: starter.schema().to_string().into(),
            })
        });
        let mut tools: Vec<Tool> = tools.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tools)
    }

    async fn call(&self, name: &str, arguments: &str) -> Result<ToolAnswer, ToolError> {
        let starter = Starter::named(name).filter(|starter| self.allowed.contains(starter));
        let starter = starter.ok_or_else(|| ToolError::Unknown { name: name.to_owned() })?;
        let invalid = |why: String| ToolError::Invalid { name: name.to_owned(), why };
        let values: Map<String, Value> = serde_json::from_str(arguments)
            .map_err(|error| invalid(format!("its arguments are not a JSON object: {error}")))?;
        let keys = starter.text_keys();
        let text = keys.iter().find_map(|key| values.get(*key)).and_then(Value::as_str);
        let text =
            text.ok_or_else(|| invalid(format!("the argument `{}`, a text, is missing", keys[0])))?;
        if text.contains('\0') {
            return Err(invalid(format!("`{}` holds a NUL", keys[0])));
        }
        let limits = &self.limits;
        let unavailable = |why: String| ToolError::Unavailable { name: name.to_owned(), why };
        match starter {
            Starter::Shell => process::shell(name, text, &values, limits, &*self.clock).await,
            Starter::Python => process::python(name, text, &values, limits, &*self.clock).await,
            Starter::ReadFile => files::read(text, limits).await.map_err(unavailable),
            Starter::WriteFile => {
                let content = ["content", "text", "data"].iter().find_map(|key| values.get(*key));
                let content = match content {
                    Some(Value::String(content)) => content.clone(),
                    Some(value) => value.to_string(),
                    None => return Err(invalid("the argument `content` is missing".to_owned())),
                };
                files::write(text, &content, limits).await.map_err(unavailable)
            }
            Starter::HttpGet => http::get(text, limits, &*self.clock).await.map_err(unavailable),
            Starter::Sql => self.database.run(text, limits).await.map_err(unavailable),
            Starter::SqlSearch => self.database.search(text, limits).await.map_err(unavailable),
        }
    }
}
