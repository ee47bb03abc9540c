//! `plimsoll ui` and the interface of `plimsoll serve`, asked over loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::environment::Environment;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/session.jsonl");

/// A running server.
struct Running {
    child: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(environment: &Environment, arguments: &[&str]) -> Self {
        let mut command = environment.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the binary starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("it says where it listens");
        let address = line.split_once("http://").expect("an address").1;
        let address = address.trim().split('/').next().expect("an address").to_owned();
        Self { child, address }
    }

    /// Sends a request and returns the status, the media type and the body.
    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let own = [("host", self.address.as_str())];
        let has_host = headers.iter().any(|(name, _)| *name == "host");
        for (name, value) in own.iter().filter(|_| !has_host).chain(headers) {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        }
        let length = body.len();
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        (status, kind.unwrap_or_default().to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.ask("GET", path, &[], "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }
}

#[test]
fn a_recorded_session_is_shown_and_nothing_goes_to_an_upstream() {
    let environment = Environment::new();
    let shown = Running::start(&environment, &["ui", EXAMPLE, "--listen", "127.0.0.1:0"]);
    let sessions = shown.get("/api/v1/sessions");
    let id = sessions["items"][0]["id"].as_str().expect("a session").to_owned();
    let turns = shown.get(&format!("/api/v1/sessions/{id}/turns"));
    assert_eq!(turns["items"].as_array().map(Vec::len), Some(22), "{turns}");
    let (status, kind, page) = shown.ask("GET", "/ui/", &[], "");
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    // Every file that the page names is there, and so is every one that a file names.
    for name in ["style.css", "app.js"] {
        assert!(page.contains(name), "{page}");
    }
    let (_, _, app) = shown.ask("GET", "/ui/app.js", &[], "");
    let imports = app.lines().filter_map(|line| line.split_once("from './")?.1.split('\'').next());
    let names: Vec<&str> = imports.chain(["style.css", "element.js"]).collect();
    assert!(names.len() > 6, "{names:?}");
    for name in names {
        assert_eq!(shown.ask("GET", &format!("/ui/{name}"), &[], "").0, 200, "{name}");
    }
    for path in ["/v1/messages", "/", "/metrics-of-nobody"] {
        let (status, kind, _) = shown.ask("POST", path, &[], "{}");
        assert_eq!((status, kind.as_str()), (404, "application/problem+json"), "{path}");
    }
}

#[test]
fn requests_of_other_sites_are_refused() {
    let environment = Environment::new();
    let shown = Running::start(&environment, &["ui", EXAMPLE, "--listen", "127.0.0.1:0"]);
    let own = format!("http://{}", shown.address);
    let json = ("content-type", "application/json");
    let fact = "{\"text\": \"A fact of the test.\"}";
    let write = |headers: &[(&str, &str)]| shown.ask("POST", "/api/v1/memory", headers, fact);
    for foreign in [
        &[json, ("origin", "https://evil.example")][..],
        &[json, ("origin", "null")],
        &[json, ("sec-fetch-site", "cross-site")],
        &[json, ("host", "evil.example")],
        &[json, ("host", "evil.example"), ("origin", "http://evil.example")],
        &[("content-type", "text/plain")],
    ] {
        let (status, kind, body) = write(foreign);
        assert_eq!(
            (status, kind.as_str()),
            (403, "application/problem+json"),
            "{foreign:?} {body}"
        );
    }
    assert_eq!(write(&[("content-type", "application/x-www-form-urlencoded")]).0, 415);
    let memory = shown.get("/api/v1/memory");
    assert_eq!(memory["items"].as_array().map(Vec::len), Some(0), "nothing was written");
    let page = [json, ("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(write(&page).0, 200, "the dashboard itself may write");
}

#[test]
fn a_gateway_with_keys_gives_each_tenant_its_own() {
    let environment = Environment::new();
    let arguments = ["import", EXAMPLE, "--store", "kept.db", "--tenant", "ann"];
    assert_eq!(environment.run(&arguments).code, 0);
    let digest = |key: &str| plimsoll_engine::digest(key.as_bytes());
    environment.write(
        "plimsoll.toml",
        format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[gateway.keys.ann]\nsha256 = \"{}\"\n[gateway.keys.bob]\nsha256 = \"{}\"\n",
            digest("key of ann"),
            digest("key of bob")
        ),
    );
    let served = Running::start(&environment, &["serve", "--store", "kept.db"]);
    let count = |headers: &[(&str, &str)]| {
        let (status, _, body) = served.ask("GET", "/api/v1/sessions", headers, "");
        let page: Value = serde_json::from_str(&body).unwrap_or_default();
        (status, page["items"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(count(&[]), (401, 0));
    assert_eq!(count(&[("x-plimsoll-key", "another")]), (401, 0));
    assert_eq!(count(&[("x-plimsoll-key", "key of ann")]), (200, 1));
    assert_eq!(count(&[("authorization", "Bearer key of ann")]), (200, 1));
    assert_eq!(count(&[("x-plimsoll-key", "key of bob")]), (200, 0));
    // The page itself holds no data, and asks for the key.
    assert_eq!(served.ask("GET", "/ui/", &[], "").0, 200);
}

#[test]
fn a_cascade_is_run_over_the_interface_and_asks_a_person() {
    let environment = Environment::new();
    environment.write("script.jsonl", "{\"text\": \"A draft.\"}\n{\"text\": \"It is posted.\"}\n");
    environment.write("plimsoll.toml", "[run]\nmodel = \"scripted/script.jsonl\"\n");
    let arguments = ["ui", "--store", "kept.db", "--listen", "127.0.0.1:0"];
    let shown = Running::start(&environment, &arguments);
    let source = "cascade_id: notice\nphases:\n  - name: draft\n    instructions: Draft it.\n    human_input: {type: text, prompt: 'Post it?'}\n    handoffs: [post]\n  - name: post\n    instructions: Post it.\n";
    let json = [("content-type", "application/json")];
    let post = |path: &str, body: &Value| {
        let (status, _, text) = shown.ask("POST", path, &json, &body.to_string());
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let begin = serde_json::json!({"source": source, "session": "notice"});
    post("/api/v1/cascades/runs", &begin);
    let until = |state: &str| loop {
        // Each answer comes with the next event, or with another state.
        let count = shown.get("/api/v1/cascades/runs/notice")["events"].as_u64().unwrap_or(0);
        let cursor = count.checked_sub(1).map_or(String::new(), |last| format!("&cursor={last}"));
        let found = shown.get(&format!("/api/v1/cascades/runs/notice/events?wait=20{cursor}"));
        if found["run"]["state"] == state {
            break found["run"].clone();
        }
        assert_eq!(found["run"]["state"], "running", "{found}");
    };
    assert_eq!(until("waiting")["question"]["phase"], "draft");
    let answer = serde_json::json!({"phase": "draft", "answer": "yes"});
    post("/api/v1/cascades/runs/notice/answers", &answer);
    assert_eq!(until("ended")["output"], "It is posted.");
    // A run of this session is recorded: it goes on only on request, and then repeats no call.
    let (status, _, _) = shown.ask("POST", "/api/v1/cascades/runs", &json, &begin.to_string());
    assert_eq!(status, 409);
    post(
        "/api/v1/cascades/runs",
        &serde_json::json!({"source": source, "session": "notice", "resume": true}),
    );
    assert_eq!(until("ended")["output"], "It is posted.");
}

#[test]
fn a_gateway_runs_cascades_only_where_its_settings_allow_it() {
    let environment = Environment::new();
    let source =
        serde_json::json!({"source": "cascade_id: c\nphases:\n  - name: p\n    instructions: x\n"});
    for (setting, expected) in [("", 403), ("cascades = true\n", 200)] {
        environment
            .write("plimsoll.toml", format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{setting}"));
        let served = Running::start(&environment, &["serve", "--store", "kept.db"]);
        let json = [("content-type", "application/json")];
        let (status, _, body) =
            served.ask("POST", "/api/v1/cascades/runs", &json, &source.to_string());
        assert_eq!(status, expected, "{body}");
    }
}
