//! Transports: standard streams, and streamable HTTP on loopback.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::server::ContextServer;

/// The names by which clients may call the server over HTTP.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Further values of the `Host` header, beside those of loopback.
    pub hosts: Vec<String>,
    /// Values of the `Origin` header that are accepted; a request without one always is.
    pub origins: Vec<String>,
}

/// Why the server did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    #[error("{address} can be reached from elsewhere; MCP over HTTP listens on loopback only")]
    Open { address: SocketAddr },
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    #[error("the client broke the protocol: {0}")]
    Protocol(String),
}

/// Serves one client on standard input and output until it closes them.
pub async fn serve_stdio(server: ContextServer) -> Result<(), McpServeError> {
    let (reader, writer) = rmcp::transport::stdio();
    serve_stream(server, reader, writer).await
}

/// Serves one client on a pair of streams, a message a line, until it closes them.
pub async fn serve_stream(
    server: ContextServer,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServeError> {
    let protocol = |error: &dyn std::fmt::Display| McpServeError::Protocol(error.to_string());
    let running = server.serve((reader, writer)).await;
    running.map_err(|error| protocol(&error))?.waiting().await.map_err(|error| protocol(&error))?;
    Ok(())
}

/// Serves streamable HTTP until `stop` is over.
///
/// Errors: [`McpServeError::Open`] for an address that others than this machine reach, because clients show no key.
pub async fn serve_http(
    listener: TcpListener,
    server: ContextServer,
    settings: HttpSettings,
    stop: impl Future<Output = ()>,
) -> Result<(), McpServeError> {
    let address = listener.local_addr().map_err(McpServeError::Listen)?;
    if !address.ip().is_loopback() {
        return Err(McpServeError::Open { address });
    }
    let mut hosts = ["127.0.0.1", "localhost", "[::1]"]
        .map(|name| format!("{name}:{}", address.port()))
        .to_vec();
    hosts.extend(settings.hosts);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(settings.origins)
        // An empty list refuses every page of a browser; the library's default accepts all of them.
        .enforce_origin_validation()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        // A client that left before it was accepted is no reason to end.
        let Ok((stream, _)) = accepted else { continue };
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            if let Err(error) =
                http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await
            {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}
