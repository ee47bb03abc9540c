//! MCP servers, over stdio and over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Clock, ToolError, ToolSource as _};
use plimsoll_tools::{McpServer, McpServers, Reached};

use crate::clocks::{racing, standing};

fn numbers(clock: Arc<dyn Clock>) -> McpServers {
    let reached = Reached::Stdio {
        program: env!("CARGO_BIN_EXE_mcp-over-stdio").to_owned(),
        arguments: Vec::new(),
        folder: None,
        environment: BTreeMap::from([("GIVEN".to_owned(), "1".to_owned())]),
    };
    let server = McpServer { reached, timeout: Duration::from_secs(3) };
    McpServers::new(BTreeMap::from([("numbers".to_owned(), server)]), clock)
}

#[tokio::test]
async fn a_server_over_stdio_lists_and_calls_its_tools() {
    let servers = numbers(standing());
    let tools = servers.tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["add", "environment", "fail", "hang"]);
    assert_eq!(&*tools[0].description, "Adds two numbers.");
    assert!(tools[0].schema.contains(r#""a":{"type":"number"}"#), "{}", tools[0].schema);
    let sum = servers.call("add", r#"{"a": 1.5, "b": 2}"#).await.expect("an answer");
    assert_eq!((sum.text.as_str(), sum.is_error), ("3.5", false));
    assert_eq!(&*sum.images[0].media_type, "image/png");
    let failed = servers.call("fail", "{}").await.expect("an answer");
    assert_eq!((failed.text.as_str(), failed.is_error), ("it can't be done", true));
    let environment = servers.call("environment", "{}").await.expect("an answer");
    assert_eq!(environment.text, "GIVEN");
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_said() {
    let servers = numbers(standing());
    let unknown = servers.call("subtract", "{}").await;
    assert_eq!(unknown, Err(ToolError::Unknown { name: "subtract".to_owned() }));
    let invalid = servers.call("add", "1, 2").await;
    assert!(matches!(invalid, Err(ToolError::Invalid { .. })), "{invalid:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_not_waited_for() {
    let result = numbers(racing()).tools().await;
    let Err(ToolError::Unavailable { name, why }) = result else { panic!("{result:?}") };
    assert_eq!((name.as_str(), why.as_str()), ("numbers", "no answer in 3 s"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    for reached in [
        Reached::Http { url: "http://127.0.0.1:1/mcp".to_owned() },
        Reached::Stdio {
            program: "no-such-program".to_owned(),
            arguments: Vec::new(),
            folder: None,
            environment: BTreeMap::new(),
        },
    ] {
        let server = McpServer { reached, timeout: Duration::from_secs(3) };
        let servers = McpServers::new(BTreeMap::from([("gone".to_owned(), server)]), standing());
        let result = servers.tools().await;
        assert!(
            matches!(&result, Err(ToolError::Unavailable { name, .. }) if name == "gone"),
            "{result:?}"
        );
    }
}
