//! Marks of the provider's cache, our own tools where they pay, and the bill that comes of both.

use std::sync::Arc;

use plimsoll_engine::HistoryStore;
use plimsoll_gateway::{Mode, OwnTools};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::provider::RecordedExchange;
use serde_json::{Value, json};

use crate::agent::{Agent, BOUND, FREE, body, marks, provider, receipts};
use crate::harness::Running;

/// Sends the first request of an agent and returns it as the provider received it.
async fn first(agent: &Agent, sets_marks: bool) -> Value {
    let provider = provider([]).await;
    let gateway = Running::start(&provider.address(), |config| {
        config.marks = sets_marks;
        config.add.tools = OwnTools::Off;
    })
    .await;
    let answer = agent.ask(&gateway).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    body(&provider.kept()[0])
}

#[tokio::test]
async fn an_agent_without_marks_gets_them_on_the_system_prompt_and_the_last_message() {
    let agent = Agent::new(FREE, "Read all files.");
    let short = json!({"type": "ephemeral"});
    let marked = first(&agent, true).await;
    let mut expected = agent.body.clone();
    expected["system"] =
        json!([{"type": "text", "text": "You mend programs.", "cache_control": short}]);
    expected["messages"][0]["content"] =
        json!([{"type": "text", "text": "Read all files.", "cache_control": short}]);
    assert_eq!(marked, expected);
    assert_eq!(first(&agent, false).await, agent.body, "marks are switched off");
}

#[tokio::test]
async fn a_single_question_gets_no_marks() {
    let mut agent = Agent::new(FREE, "What is a plimsoll line?");
    agent.body.as_object_mut().expect("an object").remove("tools");
    assert_eq!(first(&agent, true).await, agent.body);
}

#[tokio::test]
async fn a_client_with_marks_keeps_them() {
    let mut agent = Agent::new(FREE, "Read all files.");
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    agent.body["system"] = json!([{"type": "text", "text": "You help.", "cache_control": long}]);
    assert_eq!(first(&agent, true).await, agent.body);
}

/// Puts the client's marks on a system prompt that the cache keeps, and on the newest messages of the user, so many in all, as agents do.
fn mark(agent: &mut Agent, count: usize) {
    let mark = json!({"type": "ephemeral"});
    let prompt = "You mend programs. ".repeat(500);
    agent.body["system"] = json!([{"type": "text", "text": prompt, "cache_control": mark}]);
    let messages = agent.body["messages"].as_array_mut().expect("a list");
    let mut left = count - 1;
    for message in messages.iter_mut().rev().filter(|message| message["role"] == "user") {
        if let Some(block) = message["content"].get_mut(0).filter(|block| block.is_object()) {
            let block = block.as_object_mut().expect("an object");
            block.remove("cache_control");
            if left > 0 {
                block.insert("cache_control".to_owned(), mark.clone());
                left -= 1;
            }
        }
    }
}

/// Tells of which share of its prompt a request read from the cache.
fn share_read(kept: &RecordedExchange) -> f64 {
    let usage = kept.usage;
    let prompt = usage.input + usage.cache_read + usage.cache_written;
    usage.cache_read as f64 / prompt as f64
}

#[tokio::test]
async fn our_marks_stand_beside_the_clients_where_old_results_are_settled() {
    for count in [2, 3, 4] {
        let provider = provider(0..40).await;
        let gateway = Running::start(&provider.address(), |config| config.marks = true).await;
        let mut agent = Agent::new(FREE, "Read all files.");
        mark(&mut agent, count);
        let mut answer = agent.turn(&gateway).await;
        for _ in 1..40 {
            mark(&mut agent, count);
            answer = agent.turn(&gateway).await;
        }
        let kept = provider.kept();
        let receipts = receipts(&*gateway.store, &answer).await;
        assert_eq!((kept.len(), receipts.len()), (40, 40));
        let mut at_an_entry = 0;
        for (turn, (receipt, request)) in receipts.iter().zip(&kept).enumerate() {
            assert_eq!(request.violations, [""; 0]);
            let own = receipt["marks"].as_array().map_or(&[][..], Vec::as_slice);
            // The task is a string, which this client does not mark.
            let client = count.min(turn + 1);
            assert_eq!(marks(&body(request)), client + own.len(), "turn {turn}");
            assert_eq!(own.is_empty(), turn == 0 || client == 4, "turn {turn}");
            let change = &receipt["changes"][0];
            if let (Some(mark), Some(position)) = (own.first(), change["position"].as_u64()) {
                at_an_entry += u64::from(mark.as_u64() < Some(position));
            }
            // The second request writes what the first had no room for; the first batch keeps what stands before its results.
            let share = share_read(request);
            let least = if change.is_null() { 0.5 } else { 0.1 };
            let is_read = turn < 2 || share > least;
            assert!(is_read || client == 4, "turn {turn} of {count} marks: {share}, {change}");
        }
        assert_eq!(at_an_entry > 0, count < 4, "a mark stands before the first change");
    }
}

