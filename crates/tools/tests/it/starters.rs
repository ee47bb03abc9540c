//! The tools that come with Plimsoll: off by default, and within their limits.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{ToolAnswer, ToolError, ToolSource};
use plimsoll_testkit::ManualClock;
use plimsoll_tools::{StarterConfig, StarterTools};

fn tools(config: &StarterConfig) -> StarterTools {
    // Time stands still: nothing runs out of time.
    let clock = ManualClock::new(MillisSinceEpoch(0), Duration::ZERO);
    let environment = |name: &str| std::env::vars().find(|(key, _)| key == name).map(|(_, it)| it);
    config.tools(&environment, Arc::new(clock)).expect("tools")
}

fn allowing(names: &[&str], folder: &std::path::Path) -> StarterConfig {
    StarterConfig {
        allow: names.iter().map(|name| (*name).to_owned()).collect(),
        folder: Some(folder.to_owned()),
        ..StarterConfig::default()
    }
}

async fn call(tools: &StarterTools, name: &str, arguments: &str) -> ToolAnswer {
    tools.call(name, arguments).await.expect("an answer")
}

#[tokio::test]
async fn everything_is_off_until_it_is_allowed() {
    let none = tools(&StarterConfig::default());
    assert!(none.tools().await.expect("a list").is_empty());
    let error = none.call("shell", r#"{"command": "echo hi"}"#).await;
    assert!(matches!(error, Err(ToolError::Unknown { .. })));
    let unknown = StarterConfig { allow: vec!["fly".to_owned()], ..StarterConfig::default() };
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(0), Duration::ZERO));
    let error = unknown.tools(&|_| None, clock).expect_err("no such tool");
    assert_eq!(error.to_string(), "there is no starter tool `fly`");
}

#[tokio::test]
async fn programs_run_in_the_folder_and_under_the_names_that_cascades_have() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("boats.txt"), "seven").expect("written");
    let tools = tools(&allowing(&["shell", "python"], folder.path()));
    for name in ["shell", "linux_shell", "bash"] {
        let answer =
            call(&tools, name, r#"{"command": "cat boats.txt; echo $CONTENT", "content": "x"}"#);
        assert_eq!(answer.await.text, "sevenx\n", "{name}");
    }
    let failed = call(&tools, "shell", r#"{"command": "exit 3"}"#).await;
    assert!(failed.is_error && failed.text.contains("exit status 3"), "{failed:?}");
    let code = r#"{"code": "result = {'valid': len(content) > 2}", "content": "long"}"#;
    assert_eq!(call(&tools, "run_code", code).await.text, "{\"valid\": true}\n");
    let told = call(&tools, "python", r#"{"code": "print(6 * 7)"}"#).await;
    assert_eq!(told.text, "42\n");
}

#[tokio::test]
async fn output_and_memory_have_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = allowing(&["shell", "python"], folder.path());
    config.output_limit = 100;
    config.memory_mib = 256;
    let tools = tools(&config);
    let much = call(&tools, "shell", r#"{"command": "yes"}"#).await;
    assert!(much.is_error && much.text.contains("more than 100 bytes"), "{much:?}");
    let hungry = call(&tools, "python", r#"{"code": "print(len(bytearray(1 << 30)))"}"#).await;
    assert_eq!(hungry.is_error, cfg!(target_os = "linux"), "{hungry:?}");
}

#[tokio::test]
async fn files_stay_in_their_folder() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret"), "x").expect("written");
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("a link");
    let tools = tools(&allowing(&["read_file", "write_file"], folder.path()));
    let written = call(&tools, "write_file", r#"{"path": "a.txt", "content": "tide"}"#).await;
    assert!(!written.is_error, "{written:?}");
    assert_eq!(call(&tools, "read_file", r#"{"path": "a.txt"}"#).await.text, "tide");
    let absolute = format!(r#"{{"path": "{}/secret"}}"#, outside.path().display());
    for path in [r#"{"path": "../secret"}"#, r#"{"path": "link/secret"}"#, &absolute] {
        let refused = call(&tools, "read_file", path).await;
        assert!(refused.is_error && refused.text.contains("leads out"), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn sql_runs_on_a_database_of_its_own_or_on_a_file_that_it_may_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools_in_memory = tools(&allowing(&["sql", "sql_search"], folder.path()));
    let made = r#"{"query": "CREATE TABLE boat (name TEXT, length REAL); INSERT INTO boat VALUES ('Ada', 9.5), ('Bea', NULL); SELECT * FROM boat ORDER BY name"}"#;
    let rows = call(&tools_in_memory, "sql_data", made).await;
    assert_eq!(
        rows.text,
        r#"{"columns":["name","length"],"rows":[{"name":"Ada","length":9.5},{"name":"Bea","length":null}],"row_count":2}"#
    );
    let found = call(&tools_in_memory, "sql_search", r#"{"query": "boats by length"}"#).await;
    assert!(found.text.contains(r#""table":"boat""#), "{}", found.text);
    let refused = call(&tools_in_memory, "sql", r#"{"query": "ATTACH 'x.db' AS x"}"#).await;
    assert!(refused.is_error, "{refused:?}");
    let path = folder.path().join("kept.db");
    let mut config = allowing(&["sql"], folder.path());
    config.database = Some(path);
    config.database_writes = true;
    let writing = call(&tools(&config), "sql", r#"{"query": "CREATE TABLE a (b)"}"#).await;
    assert!(!writing.is_error, "{writing:?}");
    config.database_writes = false;
    let reading = tools(&config);
    let refused = call(&reading, "sql", r#"{"query": "CREATE TABLE c (d)"}"#).await;
    assert!(refused.is_error && refused.text.contains("readonly"), "{refused:?}");
}

#[tokio::test]
async fn only_hosts_that_are_named_are_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = allowing(&["http_get"], folder.path());
    let refused = call(&tools(&config), "http_get", r#"{"url": "http://example.org/"}"#).await;
    assert!(refused.is_error && refused.text.contains("not allowed"), "{refused:?}");
    config.hosts = vec!["*".to_owned()];
    let inside = call(&tools(&config), "http_get", r#"{"url": "http://127.0.0.1:1/"}"#).await;
    assert!(inside.is_error && inside.text.contains("not a public one"), "{inside:?}");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _ = stream.read(&mut [0; 1024]).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\ntides";
        stream.write_all(answer).await.expect("sent");
    });
    config.hosts = vec!["127.0.0.1".to_owned()];
    let url = format!(r#"{{"url": "http://{address}/"}}"#);
    assert_eq!(call(&tools(&config), "http_get", &url).await.text, "tides");
    served.await.expect("served");
}
