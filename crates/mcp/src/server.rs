//! The server: which tools, resources and prompts there are, and what a request gets.

use std::sync::Arc;

use plimsoll_engine::Scope;
use plimsoll_engine::expand::{ExpandOptions, Originals, expand};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource as Listed, ResourceContents,
    ResourceTemplate, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::bounded::{self, LARGEST_BUDGET};
use crate::failure::McpFailure;
use crate::parts::ServerParts;
use crate::resources::{RECEIPT, REF, Resource, SESSION};
use crate::{prompts, tools};

/// Sessions that a list of resources shows (chosen: a screen of a client's menu).
const LISTED_SESSIONS: usize = 50;

/// A server of MCP over one tenant's store; a clone serves another client.
#[derive(Debug, Clone)]
pub struct ContextServer {
    pub(crate) parts: Arc<ServerParts>,
}

impl ContextServer {
    /// Makes a server over these parts.
    pub fn new(parts: ServerParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    async fn resource(&self, resource: Resource) -> Result<String, McpFailure> {
        let parts = &*self.parts;
        match resource {
            Resource::Ref(reference) => {
                let scope = Scope::default();
                let originals = Originals {
                    history: &*parts.history,
                    knowledge: Some(&*parts.knowledge),
                    tenant: &parts.tenant,
                    asker: Some(&scope),
                };
                let whole = ExpandOptions::default();
                let found = expand(&originals, &reference, &whole, parts.clock.now()).await?;
                Ok(bounded::characters(&found.text, LARGEST_BUDGET, |at| {
                    format!("call expand_ref with offset {at}")
                }))
            }
            Resource::Session(session) => {
                tools::timeline_of(parts, &session, 0, LARGEST_BUDGET).await
            }
            Resource::Receipt(session, turn) => {
                tools::turn_of(parts, &session, Some(turn), 0, LARGEST_BUDGET).await
            }
        }
    }
}

impl ServerHandler for ContextServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("plimsoll", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Plimsoll stores sessions and memory. Call recall before work that earlier sessions may know about, \
                 expand_ref for the original behind a ref, and remember for facts and decisions that should last.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let answer = match tools::call(&self.parts, &request.name, arguments).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(McpFailure::Unknown(tool)) => {
                return Err(ErrorData::invalid_params(format!("{tool} is unknown"), None));
            }
            Err(failure) => failure.result(),
        };
        Ok(answer.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let parts = &*self.parts;
        let sessions = parts.history.sessions(&parts.tenant, LISTED_SESSIONS).await;
        let sessions = sessions.map_err(|error| McpFailure::from(error).protocol())?;
        let listed = sessions.into_iter().map(|found| {
            Listed::new(
                SESSION.replace("{session}", found.session.as_str()),
                found.session.as_str(),
            )
            .with_description(format!("{} messages, {} tokens", found.messages, found.tokens))
            .with_mime_type("text/plain")
        });
        Ok(ListResourcesResult::with_all_items(listed.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = [
            (REF, "ref", "The original behind a ref"),
            (SESSION, "session", "The messages of a session"),
            (RECEIPT, "receipt", "What was sent in a turn, and why"),
        ];
        let templates = templates
            .map(|(uri, name, about)| ResourceTemplate::new(uri, name).with_description(about));
        Ok(ListResourceTemplatesResult::with_all_items(templates.into()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let Some(resource) = Resource::parse(&uri) else {
            return Err(ErrorData::resource_not_found(format!("`{uri}` is no resource"), None));
        };
        let text = self.resource(resource).await.map_err(|failure| failure.protocol())?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.parts.frames.iter().map(prompts::listed).collect();
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(frame) = self.parts.frames.get(&request.name) else {
            return Err(McpFailure::Unknown(request.name).protocol());
        };
        Ok(prompts::written(frame, request.arguments.as_ref()).into())
    }
}
