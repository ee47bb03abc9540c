//! MCP servers as sources of tools, over stdio and streamable HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::Image;
use plimsoll_engine::{Clock, Tool, ToolAnswer, ToolError, ToolSource};
use rmcp::model::{CallToolRequestParams, ContentBlock, ResourceContents};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ServiceExt as _, model};
use tokio::sync::OnceCell;

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Reached {
    /// By starting it.
    Stdio {
        program: String,
        arguments: Vec<String>,
        folder: Option<PathBuf>,
        /// All that it finds in its environment: nothing is inherited.
        environment: BTreeMap<String, String>,
    },
    /// At an address of the operator's.
    Http { url: String },
}

/// An MCP server that is declared.
#[derive(Debug, Clone)]
pub struct McpServer {
    pub reached: Reached,
    /// For each request, the first one and its connection included.
    pub timeout: Duration,
}

/// MCP servers by name; each is reached when it is first asked for something.
#[derive(Debug)]
pub struct McpServers {
    servers: Vec<Server>,
    clock: Arc<dyn Clock>,
}

type McpClient = RunningService<RoleClient, ()>;

#[derive(Debug)]
struct Server {
    name: String,
    declared: McpServer,
    client: OnceCell<McpClient>,
    tools: OnceCell<Vec<Tool>>,
}

impl McpServers {
    /// Makes tools of servers; `clock` measures their timeouts.
    pub fn new(servers: BTreeMap<String, McpServer>, clock: Arc<dyn Clock>) -> Self {
        let servers = servers.into_iter().map(|(name, server)| Server {
            name,
            declared: server,
            client: OnceCell::new(),
            tools: OnceCell::new(),
        });
        Self { servers: servers.collect(), clock }
    }
}

#[async_trait]
impl ToolSource for McpServers {
    async fn tools(&self) -> Result<Vec<Tool>, ToolError> {
        let mut all = Vec::new();
        for server in &self.servers {
            all.extend(server.tools(&*self.clock).await?.iter().cloned());
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    async fn call(&self, name: &str, arguments: &str) -> Result<ToolAnswer, ToolError> {
        for server in &self.servers {
            let tools = server.tools(&*self.clock).await?;
            if tools.iter().any(|tool| &*tool.name == name) {
                return server.call(&*self.clock, name, arguments).await;
            }
        }
        Err(ToolError::Unknown { name: name.to_owned() })
    }
}

impl Server {
    async fn tools(&self, clock: &dyn Clock) -> Result<&Vec<Tool>, ToolError> {
        let found = self.tools.get_or_try_init(|| async {
            let client = self.client(clock).await?;
            let listed = self.in_time(clock, client.peer().list_all_tools()).await?;
            listed
                .map(|tools| tools.into_iter().map(tool).collect())
                .map_err(|error| self.unavailable(&error))
        });
        found.await
    }

    async fn call(
        &self,
        clock: &dyn Clock,
        name: &str,
        arguments: &str,
    ) -> Result<ToolAnswer, ToolError> {
        let arguments = serde_json::from_str(arguments).map_err(|error| ToolError::Invalid {
            name: name.to_owned(),
            why: format!("its arguments are no JSON object: {error}"),
        })?;
        let client = self.client(clock).await?;
        let call = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let result = self.in_time(clock, client.call_tool(call)).await?;
        result.map(answer).map_err(|error| self.unavailable(&error))
    }

    async fn client(&self, clock: &dyn Clock) -> Result<&McpClient, ToolError> {
        self.client.get_or_try_init(|| async { self.in_time(clock, self.connect()).await? }).await
    }

    async fn connect(&self) -> Result<McpClient, ToolError> {
        match &self.declared.reached {
            Reached::Stdio { program, arguments, folder, environment } => {
                let mut process = tokio::process::Command::new(program);
                process.args(arguments).env_clear().envs(environment).kill_on_drop(true);
                if let Some(folder) = folder {
                    process.current_dir(folder);
                }
                let (child, _) = TokioChildProcess::builder(process)
                    .stderr(Stdio::null())
                    .spawn()
                    .map_err(|error| self.unavailable(&format!("{program}: {error}")))?;
                ().serve(child).await.map_err(|error| self.unavailable(&error))
            }
            Reached::Http { url } => {
                // A client without a provider of cryptography panics; whoever was first has installed one, and any will do.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let transport = StreamableHttpClientTransport::from_config(config);
                ().serve(transport).await.map_err(|error| self.unavailable(&error))
            }
        }
    }

    async fn in_time<T>(
        &self,
        clock: &dyn Clock,
        work: impl Future<Output = T>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            result = work => Ok(result),
            () = clock.sleep(self.declared.timeout) => {
                Err(self.unavailable(&format!("no answer in {} s", self.declared.timeout.as_secs_f64())))
            }
        }
    }

    fn unavailable(&self, why: &impl ToString) -> ToolError {
        ToolError::Unavailable { name: self.name.clone(), why: why.to_string() }
    }
}

fn tool(tool: model::Tool) -> Tool {
    Tool {
        name: tool.name.into(),
        description: tool.description.unwrap_or_default().into(),
        schema: serde_json::Value::Object((*tool.input_schema).clone()).to_string().into(),
    }
}

fn answer(result: model::CallToolResult) -> ToolAnswer {
    let mut texts: Vec<String> = Vec::new();
    let mut images = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => {
                images.push(Image { media_type: image.mime_type.into(), data: image.data.into() });
            }
            ContentBlock::Audio(audio) => texts.push(format!("[audio: {}]", audio.mime_type)),
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { text, .. } => texts.push(text),
                ResourceContents::BlobResourceContents { uri, .. } => {
                    texts.push(format!("[resource: {uri}]"));
                }
                _ => {}
            },
            ContentBlock::ResourceLink(link) => texts.push(format!("[resource: {}]", link.uri)),
            other => texts.extend(serde_json::to_string(&other).ok()),
        }
    }
    if texts.is_empty()
        && let Some(structured) = result.structured_content
    {
        texts.push(structured.to_string());
    }
    ToolAnswer { text: texts.join("\n"), images, is_error: result.is_error == Some(true) }
}
