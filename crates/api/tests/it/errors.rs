//! Errors are problems with a status and one clear line; no tenant sees another's.

use serde_json::json;

use crate::{Asking, DOCUMENT, check};

#[tokio::test]
async fn errors_are_problems() {
    let asking = Asking::start().await;
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    for (method, path, body, status, says) in [
        ("GET", "/nothing", "", 404, "there is no path"),
        ("GET", "/sessions/none", "", 404, "there is no session `none`"),
        ("GET", "/sessions/%20", "", 404, "there is no session"),
        ("GET", "/sessions/secret", "", 404, "there is no session `secret`"),
        ("GET", "/sessions?limit=0", "", 400, "`limit` is from 1 to 500"),
        ("GET", "/sessions?limit=x", "", 400, "`limit` is not `x`"),
        ("GET", "/sessions?limt=3", "", 400, "there is no parameter `limt`"),
        ("GET", "/sessions?cursor=none", "", 400, "`none` is no cursor"),
        ("GET", "/sessions/agent/turns?cursor=x", "", 400, "`x` is no cursor"),
        ("GET", "/sessions/agent/turns?policy=rumour", "", 400, "`rumour` is no policy"),
        ("GET", "/sessions/agent/turns/99", "", 404, "there is no turn 99"),
        ("GET", "/sessions/agent/turns/x", "", 404, "there is no turn `x`"),
        ("GET", "/sessions/agent/turns/1/messages/99", "", 404, "there is no message `99`"),
        ("GET", "/refs/ref:message:0123456789abcdef", "", 404, "0123456789abcdef"),
        ("GET", "/refs/x?lines=9-2", "", 400, "FIRST-LAST"),
        ("GET", "/memory/none", "", 404, "none"),
        ("GET", "/memory?kind=rumour", "", 400, "`kind` is not `rumour`"),
        ("DELETE", "/memory/none", "", 404, "none"),
        ("DELETE", "/memory", "", 405, "GET, POST"),
        ("POST", "/memory", "{}", 400, "missing field `text`"),
        ("POST", "/memory", "{\"text\": \"x\", \"origin\": \"operator\"}", 400, "unknown field"),
        ("POST", "/recall", "not JSON", 400, "expected"),
        ("POST", "/search", "{\"query\": \"x\", \"limit\": 0}", 400, "`limit`"),
        ("POST", "/assemble", "{}", 400, "give `text` or `session`"),
        ("POST", "/assemble", "{\"text\": \"x\", \"session\": \"secret\"}", 404, "secret"),
        ("POST", "/assemble", "{\"text\": \"x\", \"frame\": \"none\"}", 404, "none"),
        ("POST", "/bound", "{\"messages\": 3}", 400, "`messages` is a list"),
        ("POST", "/bound", "{\"messages\": []}", 400, "`messages` is a list"),
        ("POST", "/replay", "nothing of an agent", 400, ""),
        ("POST", "/cascades/runs", "{\"source\": \"phases: 3\"}", 400, ""),
        ("POST", "/cascades/runs", "{}", 400, "missing field `source`"),
        ("GET", "/cascades/runs/none", "", 404, "there is no run `none`"),
        ("DELETE", "/cascades/runs/none", "", 404, "there is no run `none`"),
        ("GET", "/cascades/runs/none/events", "", 404, "there is no run `none`"),
        ("POST", "/cascades/runs/none/answers", "{}", 404, "there is no run `none`"),
        ("POST", "/cascades/graph", "{\"source\": \"phases: 3\"}", 400, ""),
    ] {
        let got = asking.send("", method, &format!("/api/v1{path}"), body).await;
        assert_eq!(got.status, status, "{method} {path}: {}", got.body);
        assert_eq!(got.kind, "application/problem+json", "{method} {path}");
        check(path, &problem, &got.body);
        let detail = got.body["detail"].as_str().expect("a line");
        assert!(detail.contains(says), "{method} {path}: {detail}");
        assert!(!detail.contains('\n') && !detail.is_empty(), "{method} {path}: {detail}");
    }
}

#[tokio::test]
async fn a_body_that_a_form_can_send_is_refused() {
    let asking = Asking::start().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let body = "{\"text\": \"x\"}";
        let got = asking.send_as("", "POST", "/api/v1/memory", body, kind).await;
        assert_eq!(got.status, 415, "{kind}: {}", got.body);
    }
    let kind = "application/json; charset=utf-8";
    let got = asking.send_as("", "POST", "/api/v1/memory", "{\"text\": \"A fact.\"}", kind).await;
    assert_eq!(got.status, 200, "{}", got.body);
}

#[tokio::test]
async fn a_tenant_sees_its_own_only() {
    let asking = Asking::start().await;
    let sessions = asking.send("other", "GET", "/api/v1/sessions", "").await;
    assert_eq!(sessions.body["items"].as_array().map(Vec::len), Some(1), "{}", sessions.body);
    for path in DOCUMENT["paths"].as_object().expect("paths").keys() {
        if path.starts_with("/sessions/{session}") {
            let path = path
                .replace("{session}", "agent")
                .replace("{turn}", "1")
                .replace("{position}", "1");
            let got = asking.send("other", "GET", &format!("/api/v1{path}"), "").await;
            assert_eq!(got.status, 404, "{path}: {}", got.body);
        }
    }
    let body = "{\"text\": \"The default tenant's fact.\"}";
    let added = asking.send("", "POST", "/api/v1/memory", body).await;
    let id = added.body["record"]["id"].as_str().expect("an id");
    let path = format!("/api/v1/memory/{id}");
    for (method, body) in [("GET", ""), ("DELETE", ""), ("PATCH", "{\"text\": \"x\"}")] {
        assert_eq!(asking.send("other", method, &path, body).await.status, 404, "{method}");
    }
    let search = asking.send("other", "POST", "/api/v1/search", "{\"query\": \"7443\"}").await;
    assert_eq!(search.body["items"].as_array().map(Vec::len), Some(0), "{}", search.body);
}

#[tokio::test]
async fn the_dashboards_files_are_closed_to_other_sites() {
    let asking = Asking::start().await;
    let got = asking.send("", "GET", "/ui/", "").await;
    assert_eq!((got.status, got.kind.as_str()), (200, "text/html; charset=utf-8"));
    assert_eq!(asking.send("", "GET", "/ui/../secret", "").await.status, 404);
    assert_eq!(asking.send("", "POST", "/ui/", "").await.status, 404);
}
