use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::sessions;

#[test]
fn the_table_and_the_picture() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(8, 30));
    environment.write(
        "prices.toml",
        "date = \"2000-01-01\"\n[[model]]\nname = \"claude-sonnet-4-5\"\ninput = 3.0\noutput = 15.0\n\
         cache_read = 0.1\ncache_writes = [{ seconds = 300, price = 1.25 }]\ncache_least = 1024\n",
    );
    let text = environment.data(&[
        "replay",
        "s.jsonl",
        "--tokens",
        "estimate",
        "--policy",
        "newest:2000",
        "--pricing",
        "prices.toml",
    ]);
    insta::assert_snapshot!(text, @r#"
    pi session, 18 messages, 9 turns, 2,929 tokens, claude-sonnet-4-5
    counted by estimate (4 / 3.5 characters)
    not in the file: usually 1,700 tokens before the messages
    prices of claude-sonnet-4-5 (2000-01-01)
    cache read × 0.1, write × 1.25, life 300 s

    policy           tokens sent    %   cost $    %  work shown places blind fetches
    full                  13,141 100%   0.0258 100% 1.000 100.0  100.0   0.0       0
    newest:2000           10,999  84%   0.0403 156% 1.718   0.0  100.0  11.1       1

           █ sent anew  ▒ from the cache  · full history  ╳ prefix broke

     turn                                                              tokens
        0  █                                                               21
        1  ████████                                                       373
        2  ▒▒▒▒▒▒▒████████                                                735
        3  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒████████                                       1,097
        4  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒██████████                                1,459
        5  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒██████████                         1,821
        6 ╳████████████████████████████████████·······                  1,831
        7 ╳████████████████████████████████████··············           1,831
        8 ╳████████████████████████████████████····················     1,831
    "#);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn policies_are_compared() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(12, 30));
    let policies = ["plimsoll", "window", "clear-tool-uses:2000,2", "newest:3000", "full"];
    let mut arguments = vec!["replay", "s.jsonl", "--tokens", "estimate"];
    arguments.extend(policies.iter().flat_map(|policy| ["--policy", *policy]));
    let found = environment.json(&arguments);
    let names: Vec<&str> = found["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, policies);
    assert_eq!(found["full"]["totals"]["turns"], 13);
    assert_eq!(found["policies"][4]["cost_ratio"], 1.0);
}

#[test]
fn contexts_are_one_line_a_turn() {
    let environment = Environment::new();
    environment.write("s.json", sessions::openai(3, 5));
    environment.data(&["replay", "s.json", "--policy", "full", "--contexts", "c.jsonl"]);
    let contexts = environment.read("c.jsonl");
    let lines: Vec<serde_json::Value> =
        contexts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        (&lines[0]["turn"], lines[0]["messages"].as_array().map(Vec::len)),
        (&0.into(), Some(2))
    );
    assert_eq!(lines[1]["messages"][2]["text"], "Part 0 is next.\nsearch {\"part\":0}");
}

