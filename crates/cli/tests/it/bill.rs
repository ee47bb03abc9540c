//! `plimsoll bill`: what was paid, by the usage that sessions report.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::sessions;

fn lines(records: &[Value]) -> String {
    let mut text = String::new();
    for record in records {
        let _ = writeln!(text, "{record}");
    }
    text
}

fn record(kind: &str, uuid: &str, second: u32, side: bool, message: &Value) -> Value {
    json!({
        "type": kind, "uuid": uuid, "sessionId": "5e55", "cwd": "/home/ada/harbour", "isSidechain": side,
        "timestamp": format!("2026-03-02T08:{:02}:{:02}.000Z", second / 60, second % 60),
        "requestId": format!("r-{}", message["id"].as_str().unwrap_or_default()), "message": message,
    })
}

fn answer(id: &str, model: &str, usage: &Value) -> Value {
    json!({"role": "assistant", "id": id, "model": model, "content": [{"type": "text", "text": "Well."}], "usage": usage})
}

fn usage(input: u32, read: u32, written: u32, long: u32, output: u32) -> Value {
    json!({
        "input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_1h_input_tokens": long, "ephemeral_5m_input_tokens": written - long},
        "output_tokens": output
    })
}

/// Two requests of a main conversation, the first over two lines; one of a sub-agent between them; an error of the client.
fn harbour() -> String {
    const OPUS: &str = "claude-opus-4-6";
    lines(&[
        record(
            "user",
            "1",
            0,
            false,
            &json!({"role": "user", "content": "Which berths are free?"}),
        ),
        record("assistant", "2", 5, false, &answer("m1", OPUS, &usage(10, 0, 20_000, 0, 1))),
        record("assistant", "3", 6, false, &answer("m1", OPUS, &usage(10, 0, 20_000, 0, 40))),
        record("user", "4", 7, true, &json!({"role": "user", "content": "Count the berths."})),
        record(
            "assistant",
            "5",
            9,
            true,
            &answer("m2", "claude-haiku-4-5", &usage(3000, 0, 0, 0, 30)),
        ),
        record("assistant", "6", 10, false, &answer("", "<synthetic>", &usage(9, 9, 9, 0, 9))),
        record("user", "7", 20, false, &json!({"role": "user", "content": "And now?"})),
        record("assistant", "8", 25, false, &answer("m3", OPUS, &usage(10, 20_000, 500, 500, 60))),
    ])
}

/// The cost of the requests of [`harbour`]: opus at 5 and 25 dollars, haiku at 1 and 5.
fn cost() -> (f64, f64) {
    let opus = (10.0 + 20_000.0 * 1.25 + 10.0 + 20_000.0 * 0.1 + 500.0 * 2.0) * 5.0 + 100.0 * 25.0;
    ((opus + 3150.0) / 1e6, 3150.0 / 1e6)
}

fn dollars(value: &Value) -> f64 {
    value["dollars"].as_f64().expect("a number of dollars")
}

#[test]
fn every_request_is_counted_once_and_the_parts_add_up() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", harbour());
    let bill = environment.json(&["bill", "harbour.jsonl"]);
    let (all, aside) = cost();
    assert_eq!(bill["total"]["requests"], 3);
    assert!((dollars(&bill["total"]) - all).abs() < 1e-12, "{bill}");
    assert_eq!(bill["aside"]["requests"], 1);
    assert!((dollars(&bill["aside"]) - aside).abs() < 1e-12, "{bill}");
    let rows = bill["total"]["rows"].as_object().expect("rows");
    let sum: f64 = rows.values().map(dollars).sum();
    assert!((sum - all).abs() < 1e-12, "{sum} {all}");
    for by in ["project", "model", "day", "session"] {
        let list = bill["by"][by].as_array().expect("a list");
        let sum: f64 = list.iter().map(dollars).sum();
        assert!((sum - all).abs() < 1e-12, "{by} {sum} {all}");
    }
    assert_eq!(bill["by"]["project"][0]["name"], "/home/ada/harbour");
    assert_eq!(bill["by"]["session"][0]["name"], "5e55");
    assert_eq!(bill["by"]["model"][0]["name"], "claude-opus-4-6");
    assert_eq!(bill["total"]["is_estimate"], false);
}

