//! Upstreams: named by the configuration and by nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use plimsoll_engine::Clock;
use reqwest::{Client, Url};

use crate::causes::causes;
use crate::config::{Api, GatewayConfig, Timeouts};
use crate::keys::{API_KEY, GOOGLE_KEY};
use crate::paths::{self, is_version};
use crate::refusal::RequestRefusal;
use crate::secret::Secret;
use crate::timers::ConnectWithin;

/// A path that begins so names the upstream: `/upstream/NAME/v1/chat/completions`.
const NAMED: &str = "/upstream/";

/// One upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) api: Api,
    base: String,
    /// Whether `base` ends with a version, which a path then leaves out.
    has_version: bool,
    key: Option<Secret>,
    /// Patterns of further paths that our key may be used for.
    paths: Vec<String>,
    client: Client,
}

/// Why a configured upstream is invalid.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    #[error("the base_url of upstream `{name}` is no http or https address without query")]
    Url { name: String },
    #[error("the base_url of upstream `{name}` has port 0, which no server has")]
    Port { name: String },
    #[error("upstream `{name}` needs a key, and {variable} is not set or empty")]
    Key { name: String, variable: String },
    #[error("the key of upstream `{name}` holds characters that no header may")]
    KeyCharacters { name: String },
    #[error("`{pattern}` of upstream `{name}` is no path: write `/files` or `GET /files/*`")]
    Path { name: String, pattern: String },
    #[error("no HTTP client")]
    Client(#[source] reqwest::Error),
}

/// All upstreams.
#[derive(Debug)]
pub(crate) struct Upstreams(BTreeMap<String, Arc<Upstream>>);

impl Upstreams {
    /// Makes them; nothing is sent. `environment` gives the keys.
    pub(crate) fn new(
        config: &GatewayConfig,
        clock: &Arc<dyn Clock>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, UpstreamError> {
        // This fails where a provider is installed already; any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |own_machine: bool| {
            let mut builder = Client::builder()
                .connector_layer(ConnectWithin {
                    clock: clock.clone(),
                    time: Timeouts::of(config.timeouts.connect),
                })
                // A key must not follow a redirect to another host, and a client sees what it was answered.
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                // Shorter than any known server keeps a silent connection.
                .pool_idle_timeout(Duration::from_secs(15))
                .tcp_nodelay(true)
                .http1_only();
            if own_machine {
                builder = builder.no_proxy();
            }
            builder.build().map_err(UpstreamError::Client)
        };
        let (outside, inside) = (client(false)?, client(true)?);
        let mut all = BTreeMap::new();
        for (name, upstream) in config.all_upstreams() {
            let broken = || UpstreamError::Url { name: name.clone() };
            let url = Url::parse(&upstream.base_url).map_err(|_| broken())?;
            let fits = matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none();
            if !fits {
                return Err(broken());
            }
            if url.port() == Some(0) {
                return Err(UpstreamError::Port { name });
            }
            let api = upstream.api.unwrap_or(match name.as_str() {
                "anthropic" => Api::Anthropic,
                "gemini" => Api::Gemini,
                _ => Api::OpenAi,
            });
            let paths = upstream.paths;
            if let Some(pattern) = paths.iter().find(|pattern| !paths::is_pattern(pattern)) {
                return Err(UpstreamError::Path { name, pattern: pattern.clone() });
            }
            let key = upstream.key_env.map(|variable| {
                environment(&variable)
                    .filter(|text| !text.trim().is_empty())
                    .map(|text| Secret::new(&text))
                    .ok_or_else(|| UpstreamError::Key { name: name.clone(), variable })
            });
            let key = key.transpose()?;
            if key.as_ref().is_some_and(|key| key.header("").is_none()) {
                return Err(UpstreamError::KeyCharacters { name });
            }
            let base = url.as_str().trim_end_matches('/').to_owned();
            let last = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or("");
            let has_version = is_version(last);
            let client = if is_on_this_machine(&url) { inside.clone() } else { outside.clone() };
            let upstream =
                Upstream { name: name.clone(), api, base, has_version, key, paths, client };
            all.insert(name, Arc::new(upstream));
        }
        Ok(Self(all))
    }

