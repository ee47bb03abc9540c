//! Versions, lists, resources and prompts over a pair of streams.

use serde_json::json;

use crate::client::{Client, NEWEST, OLDER};

const TOOLS: [&str; 8] = [
    "recall",
    "remember",
    "forget",
    "search_context",
    "expand_ref",
    "context_pressure",
    "explain_turn",
    "timeline",
];

#[tokio::test]
async fn each_version_lists_the_eight_tools_and_calls_one() {
    for version in OLDER.into_iter().chain([NEWEST]) {
        let mut client = Client::connect(version).await;
        let answer = client.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, TOOLS, "{version}");
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{tool}");
        }
        let text = client.call("search_context", json!({"query": "ledger"})).await;
        assert!(text.expect("a hit").contains("7443"), "{version}");
    }
}

#[tokio::test]
async fn the_newest_version_is_discovered_without_initialize() {
    let mut client = Client::connect(NEWEST).await;
    let answer = client.ask("server/discover", json!({})).await;
    let versions = answer["result"]["supportedVersions"].as_array();
    let versions = versions.unwrap_or_else(|| panic!("{answer}"));
    assert!(versions.iter().any(|version| version == NEWEST), "{answer}");
    for capability in ["tools", "resources", "prompts"] {
        assert!(answer["result"]["capabilities"][capability].is_object(), "{answer}");
    }
}

#[tokio::test]
async fn refs_sessions_and_receipts_are_resources() {
    let mut client = Client::connect("2025-06-18").await;
    let listed = client.ask("resources/list", json!({})).await;
    let resources = listed["result"]["resources"].as_array().expect("resources");
    assert_eq!(resources.len(), 1, "another tenant's session is not listed: {listed}");
    assert_eq!(resources[0]["uri"], "plimsoll://session/alpha");
    let templates = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"].as_array().map(Vec::len), Some(3));
    let found = client.call("search_context", json!({"query": "ledger"})).await.expect("a hit");
    let reference = found.split_whitespace().next().expect("a ref");
    let ask = |uri: String| json!({"uri": uri});
    let answer = client.ask("resources/read", ask(format!("plimsoll://ref/{reference}"))).await;
    assert_eq!(answer["result"]["contents"][0]["text"], crate::NEEDLE);
    let turn = client.ask("resources/read", ask("plimsoll://session/alpha/turn/1".into())).await;
    let text = turn["result"]["contents"][0]["text"].as_str().expect("a receipt");
    assert!(text.starts_with("turn 1 by settle: 5 of 11 messages sent"), "{text}");
    for unknown in
        ["plimsoll://ref/0123456789abcdef", "file:///etc/passwd", "plimsoll://session/omega"]
    {
        let answer = client.ask("resources/read", ask(unknown.into())).await;
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn frames_are_prompts() {
    let mut client = Client::connect("2025-06-18").await;
    let listed = client.ask("prompts/list", json!({})).await;
    let prompts = listed["result"]["prompts"].as_array().expect("prompts");
    assert!(prompts.iter().any(|prompt| prompt["name"] == "decision"), "{listed}");
    let asked = json!({"name": "decision", "arguments": {"situation": "SQLite or PostgreSQL?"}});
    let answer = client.ask("prompts/get", asked).await;
    let text = answer["result"]["messages"][0]["content"]["text"].as_str().expect("a prompt");
    assert!(text.contains("recall") && text.ends_with("SQLite or PostgreSQL?"), "{text}");
    let unknown = client.ask("prompts/get", json!({"name": "nothing"})).await;
    assert!(unknown["error"]["message"].is_string(), "{unknown}");
}
