//! `plimsoll mcp`: serves the store to clients of MCP.

use std::sync::Arc;

use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{HistoryStore, KnowledgeStore, Recall, TenantId};
use plimsoll_mcp::{
    ContextServer, HttpSettings, McpServeError, ServerParts, serve_http, serve_stdio,
};
use plimsoll_models::BuiltInEmbedder;
use tokio::net::TcpListener;

use crate::arguments::McpArguments;
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::models::{self, embedder};
use crate::output;
use crate::serve::{log_from, stopped};
use crate::store::Store;
use crate::system::outside;

pub(crate) fn run(arguments: &McpArguments) -> Result<(), CommandError> {
    let config = config::for_sending(arguments.config.as_deref())?;
    // Its client shows standard error to the user, or nobody does.
    log_from(&config.gateway, "warn")?;
    let store = Store::open(&arguments.store, arguments.config.as_deref())?;
    store.with(async |history, knowledge, tenant| {
        let server = open(&config, history, knowledge, tenant).await?;
        let Some(address) = arguments.http else {
            return serve_stdio(server).await.map_err(failed);
        };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let error = anyhow::Error::new(error).context(format!("cannot listen on {address}"));
            CommandError::failure(error).hint("another port with `--http 127.0.0.1:PORT`")
        })?;
        let address = listener.local_addr().map_err(CommandError::failure)?;
        if address.ip().is_loopback() {
            output::data(&format!("plimsoll serves MCP at http://{address}/mcp\n"))?;
        }
        let settings = HttpSettings {
            hosts: arguments.allow_host.clone(),
            origins: arguments.allow_origin.clone(),
        };
        serve_http(listener, server, settings, stopped()).await.map_err(failed)
    })
}

async fn open(
    config: &Config,
    history: Arc<dyn HistoryStore>,
    knowledge: Arc<dyn KnowledgeStore>,
    tenant: &TenantId,
) -> Result<ContextServer, CommandError> {
    let embedder = embedder(&models::open(&config.models)?);
    let frames = FrameBook::new(config.frames()?, embedder.as_deref()).await;
    Ok(ContextServer::new(ServerParts {
        history,
        knowledge,
        tenant: tenant.clone(),
        clock: outside().clock,
        embedder,
        recall: Recall::new(config.recall.clone(), Some(Arc::new(BuiltInEmbedder))),
        memories: Memories::new(config.memory.search.clone()),
        memory: config.memory.clone(),
        frames: frames.map_err(CommandError::failure)?,
        handling: config.safety.ingestion,
    }))
}

fn failed(error: McpServeError) -> CommandError {
    match error {
        McpServeError::Open { .. } => CommandError::usage(error).hint("listen on 127.0.0.1"),
        error => CommandError::failure(error),
    }
}
