//! Routes: every path that is answered here, and who may ask; all others go to an upstream.

use http::Method;

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Whoever reaches the port: there is nothing in the answer.
    Open,
    /// Who shows a key, where there are keys.
    Key,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayRoute {
    /// Whether the process lives.
    Health,
    /// Whether requests should come here.
    Ready,
    /// Figures for Prometheus.
    Metrics,
    /// Claude Code looks whether somebody is there.
    Hello,
    /// Codex asks for a WebSocket first, and takes 426 as the word to use HTTP.
    WebSocket,
    /// Everything else.
    Upstream,
}

/// All routes but the last, which stands for every other method and path.
pub const ROUTES: [(&str, &str, GatewayRoute, RouteAccess); 8] = [
    ("GET", "/healthz", GatewayRoute::Health, RouteAccess::Open),
    ("GET", "/readyz", GatewayRoute::Ready, RouteAccess::Open),
    ("GET", "/metrics", GatewayRoute::Metrics, RouteAccess::Key),
    ("HEAD", "/", GatewayRoute::Hello, RouteAccess::Open),
    ("GET", "/", GatewayRoute::Hello, RouteAccess::Open),
    ("HEAD", "/api/hello", GatewayRoute::Hello, RouteAccess::Open),
    ("GET", "/v1/responses", GatewayRoute::WebSocket, RouteAccess::Key),
    ("GET", "/responses", GatewayRoute::WebSocket, RouteAccess::Key),
];

impl GatewayRoute {
    /// Finds the route of a request and who may take it.
    pub fn of(method: &Method, path: &str) -> (Self, RouteAccess) {
        let found = ROUTES.iter().find(|(known, at, ..)| method.as_str() == *known && path == *at);
        found.map_or((Self::Upstream, RouteAccess::Key), |(_, _, route, access)| (*route, *access))
    }
}
