//! Each operation once at least, on a store with a session of an agent.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Asking, DOCUMENT};

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let asking = Asking::start().await;
    sessions(&asking).await;
    finding(&asking).await;
    memory(&asking).await;
    contexts(&asking).await;
    crate::runs::a_run_asks_and_goes_on(&asking).await;
    asking.ask("openapi", "/openapi.json", "").await;
    let asked: BTreeSet<String> = asking.asked.lock().expect("no panic").iter().cloned().collect();
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let known: BTreeSet<String> = paths
        .values()
        .flat_map(|methods| methods.as_object().expect("methods").values())
        .map(|operation| operation["operationId"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(asked, known);
}

async fn sessions(asking: &Asking) {
    let listed = asking.ask("listSessions", "/sessions", "").await;
    let ids: Vec<&str> = items(&listed).filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids.len(), 4, "{listed}");
    assert!(!ids.contains(&"secret"), "{listed}");
    let one = asking.ask("getSession", "/sessions/agent", "").await;
    assert_eq!(one["title"], "Why does the ledger fail?");
    let messages = asking.ask("listMessages", "/sessions/agent/messages", "").await;
    assert_eq!(items(&messages).count(), 27);
    let receipts = asking.ask("listReceipts", "/sessions/agent/receipts", "").await;
    assert_eq!(items(&receipts).count(), 3);
    let turns = asking.ask("listTurns", "/sessions/agent/turns", "").await;
    assert_eq!((turns["basis"].as_str(), items(&turns).count()), (Some("replayed"), 13));
    let last = items(&turns).last().expect("turns");
    let sources = last["sources"].as_object().expect("sources");
    assert!(sources.contains_key("result: read_file"), "{last}");
    let sum: u64 = sources
        .iter()
        .filter(|(name, _)| *name != "prompt and tools")
        .filter_map(|(_, tokens)| tokens.as_u64())
        .sum();
    let sent = last["tokens"].as_u64().expect("tokens");
    assert!(sum.abs_diff(sent) <= 30, "the sources make up the context: {sum} of {sent}");
    let other = asking.ask("listTurns", "/sessions/agent/turns?policy=newest&budget=900", "").await;
    assert!(items(&other).any(|turn| turn["tokens"] != turn["full_tokens"]), "{other}");
    let again = asking.ask("listTurns", "/sessions/agent/turns", "").await;
    assert_eq!(again, turns, "another policy changes nothing of the usual one");
    let path = "/sessions/agent/turns/12?policy=newest&budget=2000&limit=500";
    let turn = asking.ask("getTurn", path, "").await;
    let changed: Vec<_> = items(&turn).filter(|row| row["treatment"] != "keep").collect();
    assert!(!changed.is_empty(), "{turn}");
    assert!(turn["difference"].is_object(), "the newest messages push out others: {turn}");
    let only = asking.ask("getTurn", &format!("{path}&changed=true"), "").await;
    assert_eq!(items(&only).count(), changed.len());
    assert_eq!(turn["has_next"], false, "{turn}");
    let before = asking.ask("getTurn", "/sessions/agent/turns/11", "").await;
    assert_eq!(before["has_next"], true);
    let text = asking.ask("getTurnMessage", "/sessions/agent/turns/12/messages/3", "").await;
    assert!(text["said"].as_str().is_some_and(|text| text.len() > 1000), "{text}");
    let path = "/sessions/agent/what-if?policy=plimsoll&policy=newest";
    let compared = asking.ask("comparePolicies", path, "").await;
    let policies: Vec<_> = items(&compared).map(|one| &one["policy"]).collect();
    assert_eq!(policies, ["full", "plimsoll", "newest"]);
    let metrics = asking.ask("getMetrics", "/metrics", "").await;
    assert_eq!(items(&metrics).count(), 1);
    asking.ask("getMetrics", "/metrics?by=cascade", "").await;
}

