//! Routes: every path that is answered here, and who may ask; all others go to an upstream.

use http::Method;

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the port: there is nothing in the answer.
    Open,
    /// Who shows a key, where there are keys.
    Key,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
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
pub const ROUTES: [(&str, &str, Route, Access); 8] = [
    ("GET", "/healthz", Route::Health, Access::Open),
    ("GET", "/readyz", Route::Ready, Access::Open),
    ("GET", "/metrics", Route::Metrics, Access::Key),
    ("HEAD", "/", Route::Hello, Access::Open),
    ("GET", "/", Route::Hello, Access::Open),
    ("HEAD", "/api/hello", Route::Hello, Access::Open),
    ("GET", "/v1/responses", Route::WebSocket, Access::Key),
    ("GET", "/responses", Route::WebSocket, Access::Key),
];

impl Route {
    /// Finds the route of a request and who may take it.
    pub fn of(method: &Method, path: &str) -> (Self, Access) {
        let found = ROUTES.iter().find(|(known, at, ..)| method.as_str() == *known && path == *at);
        found.map_or((Self::Upstream, Access::Key), |(_, _, route, access)| (*route, *access))
    }
}
