//! Routes: every path that the gateway answers itself, and the access that it needs. All others go to an upstream.

use http::Method;

/// The access that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Open to every client, since the response holds no data.
    Open,
    /// Open to clients with a key, where keys are configured.
    Key,
    /// Open to clients with a key of the operator, where keys are configured: the response tells of all tenants.
    Operator,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayRoute {
    /// Reports that the process is alive.
    Health,
    /// Reports whether the gateway takes requests.
    Ready,
    /// Metrics for Prometheus.
    Metrics,
    /// Claude Code checks that the address answers.
    Hello,
    /// Codex asks for a WebSocket first, and uses HTTP after status 426.
    WebSocket,
    /// Everything else.
    Upstream,
}

/// All routes but the last, which stands for every other method and path.
pub const ROUTES: [(&str, &str, GatewayRoute, RouteAccess); 8] = [
    ("GET", "/healthz", GatewayRoute::Health, RouteAccess::Open),
    ("GET", "/readyz", GatewayRoute::Ready, RouteAccess::Open),
    ("GET", "/metrics", GatewayRoute::Metrics, RouteAccess::Operator),
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