    /// Returns the upstream of a name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Upstream>> {
        self.0.get(name).cloned()
    }

    /// Returns the upstream of a request, and its path and query there.
    ///
    /// Paths that are alike in several APIs are told apart by the headers that only one of them has.
    pub(crate) fn find<'p>(
        &self,
        path_and_query: &'p str,
        headers: &HeaderMap,
    ) -> Result<(Arc<Upstream>, &'p str), RequestRefusal> {
        if !path_and_query.starts_with('/') || !paths::stays_below(path_and_query) {
            return Err(RequestRefusal::Path);
        }
        if let Some(rest) = path_and_query.strip_prefix(NAMED) {
            let end = rest.find('/').unwrap_or(rest.len());
            let upstream = self.0.get(&rest[..end]).ok_or(RequestRefusal::NoUpstream)?;
            let path = &rest[end..];
            return Ok((upstream.clone(), if path.is_empty() { "/" } else { path }));
        }
        let path = path_and_query.split('?').next().unwrap_or(path_and_query);
        let below = path.strip_prefix("/v1").unwrap_or(path);
        let name = if path.starts_with("/v1beta")
            || below.starts_with("/models/") && below.contains(':')
        {
            "gemini"
        } else if below.starts_with("/messages") || headers.contains_key("anthropic-version") {
            "anthropic"
        } else if headers.contains_key(GOOGLE_KEY) {
            "gemini"
        } else if headers.contains_key(API_KEY) && !headers.contains_key(AUTHORIZATION) {
            "anthropic"
        } else {
            "openai"
        };
        let upstream = self.0.get(name).ok_or(RequestRefusal::NoUpstream)?;
        Ok((upstream.clone(), path_and_query))
    }
}

impl Upstream {
    /// Returns the address, without a final slash.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the client of its connections.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns whether the gateway has the key, so that the client's key is not sent.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns whether a request may go to this path with the key that it will have.
    pub(crate) fn opens(&self, method: &Method, path_and_query: &str) -> bool {
        !self.has_key() || paths::is_open(self.api, method, path_and_query, &self.paths)
    }

    /// Returns `bytes` without our key, which an upstream may repeat in an error.
    pub(crate) fn without_key(&self, bytes: Bytes) -> Bytes {
        match &self.key {
            Some(key) => key.removed_from(bytes),
            None => bytes,
        }
    }

    /// Removes headers of an answer that show our key.
    pub(crate) fn without_key_in(&self, headers: &mut HeaderMap) {
        if let Some(key) = &self.key {
            key.removed_from_headers(headers);
        }
    }

    fn url(&self, path_and_query: &str) -> String {
        let first = path_and_query[1..].split(['/', '?']).next().unwrap_or("");
        let path = if self.has_version && is_version(first) {
            &path_and_query[1 + first.len()..]
        } else {
            path_and_query
        };
        let version = match self.api {
            _ if self.has_version || is_version(first) => "",
            Api::Anthropic | Api::OpenAi => "/v1",
            Api::Gemini => "/v1beta",
        };
        format!("{}{version}{path}", self.base)
    }

    /// Puts our key in the place of the client's.
    pub(crate) fn authorise(&self, headers: &mut HeaderMap) {
        let Some(key) = &self.key else { return };
        for name in [&AUTHORIZATION, &API_KEY, &GOOGLE_KEY] {
            headers.remove(name);
        }
        let (name, prefix) = match self.api {
            Api::Anthropic => (API_KEY, ""),
            Api::OpenAi => (AUTHORIZATION, "Bearer "),
            Api::Gemini => (GOOGLE_KEY, ""),
        };
        if let Some(value) = key.header(prefix) {
            headers.insert(name, value);
        }
    }
}

/// A request to an upstream.
#[derive(Clone)]
pub(crate) struct UpstreamRequest {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) method: Method,
    /// The path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl fmt::Debug for UpstreamRequest {
    /// Leaves out the headers, which hold credentials, and the body.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamRequest").field("path", &self.path).finish_non_exhaustive()
    }
}

impl UpstreamRequest {
    /// Sends the request, and returns when the head of the response is there.
    pub(crate) async fn send(
        &self,
        first_byte: Duration,
        clock: &dyn Clock,
    ) -> Result<reqwest::Response, RequestRefusal> {
        let url = self.upstream.url(&self.path);
        let request = self.upstream.client.request(self.method.clone(), url);
        let mut request = request.headers(self.headers.clone());
        if !self.body.is_empty() {
            request = request.body(self.body.clone());
        }
        tokio::select! {
            biased;
            sent = request.send() => {
                sent.map_err(|error| RequestRefusal::Unreachable(causes(&error.without_url())))
            }
            () = clock.sleep(first_byte) => {
                Err(RequestRefusal::Silent { seconds: first_byte.as_secs() })
            }
        }
    }
}