#[test]
fn a_bill_is_read_from_top_to_bottom() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", harbour());
    insta::assert_snapshot!(environment.data(&["bill", "harbour.jsonl"]), @r#"
    $0.1458  1 session, 3 requests, 2026-03-02
    44 k in, 46% of it from the cache; 130 out; list prices of 2026-11-22
    of it $0.0032 for 1 request of sub-agents and abandoned branches

    where it went                                  cost  share
    system prompt and tools, first sent         $0.1280  87.8% ███████████████▊
    system prompt and tools, read again         $0.0100   6.9% █▏
    new content                                 $0.0050   3.4% ▌
    sent again: end of the last request         $0.0001   0.1%
    output                                      $0.0027   1.8% ▎

    what would have saved some         likely   share  range
    lazy tools                        $0.0540   37.1%  $0.0324 to $0.0756
    cache of 1 hour, not 5 minutes   −$0.0450  −30.9%  −$0.0570 to −$0.0330  not worth it
    cache of 5 minutes, not 1 hour    $0.0019    1.3%  $0.0019 to $0.0019
    estimates, each on what the ones before it left

    by model                                       cost  share  requests  cached
    claude-opus-4-6                             $0.1426  97.8%         2     49%
    claude-haiku-4-5                            $0.0032   2.2%         1      0%

    next: plimsoll replay FILE shows one session turn by turn
    "#);
}

#[test]
fn copies_sub_agents_and_what_is_no_session() {
    let environment = Environment::new();
    environment.write("all/one.jsonl", harbour());
    environment.write("all/deep/er/copy.jsonl", harbour());
    environment.write("all/openai.json", sessions::openai(1, 1));
    environment.write("all/notes.json", "{\"mood\": \"fine\"}");
    let ran = environment.run(&["bill", "all", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 file is no recorded session"), "{}", ran.stderr);
    let bill: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(bill["total"]["requests"], 3);
    assert_eq!(bill["files"]["copies"], 3);
    assert_eq!(bill["files"]["without_usage"], 1);
}

#[test]
fn without_a_file_the_usual_places_are_read() {
    let environment = Environment::new();
    let ran = environment.run(&["bill"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.starts_with("note: nothing to bill: no session in ~/.claude"),
        "{}",
        ran.stderr
    );
    environment.write_home(".claude/projects/-harbour/one.jsonl", harbour());
    let agent = lines(&[
        record("user", "a", 7, true, &json!({"role": "user", "content": "Count the berths."})),
        record(
            "assistant",
            "b",
            9,
            true,
            &answer("m2", "claude-haiku-4-5", &usage(3000, 0, 0, 0, 30)),
        ),
        record(
            "assistant",
            "c",
            12,
            true,
            &answer("m4", "claude-haiku-4-5", &usage(3100, 0, 0, 0, 30)),
        ),
    ]);
    environment.write_home(".claude/projects/-harbour/5e55/subagents/agent-1.jsonl", agent);
    let bill = environment.json(&["bill"]);
    // The sub-agent's first request stands in both files.
    assert_eq!(bill["total"]["requests"], 4);
    assert_eq!(bill["by"]["session"].as_array().map(Vec::len), Some(1));
}

#[test]
fn since_leaves_out_what_came_before() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", harbour());
    let bill = environment.json(&["bill", "harbour.jsonl", "--since", "2026-03-02T08:00:15Z"]);
    assert_eq!(bill["total"]["requests"], 1);
    assert_eq!(bill["files"]["earlier"], 2);
    // Content that was sent before the date still counts as sent.
    assert_eq!(bill["total"]["rows"]["system_first"]["tokens"], 0.0);
    let ran = environment.run(&["bill", "harbour.jsonl", "--since", "2027-01-01"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("3 requests before that date"), "{}", ran.stderr);
    assert_eq!(environment.run(&["bill", "harbour.jsonl", "--since", "soon"]).code, 2);
}

#[test]
fn models_without_prices_are_estimates() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", harbour().replace("claude-haiku-4-5", "anchor-7"));
    let ran = environment.run(&["bill", "harbour.jsonl", "--by", "model"]);
    assert!(ran.stderr.contains("anchor-7 as claude-sonnet-5-5"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("~$"), "{}", ran.stdout);
    let of = |model: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(model));
        line.expect("a line of the model").contains('~')
    };
    assert!(of("anchor-7") && !of("claude-opus-4-6"), "{}", ran.stdout);
    let own = "date = \"2026-03-01\"\n[[model]]\nname = \"anchor\"\ninput = 1.0\noutput = 5.0\n";
    environment.write("own.toml", own);
    let ran = environment.run(&["bill", "harbour.jsonl", "--pricing", "own.toml", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn the_page_is_inert_and_whole() {
    let environment = Environment::new();
    let hostile = harbour().replace("/home/ada/harbour", "/</title><script>alert(1)</script>");
    environment.write("harbour.jsonl", hostile);
    environment.data(&["bill", "harbour.jsonl", "--html", "bill.html"]);
    let page = environment.read("bill.html");
    assert!(page.ends_with("</html>\n") && page.contains("default-src 'none'"));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    assert!(page.contains("where it went") || page.contains("Where it went"));
}

#[test]
fn sessions_without_usage_are_never_billed() {
    let environment = Environment::new();
    environment.write("openai.json", sessions::openai(3, 3));
    let ran = environment.run(&["bill", "openai.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("1 session without any reported usage"), "{}", ran.stderr);
}