#[tokio::test]
async fn own_tools_are_offered_where_the_first_request_is_large() {
    // 350 KB: our tools are less than a two hundred and fiftieth of it.
    let large: String = (0..7000)
        .map(|line| format!("{line}: read a file and tell of it."))
        .collect::<Vec<_>>()
        .join("\n");
    let larger = large.repeat(2);
    for (model, task, expected) in [
        (FREE, "Read.", false),
        (FREE, &*larger, true),
        (BOUND, "Read.", false),
        (BOUND, &*larger, false),
    ] {
        let provider = provider(0..3).await;
        let gateway =
            Running::start(&provider.address(), |config| config.add.tools = OwnTools::Auto).await;
        let mut agent = Agent::new(model, task);
        for turn in 0..3 {
            agent.turn(&gateway).await;
            // What comes later, however large, is no reason to change what stands before everything.
            if turn == 0 {
                let messages = agent.body["messages"].as_array_mut().expect("a list");
                messages.push(json!({"role": "user", "content": larger}));
            }
        }
        for request in provider.kept() {
            let offered = body(&request)["tools"].to_string().contains("expand_ref");
            assert_eq!(offered, expected, "{model}, {} bytes", task.len());
        }
    }
}

#[tokio::test]
async fn headers_have_what_the_session_was_billed_before_this_request() {
    let provider = provider((0..6).map(|turn| turn % 2)).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let start = async || Running::with_store(&provider.address(), store.clone(), |_| {}).await;
    let mut gateway = start().await;
    let mut agent = Agent::new(FREE, "Read all files.");
    let mut billed = 0.0;
    for turn in 0..6 {
        // A restart forgets nothing of it.
        if turn == 4 {
            gateway = start().await;
        }
        let answer = agent.turn(&gateway).await;
        let dollars = |name| answer.header(name).map(|text| text.parse::<f64>().expect("dollars"));
        if turn == 0 {
            assert_eq!(dollars("x-plimsoll-billed-usd"), None, "nothing was reported yet");
            assert_eq!(dollars("x-plimsoll-saved-usd"), None);
        } else {
            let told = dollars("x-plimsoll-billed-usd").expect("a bill");
            assert!((told - billed).abs() < 1e-6, "turn {turn}: {told}, not {billed}");
            let kept = receipts(&*store, &answer).await;
            let without = kept[..turn].iter().map(|one| one["request"]["bill"]["without"].as_f64());
            let without: f64 = without.map(|one| one.expect("dollars")).sum();
            let saved = dollars("x-plimsoll-saved-usd").expect("a figure");
            assert!((saved - (without - billed)).abs() < 1e-6, "turn {turn}: {saved}");
        }
        assert_eq!(answer.header("x-plimsoll-bill-estimate"), None);
        billed += provider.kept()[turn].bill.as_ref().expect("an answered turn").input;
    }
    // A model whose price nobody knows.
    let mut agent = Agent::new("claude-novel-9", "Read a file.");
    agent.turn(&gateway).await;
    let answer = agent.turn(&gateway).await;
    assert_eq!(answer.header("x-plimsoll-bill-estimate"), Some("true"));
}

#[tokio::test]
async fn a_receipt_has_the_bill_and_the_bill_without_us() {
    let provider = provider((0..12).map(|turn| turn % 3)).await;
    let gateway = Running::start(&provider.address(), |config| config.marks = true).await;
    let mut agent = Agent::new(FREE, "Read all files.");
    let mut answer = agent.turn(&gateway).await;
    for _ in 1..12 {
        answer = agent.turn(&gateway).await;
    }
    let dollars = |value: &Value| value.as_f64().expect("dollars");
    let (mut billed, mut without) = (0.0, 0.0);
    let kept = provider.kept();
    let receipts = receipts(&*gateway.store, &answer).await;
    assert_eq!(receipts.len(), kept.len());
    for (receipt, request) in receipts.iter().zip(&kept) {
        let bill = &receipt["request"]["bill"];
        assert_eq!(bill["estimate"], Value::Null, "the price of this model is known");
        let charged = request.bill.as_ref().expect("an answered turn").input;
        assert!((dollars(&bill["billed"]) - charged).abs() < 1e-9, "{bill}, not {charged}");
        billed += charged;
        without += dollars(&bill["without"]);
    }
    assert!(billed < without, "lines that were said before cost nothing: {billed} of {without}");
    let figures = gateway.send("GET", "/metrics", &[], b"").await.text();
    for (kind, sum) in [("billed", billed), ("without", without)] {
        let name = format!("plimsoll_microdollars_total{{kind=\"{kind}\"}} ");
        let line = figures.lines().find_map(|line| line.strip_prefix(&*name)).expect("a figure");
        let figure: f64 = line.parse().expect("a number");
        // Each request is rounded by itself.
        assert!((figure - sum * 1e6).abs() <= 12.0, "{kind}: {figure}, not {sum}");
    }
}

#[tokio::test]
async fn nothing_is_saved_where_requests_are_only_observed() {
    let provider = provider((0..8).map(|turn| turn % 2)).await;
    let gateway = Running::start(&provider.address(), |config| config.mode = Mode::Observe).await;
    let mut agent = Agent::new(FREE, "Read all files.");
    let mut answer = agent.turn(&gateway).await;
    for _ in 1..8 {
        answer = agent.turn(&gateway).await;
    }
    for receipt in receipts(&*gateway.store, &answer).await {
        let bill = &receipt["request"]["bill"];
        assert!(bill["billed"].is_number() && bill["billed"] == bill["without"], "{bill}");
    }
    assert_eq!(answer.header("x-plimsoll-saved-usd"), Some("0.000000"));
}