#[test]
fn the_page_holds_nothing_that_acts() {
    let environment = Environment::new();
    environment.write("hostile.json", sessions::hostile());
    let ran = environment.run(&[
        "replay",
        "hostile.json",
        "--html",
        "page.html",
        "--policy",
        "window",
        "--policy",
        "newest:2000",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = environment.read("page.html");
    assert!(page.contains("alert(1)"), "the session's text is on the page");
    for bad in ["<script", "</script", "<img", "onerror=alert(2)>", "\u{0}", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    assert_eq!(page.matches("<style").count(), 1);
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(!page.contains(" style="), "the policy would ignore it");
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing is fetched");
}

#[test]
fn the_page_has_a_row_for_every_turn_and_policy() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(9, 30));
    environment.data(&[
        "replay",
        "s.jsonl",
        "--html",
        "p.html",
        "--policy",
        "plimsoll",
        "--policy",
        "newest:2000",
    ]);
    let page = environment.read("p.html");
    for policy in 0..2 {
        for turn in 0..10 {
            assert!(page.contains(&format!("<tr id=\"p{policy}t{turn}\">")), "{policy} {turn}");
            assert!(page.contains(&format!("href=\"#p{policy}t{turn}\"")), "{policy} {turn}");
        }
    }
    assert_eq!(page.matches("<figure").count(), 2);
}

#[test]
fn a_session_without_a_turn_has_a_page_too() {
    let environment = Environment::new();
    environment.write("s.json", r#"[{"role": "user", "content": "Is anybody there?"}]"#);
    environment.data(&["replay", "s.json", "--html", "p.html"]);
    assert!(environment.read("p.html").contains("no turn"));
}

/// A session of pi in which the agent compacted its context after half of its steps.
fn compacted() -> String {
    let session = sessions::pi(6, 30);
    let mut lines: Vec<String> = session.lines().map(str::to_owned).collect();
    let at = lines.iter().position(|line| line.contains("\"a3\"")).expect("the fourth step");
    let compaction = json!({
        "type": "compaction", "id": "c", "parentId": "r2", "timestamp": "2026-03-01T10:00:31.000Z",
        "summary": "Three quays are renamed.", "firstKeptEntryId": "a2", "tokensBefore": 5000
    });
    lines[at] = lines[at].replacen("\"parentId\":\"r2\"", "\"parentId\":\"c\"", 1);
    lines.insert(at, compaction.to_string());
    lines.join("\n") + "\n"
}

#[test]
fn compactions_are_honoured_unless_it_is_said() {
    let environment = Environment::new();
    environment.write("s.jsonl", compacted());
    let contexts = |more: &[&str]| -> Vec<Value> {
        let all = ["replay", "s.jsonl", "--policy", "full", "--contexts", "c.jsonl"];
        environment.data(&[&all, more].concat());
        let lines = environment.read("c.jsonl");
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let sizes = |lines: &[Value]| -> Vec<usize> {
        lines.iter().map(|line| line["messages"].as_array().map_or(0, Vec::len)).collect()
    };
    let honoured = contexts(&[]);
    // Three steps; then the summary with the last of them; every turn is there.
    assert_eq!(sizes(&honoured), [1, 3, 5, 3, 5, 7, 9]);
    let turns: Vec<u64> = honoured.iter().filter_map(|line| line["turn"].as_u64()).collect();
    assert_eq!(turns, [0, 1, 2, 3, 4, 5, 6]);
    assert!(
        honoured[3]["messages"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("Three quays are renamed."))
    );
    assert_eq!(sizes(&contexts(&["--no-compaction"])), [1, 3, 5, 7, 9, 11, 13]);
    // `explain` counts turns the same way.
    let explained = environment.json(&["explain", "s.jsonl", "--policy", "full", "--turn", "3"]);
    assert_eq!(explained["receipt"]["turn"], 3);
    assert_eq!(explained["messages"].as_array().map(Vec::len), Some(3));
    let whole = environment.json(&[
        "explain",
        "s.jsonl",
        "--policy",
        "full",
        "--turn",
        "3",
        "--no-compaction",
    ]);
    assert_eq!(whole["messages"].as_array().map(Vec::len), Some(7));
}

#[test]
fn a_compacted_session_has_its_page_its_list_and_its_store() {
    let environment = Environment::new();
    environment.write("s.jsonl", compacted());
    let ran = environment.run(&[
        "replay",
        "s.jsonl",
        "--policy",
        "newest:500",
        "--html",
        "p.html",
        "--missed",
        "--store",
        "s.db",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("1 compaction of the agent honoured"), "{}", ran.stdout);
    assert!(environment.read("p.html").contains("id=\"p0t6\""));
    let log = environment.json(&["log", "--store", "s.db", "--node-type", "message"]);
    let text = log.to_string();
    assert!(
        text.contains("harbour_0") && text.contains("harbour_5"),
        "what was compacted is kept too"
    );
}

#[test]
fn prices_and_append_only_override_the_models_own() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(12, 30));
    let cost = |more: &[&str]| {
        let all = ["replay", "s.jsonl", "--policy", "full"];
        environment.json(&[&all, more].concat())["full"]["cost_dollars"].as_f64().expect("a figure")
    };
    let usual = cost(&[]);
    assert!((cost(&["--prices", "read=.1,write=1.25,life=300"]) - usual).abs() < 1e-12);
    assert!(cost(&["--prices", "read=.05"]) < usual);
    assert!(cost(&["--prices", "write=2"]) > usual);
    assert!(cost(&["--prices", "life=1"]) > usual, "nothing lives from one turn to the next");
    for bad in ["read=x", "life=-1", "reed=1", "read", "write=1e99"] {
        let ran = environment.run(&["replay", "s.jsonl", "--prices", bad]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{bad}: {}", ran.stderr);
    }
    assert_eq!(environment.run(&["replay", "s.jsonl", "--append-only"]).code, 0);
}

/// A session of Claude Code whose usage is what its provider's rules make of it.
fn billed(model: &str) -> String {
    let mut lines = String::new();
    let (mut before, mut prompt) = (0, 20_000);
    for turn in 0..10 {
        let text = format!("berth {turn} ").repeat(400);
        let second = format!("2026-03-02T08:00:{:02}.000Z", 2 * turn);
        prompt += 1200;
        let user = json!({"type": "user", "uuid": format!("u{turn}"), "sessionId": "b111", "timestamp": second, "isSidechain": false,
            "message": {"role": "user", "content": text}});
        let answer = json!({"type": "assistant", "uuid": format!("a{turn}"), "sessionId": "b111", "timestamp": second, "isSidechain": false,
            "message": {"role": "assistant", "id": format!("m{turn}"), "model": model, "content": [{"type": "text", "text": "It is free."}],
            "usage": {"input_tokens": 0, "cache_read_input_tokens": before, "cache_creation_input_tokens": prompt - before, "output_tokens": 10}}});
        before = prompt;
        let _ = writeln!(lines, "{user}\n{answer}");
    }
    lines
}

#[test]
fn the_bill_stands_beside_the_policies() {
    let environment = Environment::new();
    environment.write("s.jsonl", billed("claude-sonnet-4-5"));
    let found = environment.json(&["replay", "s.jsonl", "--policy", "newest:3000"]);
    let dollars = &found["full"]["totals"]["dollars"];
    assert_eq!(dollars["billed_turns"], 10);
    let (billed, full) = (dollars["billed"].as_f64().unwrap(), dollars["beside"].as_f64().unwrap());
    assert!((full / billed - 1.0).abs() < 0.05, "{dollars}");
    assert!(found["policies"][0]["bill_ratio"].as_f64().is_some());
    assert!(
        (found["unshown"]["before"].as_f64().unwrap() - 20_000.0).abs() < 200.0,
        "{}",
        found["unshown"]
    );
    let text = environment.data(&["replay", "s.jsonl"]);
    assert!(
        text.lines().any(|line| line.starts_with("billed ") && line.ends_with("100%")),
        "{text}"
    );
}

#[test]
fn the_model_of_the_cache_is_held_against_the_bill() {
    let environment = Environment::new();
    environment.write("many/s.jsonl", billed("claude-sonnet-4-5"));
    environment.write("many/t.jsonl", billed("claude-opus-4-5"));
    environment.write("many/u.json", sessions::openai(3, 5));
    let found = environment.json(&["replay", "--verify-bill", "many"]);
    assert_eq!(found["sessions"].as_array().map(Vec::len), Some(2), "one reports no usage");
    assert!(found["cached"]["median"].as_f64().is_some_and(|off| off < 0.02), "{found}");
    assert!(found["dollars"]["median"].as_f64().is_some_and(|off| off < 0.05), "{found}");
    let text = environment.data(&["replay", "--verify-bill", "many"]);
    assert!(text.contains("cached   off by "), "{text}");
    assert_eq!(environment.run(&["replay", "--verify-bill", "many/u.json"]).code, 1);
}

#[test]
fn many_sessions_are_added_up() {
    let environment = Environment::new();
    environment.write("many/one.jsonl", sessions::pi(3, 10));
    environment.write("many/two.jsonl", sessions::pi(5, 10));
    environment.write("many/notes.json", "{}");
    let ran = environment.run(&["replay", "many", "--policy", "full", "--json", "--each"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("notes.json"), "what is no session is told: {}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&found["sessions"], &found["policies"][0]["totals"]["turns"]),
        (&2.into(), &10.into())
    );
    assert_eq!(found["each"][0]["full"]["totals"]["turns"], 4);
    let text = environment.run(&["replay", "many/one.jsonl", "many/two.jsonl", "--each"]).stdout;
    assert!(text.contains("many/one.jsonl") && text.contains("2 sessions, 10 turns"), "{text}");
    for flag in [&["--contexts", "c.jsonl"][..], &["--html", "p.html"], &["--missed"]] {
        let ran = environment.run(&[&["replay", "many"], flag].concat());
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
    }
}

/// Returns the ids of a store's sessions, sorted.
fn kept_ids(environment: &Environment, store: &str) -> Vec<String> {
    let kept = environment.json(&["sessions", "--store", store]);
    let id = |session: &Value| session["session"].as_str().unwrap_or_default().to_owned();
    let mut ids: Vec<String> = kept.as_array().expect("rows").iter().map(id).collect();
    ids.sort();
    ids
}

#[test]
fn other_text_under_the_same_id_is_stored_under_a_name_of_its_own() {
    let environment = Environment::new();
    environment.write("all/a.jsonl", sessions::pi(3, 5));
    environment.write("all/b.jsonl", sessions::pi(3, 5).replace("Rename every", "Paint every"));
    environment.write("all/c.jsonl", sessions::claude_code());
    for _ in 0..2 {
        let ran = environment.run(&["replay", "all", "--store", "s.db"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ids = kept_ids(&environment, "s.db");
        assert!(ids[0] == "5eb1" && ids[1].starts_with("5eb1:") && ids[2] == "c1a0de", "{ids:?}");
        assert_eq!(ids.len(), 3);
    }
    // `import` gives the same names, so it adds nothing.
    let imported = environment.run(&["import", "all/a.jsonl", "all/b.jsonl", "--store", "s.db"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert_eq!(kept_ids(&environment, "s.db").len(), 3);
}

#[test]
fn three_sessions_of_a_file_are_three_in_the_store() {
    let environment = Environment::new();
    let others =
        ["c1a0de", "c1a0df", "c1a0e0"].map(|id| sessions::claude_code().replace("c1a0de", id));
    environment.write("s.jsonl", others.concat());
    let ran = environment.run(&["replay", "s.jsonl", "--store", "s.db"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(kept_ids(&environment, "s.db"), ["c1a0de", "c1a0df", "c1a0e0"]);
    environment.run(&["replay", "s.jsonl#1", "--store", "one.db"]);
    assert_eq!(kept_ids(&environment, "one.db"), ["c1a0df"], "a number stands for one");
}

#[test]
fn a_session_that_cannot_be_stored_is_named_and_the_others_go_in() {
    let environment = Environment::new();
    // No longer id is allowed, so there is no room for a name of its own.
    let long = "i".repeat(128);
    let session = sessions::pi(3, 5).replace("5eb1", &long);
    environment.write("all/a.jsonl", &session);
    environment.write("all/b.jsonl", session.replace("Rename every", "Paint every"));
    environment.write("all/c.jsonl", sessions::claude_code());
    let ran = environment.run(&["replay", "all", "--store", "s.db"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("all/b.jsonl: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 3 sessions are not stored"), "{}", ran.stderr);
    assert_eq!(kept_ids(&environment, "s.db"), ["c1a0de", long.as_str()]);
    let ran = environment.run(&["replay", "all/b.jsonl", "--store", "s.db"]);
    assert!(ran.code != 0 && ran.stderr.contains("all/b.jsonl: "), "{}", ran.stderr);
}
