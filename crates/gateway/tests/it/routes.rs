//! Every route has a policy, and keeps it.

use std::collections::BTreeMap;

use plimsoll_gateway::{KeyConfig, Mode, ROUTES, RouteAccess};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};

use crate::harness::Running;

fn keys() -> BTreeMap<String, KeyConfig> {
    let sha256 = plimsoll_engine::digest(b"a key of the gateway");
    [("ann".to_owned(), KeyConfig { sha256, tenant: None, operator: true })].into()
}

#[tokio::test]
async fn no_route_is_without_a_policy() {
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| config.keys = keys()).await;
    let others = [
        ("POST", "/v1/messages", RouteAccess::Key),
        ("POST", "/v1/chat/completions", RouteAccess::Key),
        ("GET", "/v1/models", RouteAccess::Key),
        ("GET", "/anything", RouteAccess::Key),
        ("POST", "/healthz", RouteAccess::Key),
        ("POST", "/metrics", RouteAccess::Key),
        ("DELETE", "/", RouteAccess::Key),
        ("GET", "//healthz", RouteAccess::Key),
        ("GET", "/upstream/openai/v1/models", RouteAccess::Key),
    ];
    let known = ROUTES.map(|(method, path, _, access)| (method, path, access));
    for (method, path, access) in known.into_iter().chain(others) {
        let bad = [("x-plimsoll-key", "another")];
        let bearer = [("authorization", "Bearer a key of the gateway")];
        for headers in [&[][..], &bad, &bearer] {
            let answer = gateway.send(method, path, headers, b"").await;
            let expected = if access == RouteAccess::Open { 200 } else { 401 };
            assert_eq!(answer.status, expected, "{method} {path} {headers:?}");
        }
    }
    assert!(upstream.requests().is_empty());
    let good = [("x-plimsoll-key", "a key of the gateway")];
    assert_eq!(gateway.send("GET", "/metrics", &good, b"").await.status, 200);
    assert_eq!(gateway.post("/v1/messages", &good, b"{}").await.status, 200);
    assert_eq!(upstream.requests()[0].header("x-plimsoll-key"), None);
}

#[tokio::test]
async fn where_the_upstreams_key_is_ours_the_clients_place_carries_the_gateways() {
    let upstream =
        ScriptedServer::start([Scripted::body(200, "{}"), Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.keys = keys();
        for upstream in config.upstreams.values_mut() {
            upstream.key_env = Some("UPSTREAM_KEY".to_owned());
        }
    })
    .await;
    let wrong = [("x-api-key", "another")];
    assert_eq!(gateway.post("/v1/messages", &wrong, b"{}").await.status, 401);
    let right = [("x-api-key", "a key of the gateway")];
    assert_eq!(gateway.post("/v1/messages", &right, b"{}").await.status, 200);
    let right = [("authorization", "Bearer a key of the gateway")];
    assert_eq!(gateway.post("/v1/chat/completions", &right, b"{}").await.status, 200);
    let sent = upstream.requests();
    assert_eq!(sent[0].header("x-api-key"), Some("the-real-key"));
    assert_eq!(sent[1].header("authorization"), Some("Bearer the-real-key"));
}

#[tokio::test]
async fn pages_in_a_browser_are_kept_out() {
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |config| {
        config.mode = Mode::Off;
        config.origins = vec!["http://dash:1".to_owned()];
    })
    .await;
    for header in [("host", "evil.com"), ("origin", "null"), ("origin", "http://evil.com")] {
        let answer = gateway.post("/v1/messages", &[header], b"{}").await;
        assert_eq!(answer.status, 403, "{header:?}");
    }
    let known = [("origin", "http://dash:1")];
    assert_eq!(gateway.post("/v1/messages", &known, b"{}").await.status, 200);
}

#[tokio::test]
async fn clients_that_knock_are_answered() {
    let upstream = ScriptedServer::start([]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    for path in ["/", "/api/hello"] {
        assert_eq!(gateway.send("HEAD", path, &[], b"").await.status, 200, "{path}");
    }
    let upgrade = [("upgrade", "websocket")];
    for path in ["/v1/responses", "/responses"] {
        assert_eq!(gateway.send("GET", path, &upgrade, b"").await.status, 426, "{path}");
    }
    assert_eq!(gateway.send("GET", "/readyz", &[], b"").await.status, 200);
    let metrics = gateway.send("GET", "/metrics", &[], b"").await.text();
    assert!(metrics.contains("plimsoll_refusals_total{why=\"upgrade\"} 2"), "{metrics}");
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_body_cannot_name_where_it_goes() {
    let elsewhere = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let upstream = ScriptedServer::start([Scripted::body(200, "{}")]).await;
    let gateway = Running::start(upstream.address(), |_| {}).await;
    let body = format!(
        r#"{{"api_base":"{0}","base_url":"{0}","user_config":{{"api_base":"{0}"}},"model":"m","messages":[]}}"#,
        elsewhere.address()
    );
    gateway
        .post("/v1/chat/completions", &[("x-upstream", elsewhere.address())], body.as_bytes())
        .await;
    assert_eq!((upstream.requests().len(), elsewhere.requests().len()), (1, 0));
}
