//! `--history`: history on ClickHouse beside a store. What needs a server runs where `PLIMSOLL_TEST_CLICKHOUSE` is its URL.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::environment::Environment;
use crate::sessions;

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A database that is gone when the test is.
struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Names a database; `None`, and a line that says so, where no server is given.
    fn new() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "a test is told here where its server is")]
        let server = std::env::var("PLIMSOLL_TEST_CLICKHOUSE").ok();
        #[expect(
            clippy::print_stderr,
            reason = "a check that was skipped must not look like one that passed"
        )]
        let Some(server) = server else {
            eprintln!("skipped: PLIMSOLL_TEST_CLICKHOUSE is not set");
            return None;
        };
        let server = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        Some(Self { server, name: format!("plimsoll_cli_{}_{number}", std::process::id()) })
    }

    fn url(&self) -> String {
        format!("clickhouse://{}/{}", self.server, self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {}", self.name);
        let length = statement.len();
        let host = self.server.rsplit_once('@').map_or(self.server.as_str(), |(_, host)| host);
        let mut server = TcpStream::connect(host).expect("the server answers");
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{statement}"
        );
        server.write_all(request.as_bytes()).expect("sent");
        let _ = server.read(&mut [0; 64]);
    }
}

#[test]
fn a_session_is_kept_listed_explained_searched_and_forgotten() {
    let Some(database) = Database::new() else { return };
    let url = database.url();
    let environment = Environment::new();
    environment.write("session.jsonl", sessions::pi(30, 60));
    let beside = ["--store", "kept.db", "--history", &url];
    let data = |arguments: &[&str]| environment.data(&[arguments, &beside].concat());
    let json = |arguments: &[&str]| environment.json(&[arguments, &beside].concat());
    environment.write("plimsoll.toml", "[cards]\nsummarizer_model = ''\n");
    data(&["import", "session.jsonl"]);
    let rows = json(&["log", "--limit", "1000"]);
    let rows = rows.as_array().expect("rows");
    assert!(rows.len() > 30, "{}", rows.len());
    let session = rows[0]["session"].as_str().expect("a session");
    let alone = environment.json(&["log", "--store", "kept.db"]);
    assert_eq!(alone, serde_json::json!([]), "the store has no history of its own");

    // The refs that `explain` prints are found again.
    let explained = json(&["explain", "session.jsonl"]);
    let messages = explained["messages"].as_array().expect("messages");
    let changed = messages.iter().find(|row| row["treatment"] != "keep").expect("one changed");
    let reference = changed["ref"].as_str().expect("a ref");
    let shown = environment.data(&["explain", "session.jsonl", "--show", reference]);
    let got = data(&["ref", "get", reference]);
    assert_eq!(got, shown.strip_suffix('\n').expect("a line break"));
    data(&["replay", "session.jsonl"]);
    let stats = json(&["log", "stats"]);
    assert!(stats[0]["tokens_saved"].as_i64().expect("a number") > 0);
    let hits = json(&["search", "quay"]);
    assert_eq!(hits[0]["item"]["session"], session);
    assert!(data(&["recall", "--query", "quay"]).contains("quay"));
    data(&["work", "--once"]);
    let cards = json(&["cards", "--limit", "1000"]);
    assert!(!cards.as_array().expect("cards").is_empty());

    let gone = json(&["memory", "forget", "--session", session]);
    assert!(gone["messages"].as_u64().expect("a number") > 30, "{gone}");
    assert!(gone["cards"].as_u64().expect("a number") > 0, "{gone}");
    assert_eq!(json(&["log"]), serde_json::json!([]));
    assert_eq!(json(&["search", "quay"]), serde_json::json!([]));
    assert_eq!(json(&["cards"]), serde_json::json!([]));
}

#[test]
fn flag_variable_and_setting_name_the_history() {
    let Some(database) = Database::new() else { return };
    let url = database.url();
    let environment = Environment::new();
    environment.write("talk.jsonl", "{\"text\": \"the quay is open\"}\n");
    environment.data(&["import", "talk.jsonl", "--store", "kept.db", "--history", &url]);
    let log = ["log", "--store", "kept.db"];
    let count = |text: &str| text.matches("the quay is open").count();
    assert_eq!(count(&environment.data(&log)), 0);
    let ran = environment.run_with(&log, &[("PLIMSOLL_HISTORY", &url)]);
    assert_eq!((count(&ran.stdout), ran.code), (1, 0), "{}", ran.stderr);
    environment
        .write("plimsoll.toml", format!("[store]\naddress = 'kept.db'\nhistory = '{url}'\n"));
    assert_eq!(count(&environment.data(&["log"])), 1);
    assert_eq!(count(&environment.data(&["log", "--history", ""])), 0, "an empty one is none");
    let found = environment.data(&["doctor", "--offline"]);
    let line = found.lines().find(|line| line.starts_with("history")).expect("a line");
    assert!(line.contains("fine") && line.ends_with("can be written"), "{line}");
}

#[test]
fn a_history_that_cannot_be_opened_is_told_in_one_line() {
    let environment = Environment::new();
    environment.write("talk.jsonl", "{\"text\": \"the quay is open\"}\n");
    environment.data(&["import", "talk.jsonl", "--store", "kept.db"]);
    for (address, code, told) in [
        // Nobody listens on the port of discarding.
        ("clickhouse://ann:pa55w0rd@127.0.0.1:9", 1, "ClickHouse at 127.0.0.1:9 does not answer"),
        ("clickhouse://ann:pa55w0rd@h:port", 2, "it has the form clickhouse://"),
        ("clickhouse://ann:pa55w0rd@h/a?b=c", 2, "it takes no options"),
        ("postgres://ann:pa55w0rd@h/d", 2, "its address has the form clickhouse://"),
        ("kept.db", 2, "its address has the form clickhouse://"),
    ] {
        let ran = environment.run(&["log", "--store", "kept.db", "--history", address]);
        assert_eq!(ran.code, code, "{address} {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("pa55w0rd"), "{}", ran.stderr);
    }
    let ran = environment.run(&["log", "--store", "clickhouse://h"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("it keeps the history only"), "{}", ran.stderr);
    let refused = "clickhouse://ann:pa55w0rd@127.0.0.1:9";
    let ran = environment.run(&["doctor", "--offline", "--store", "kept.db", "--history", refused]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let line = ran.stdout.lines().find(|line| line.starts_with("history")).expect("a line");
    assert!(line.contains("not fine") && line.contains("does not answer"), "{line}");
    assert!(!ran.stdout.contains("pa55w0rd"), "{}", ran.stdout);
}

#[test]
fn addresses_of_stores_are_shown_without_passwords() {
    let environment = Environment::new();
    environment.write("plimsoll.toml", "[store]\naddress = 'postgres://ann:swordfish@h/d'\n");
    let history = [("PLIMSOLL_HISTORY", "clickhouse://ann:swordfish@h/d")];
    for more in [&[][..], &["--all"], &["--json"]] {
        let ran = environment.run_with(&[&["config", "show"], more].concat(), &history);
        assert!(!ran.stdout.contains("swordfish"), "{}", ran.stdout);
        assert!(ran.stdout.contains("postgres://ann:[redacted]@h/d"), "{}", ran.stdout);
    }
    let shown = environment.run_with(&["config", "show"], &history).stdout;
    let history = "history = \"clickhouse://ann:[redacted]@h/d\"  # PLIMSOLL_HISTORY\n";
    assert!(shown.contains(history) && shown.contains("  # plimsoll.toml:2\n"), "{shown}");
}