async fn finding(asking: &Asking) {
    let hits = asking.ask("search", "/search", r#"{"query": "port 7443"}"#).await;
    let reference = hits["items"][0]["ref"].as_str().expect("a ref");
    let found = asking.ask("getRef", &format!("/refs/{reference}"), "").await;
    assert_eq!(found["text"], "The port is 7443.");
    let escaped = reference.replace(':', "%3A");
    let part = asking.ask("getRef", &format!("/refs/{escaped}?search=port"), "").await;
    assert_eq!(part["lines"], json!([1]));
    let body = r#"{"query": "which port", "budget": 500}"#;
    let recalled = asking.ask("recall", "/recall", body).await;
    assert!(items(&recalled).any(|hit| hit["text"].as_str().expect("text").contains("7443")));
    assert!(!recalled.to_string().contains("only the other tenant"), "{recalled}");
}

async fn memory(asking: &Asking) {
    let body = r#"{"text": "Releases are cut on Tuesdays.", "tags": ["release"]}"#;
    let added = asking.ask("addMemory", "/memory", body).await;
    assert_eq!(added["novelty"], "new");
    assert_eq!(added["record"]["origin"], "user", "no caller writes as the operator");
    let id = added["record"]["id"].as_str().expect("an id");
    let listed = asking.ask("listMemory", "/memory?kind=fact", "").await;
    assert_eq!(items(&listed).count(), 1);
    asking.ask("getMemory", &format!("/memory/{id}"), "").await;
    let body = r#"{"text": "Releases are cut on Wednesdays."}"#;
    let edited = asking.ask("editMemory", &format!("/memory/{id}"), body).await;
    assert_eq!(edited["micro"], "Releases are cut on Wednesdays.");
    let path = format!("/memory/{id}/events");
    let reviewed = asking.ask("changeMemory", &path, r#"{"event": "reviewed"}"#).await;
    assert!(reviewed["tags"].to_string().contains("reviewed"), "{reviewed}");
    let gone = asking.ask("forgetMemory", &format!("/memory/{id}"), "").await;
    assert_eq!(gone["forgotten"], 1);
    assert_eq!(items(&asking.ask("listMemory", "/memory?all=true", "").await).count(), 0);
    let frames = asking.ask("listFrames", "/frames", "").await;
    assert!(items(&frames).any(|frame| frame["name"] == "debugging"));
}

async fn contexts(asking: &Asking) {
    let body = r#"{"text": "What is the port?", "session": "agent", "budget": 4000}"#;
    let assembled = asking.ask("assemble", "/assemble", body).await;
    assert!(assembled["messages"].to_string().contains("What is the port?"), "{assembled}");
    let long = "a line of a long result\n".repeat(800);
    let messages = json!([
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": long},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "And now?"},
    ]);
    let body = json!({"messages": messages, "model": "gpt-5", "policy": "newest", "budget": 500});
    let bounded = asking.ask("bound", "/bound", &body.to_string()).await;
    assert!(bounded["tokens"].as_u64() < bounded["full_tokens"].as_u64(), "{bounded}");
    let sent = bounded["messages"].as_array().expect("messages");
    assert_eq!(sent.last(), messages.as_array().and_then(|all| all.last()));
    let session = messages.to_string();
    let replayed = asking.ask("replay", "/replay?policy=newest", &session).await;
    assert_eq!(replayed["messages"], 5);
    let cascade = json!({"source": "cascade_id: one\nphases:\n  - name: first\n    instructions: Say hello.\n"});
    let checked = asking.ask("validateCascade", "/cascades/validate", &cascade.to_string()).await;
    assert_eq!(checked["is_valid"], true, "{checked}");
    let drawn = asking.ask("graphCascade", "/cascades/graph", &cascade.to_string()).await;
    assert!(drawn["svg"].as_str().is_some_and(|svg| svg.starts_with("<svg")), "{drawn}");
    let wrong = json!({"source": "cascade_id: one\nphases: 3\n"});
    let checked = asking.ask("validateCascade", "/cascades/validate", &wrong.to_string()).await;
    assert_eq!(checked["is_valid"], false, "{checked}");
}

fn items(page: &Value) -> impl Iterator<Item = &Value> {
    page["items"].as_array().expect("a page").iter()
}
