//! Each tool on good and on wrong arguments, within its budget, and page by page.

use plimsoll_core::Tokenizer;
use serde_json::{Value, json};

use crate::client::{Client, NEWEST};

fn tokens(text: &str) -> u32 {
    Tokenizer::O200k { factor: 1.0 }.count(text)
}

#[tokio::test]
async fn what_is_remembered_is_recalled_until_it_is_forgotten() {
    let mut client = Client::connect(NEWEST).await;
    let fact =
        json!({"text": "Releases are cut on Tuesdays.", "kind": "fact", "tags": ["release"]});
    let stored = client.call("remember", fact.clone()).await.expect("it is stored");
    let id = stored.rsplit(' ').next().expect("an id").to_owned();
    assert!(stored.starts_with("Stored: fact "), "{stored}");
    assert!(client.call("remember", fact).await.expect("known").starts_with("Known"));
    let found = client.call("recall", json!({"query": "which day are releases cut"})).await;
    let found = found.expect("a record");
    assert!(found.contains("Tuesdays") && found.contains(&id), "{found}");
    assert!(found.contains("by assistant"), "a client writes no record of the operator: {found}");
    let gone = client.call("forget", json!({"id": id})).await.expect("it is forgotten");
    assert!(gone.contains(&id), "{gone}");
    let found = client.call("recall", json!({"query": "Tuesdays"})).await.expect("an answer");
    assert!(!found.contains("Tuesdays"), "{found}");
    assert!(client.call("forget", json!({"id": id})).await.is_err());
}

#[tokio::test]
async fn messages_are_recalled_and_expanded() {
    let mut client = Client::connect(NEWEST).await;
    let found = client.call("recall", json!({"query": "port of the ledger service"})).await;
    let found = found.expect("a message");
    assert!(found.contains("7443") && !found.contains("nobody"), "{found}");
    let reference = found.split_whitespace().find(|word| word.starts_with("ref:")).expect("a ref");
    let whole = client.call("expand_ref", json!({"ref": reference})).await;
    assert_eq!(whole.as_deref(), Ok(crate::NEEDLE));
    let rest = client.call("expand_ref", json!({"ref": reference, "offset": 34})).await;
    assert_eq!(rest.as_deref(), Ok("7443"));
    let lines = client.call("expand_ref", json!({"ref": reference, "search": "absent"})).await;
    assert!(!lines.expect("an answer").contains("7443"));
}

/// Reads a list page by page and returns its pages.
async fn pages(client: &mut Client, tool: &str, mut arguments: Value) -> Vec<String> {
    let mut pages = Vec::new();
    loop {
        let text = client.call(tool, arguments.clone()).await.expect("a page");
        let limit = arguments["budget"].as_u64().expect("a budget");
        assert!(u64::from(tokens(&text)) <= limit, "{} tokens of {limit}", tokens(&text));
        let next = text
            .rsplit_once("go on with from ")
            .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        pages.push(text);
        assert!(pages.len() < 50, "the pages do not end");
        match next {
            Some(next) => arguments["from"] = json!(next.parse::<u32>().expect("a number")),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn lists_are_read_page_by_page_without_a_gap() {
    let mut client = Client::connect(NEWEST).await;
    let timeline = json!({"session": "alpha", "budget": 500});
    let pages_of_messages = pages(&mut client, "timeline", timeline).await;
    assert!(pages_of_messages.len() > 2);
    let positions: Vec<usize> = pages_of_messages
        .iter()
        .flat_map(|page| page.lines())
        .filter_map(|line| line.split_once(" turn ")?.0.parse().ok())
        .collect();
    assert_eq!(positions, (0..40).collect::<Vec<_>>());
    for (tool, about) in [("search_context", "walk"), ("recall", "long walk")] {
        let found = pages(&mut client, tool, json!({"query": about, "budget": 400})).await;
        let mut refs: Vec<&str> = found
            .iter()
            .flat_map(|page| page.split_whitespace())
            .filter(|word| word.starts_with("ref:message:"))
            .collect();
        let all = refs.len();
        refs.sort_unstable();
        refs.dedup();
        assert_eq!(refs.len(), all, "{tool} shows an entry twice");
        assert!(all > 20, "{tool} shows {all} entries");
    }
}

#[tokio::test]
async fn pressure_and_receipts_are_told() {
    let mut client = Client::connect(NEWEST).await;
    let asked = json!({"session": "alpha", "window": 1000});
    let text = client.call("context_pressure", asked).await.expect("a figure");
    assert!(text.starts_with("whole session: 1060 of 1000 tokens, 106%"), "{text}");
    let last = client.call("explain_turn", json!({"session": "alpha"})).await.expect("a receipt");
    assert!(last.starts_with("turn 1 by settle"), "{last}");
    let sessions = client.call("timeline", json!({})).await.expect("sessions");
    assert_eq!(sessions, "alpha 40 messages 1060 tokens\n");
}

#[tokio::test]
async fn wrong_arguments_are_tool_errors_of_one_line() {
    let mut client = Client::connect(NEWEST).await;
    for (tool, arguments, says) in [
        ("recall", json!({}), "`query` is missing"),
        ("recall", json!({"query": "x", "querry": "y"}), "there is no argument `querry`"),
        ("recall", json!({"query": 3}), "invalid type"),
        ("remember", json!({"text": "x", "kind": "rumour"}), "unknown variant"),
        ("remember", json!({"text": " "}), "`text` is missing"),
        ("forget", json!({"id": "fact-none"}), "fact-none"),
        ("search_context", json!({"query": "x", "session": ""}), "an id has 1 to 128"),
        ("expand_ref", json!({"ref": "ref:message:0123456789abcdef"}), "0123456789abcdef"),
        ("expand_ref", json!({"ref": "x", "lines": "9-2"}), "FIRST-LAST"),
        ("context_pressure", json!({"session": "omega"}), "there is no session omega"),
        ("explain_turn", json!({"session": "alpha", "turn": 9}), "turns 0 to 1"),
        ("timeline", json!({"session": "alpha", "from": 40}), "40 messages"),
    ] {
        let error = client.call(tool, arguments.clone()).await.expect_err(tool);
        assert!(error.contains(says) && !error.contains('\n'), "{tool} {arguments}: {error}");
    }
    let unknown = client.ask("tools/call", json!({"name": "rm", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}