fn is_on_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_core::MillisSinceEpoch;
    use plimsoll_testkit::ManualClock;

    use super::*;
    use crate::config::UpstreamConfig;

    fn upstreams(base_url: &str) -> Upstreams {
        let upstream = UpstreamConfig::at(base_url);
        let config = GatewayConfig {
            upstreams: [("openai".to_owned(), upstream)].into(),
            ..GatewayConfig::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(MillisSinceEpoch(0), Duration::ZERO));
        Upstreams::new(&config, &clock, &|_| None).expect("sound")
    }

    #[test]
    fn versions_are_neither_lost_nor_doubled() {
        for (base, path, url) in [
            ("http://u", "/v1/chat/completions", "http://u/v1/chat/completions"),
            ("http://u/", "/chat/completions", "http://u/v1/chat/completions"),
            ("http://u/v1", "/v1/chat/completions?a=b", "http://u/v1/chat/completions?a=b"),
            ("http://u/api/v1/", "/responses", "http://u/api/v1/responses"),
            ("http://u/v1", "/v1", "http://u/v1"),
            ("http://u/v1", "/vector_stores", "http://u/v1/vector_stores"),
        ] {
            let upstreams = upstreams(base);
            let (upstream, path) = upstreams.find(path, &HeaderMap::new()).expect("found");
            assert_eq!(upstream.url(path), url, "{base} {path}");
        }
    }

    #[test]
    fn paths_and_headers_tell_the_api() {
        let upstreams = upstreams("http://u");
        let name = |path: &'static str, header: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(header, "x".parse().expect("a value"));
            }
            upstreams.find(path, &headers).map(|(upstream, path)| (upstream.name.clone(), path))
        };
        let found = |name: &str, path| Ok((name.to_owned(), path));
        assert_eq!(
            name("/v1/messages/count_tokens", None),
            found("anthropic", "/v1/messages/count_tokens")
        );
        assert_eq!(name("/messages", None), found("anthropic", "/messages"));
        assert_eq!(name("/v1/models", Some("anthropic-version")), found("anthropic", "/v1/models"));
        assert_eq!(name("/v1/models", None), found("openai", "/v1/models"));
        assert_eq!(
            name("/v1beta/models/m:generateContent", None),
            found("gemini", "/v1beta/models/m:generateContent")
        );
        assert_eq!(name("/upstream/gemini/x", None), found("gemini", "/x"));
        assert_eq!(name("/upstream/nobody/x", None), Err(RequestRefusal::NoUpstream));
        assert_eq!(name("*", None), Err(RequestRefusal::Path));
    }

    #[test]
    fn an_empty_key_is_no_key() {
        let new = |key: &'static str| {
            let upstream =
                UpstreamConfig { key_env: Some("KEY".into()), ..UpstreamConfig::at("http://u") };
            let config = GatewayConfig {
                upstreams: [("x".to_owned(), upstream)].into(),
                ..GatewayConfig::default()
            };
            let clock: Arc<dyn Clock> =
                Arc::new(ManualClock::new(MillisSinceEpoch(0), Duration::ZERO));
            Upstreams::new(&config, &clock, &move |_| Some(key.to_owned())).map(drop)
        };
        assert!(new("k").is_ok());
        for empty in ["", " ", "\t "] {
            assert!(matches!(new(empty), Err(UpstreamError::Key { .. })), "{empty:?}");
        }
    }

    #[test]
    fn addresses_that_could_be_another_host_are_refused() {
        for bad in
            ["ftp://u", "u", "http://", "http://a@u", "http://u?x=1", "http://u#x", "http://u:0"]
        {
            let upstream = UpstreamConfig::at(bad);
            let config = GatewayConfig {
                upstreams: [("x".to_owned(), upstream)].into(),
                ..GatewayConfig::default()
            };
            let clock: Arc<dyn Clock> =
                Arc::new(ManualClock::new(MillisSinceEpoch(0), Duration::ZERO));
            assert!(Upstreams::new(&config, &clock, &|_| None).is_err(), "{bad}");
        }
    }
}
