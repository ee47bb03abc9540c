//! `--store`, `log`, `ref` and `search`: what one command kept, the next one finds.

use crate::environment::Environment;
use crate::sessions;

const STORE: [&str; 2] = ["--store", "kept.db"];

fn kept() -> Environment {
    let environment = Environment::new();
    environment.write("session.jsonl", sessions::pi(30, 60));
    environment.data(&["replay", "session.jsonl", "--store", "kept.db"]);
    environment
}

#[test]
fn the_sessions_of_a_store_are_listed_newest_first() {
    let environment = Environment::new();
    for (name, turns) in [("a", 3), ("b", 6)] {
        environment.write(&format!("{name}.jsonl"), sessions::pi(turns, 4));
        environment.data(&["import", &format!("{name}.jsonl"), "--store", "s.db"]);
    }
    let all = environment.json(&["sessions", "--store", "s.db"]);
    let all = all.as_array().expect("a list");
    assert!(!all.is_empty());
    assert!(all.windows(2).all(|pair| pair[0]["last_at"].as_i64() >= pair[1]["last_at"].as_i64()));
    let page = environment.data(&["sessions", "--store", "s.db", "--limit", "1"]);
    assert!(page.contains(all[0]["session"].as_str().expect("an id")), "{page}");
    assert_eq!(page.lines().count(), 1 + usize::from(all.len() > 1), "{page}");
    let none = environment.run(&["sessions", "--store", "none.db"]);
    assert_ne!(none.code, 0, "{}", none.stdout);
    assert!(!environment.files().contains(&"none.db".to_owned()), "nothing is created");
}

#[test]
fn a_ref_of_one_command_resolves_in_the_next() {
    let environment = kept();
    let explained = environment.json(&["explain", "session.jsonl"]);
    let rows = explained["messages"].as_array().expect("rows");
    let changed = rows.iter().find(|row| row["treatment"] != "keep").expect("something changed");
    let reference = changed["ref"].as_str().expect("a ref");
    let number = changed["message"].to_string();
    let shown = environment.data(&["explain", "session.jsonl", "--show", reference]);
    let got = environment.data(&["ref", "get", reference, STORE[0], STORE[1]]);
    assert_eq!(got, shown.strip_suffix('\n').expect("a line break"), "message {number}");
    let line = environment.data(&["ref", "get", reference, "--lines", "1-1", STORE[0], STORE[1]]);
    assert_eq!(line.trim_end(), got.lines().next().expect("a line"));
}

#[test]
fn a_part_of_a_ref_is_what_was_asked_for() {
    let environment = Environment::new();
    let listing =
        r#"{"total": 12345678901234567890, "items": [{"title": "gate"}, {"title": "quay"}]}"#;
    let session = serde_json::json!([
        {"role": "user", "content": "Which quays are open?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "quays", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": listing},
        {"role": "assistant", "content": "Both."},
    ]);
    environment.write("session.json", session.to_string());
    environment.data(&["replay", "session.json", "--store", "kept.db"]);
    let hits = environment.json(&["search", "12345678901234567890", STORE[0], STORE[1]]);
    let hash = hits[0]["item"]["hash"].as_str().expect("a hash").to_owned();
    let get = |more: &[&str]| environment.data(&[&["ref", "get", &hash], more, &STORE].concat());
    assert_eq!(get(&[]), listing);
    assert_eq!(get(&["--field", "total"]), "12345678901234567890\n");
    assert_eq!(get(&["--field", "items[*].title"]), "[\"gate\", \"quay\"]\n");
    assert_eq!(get(&["--field", "items", "--slice", "1:1"]), "[{\"title\": \"quay\"}]\n");
    assert_eq!(get(&["--slice", "1:5"]), "\"tota\n");
    let part = [&["ref", "get", hash.as_str(), "--slice", "0:5"], &STORE[..]].concat();
    assert_eq!(environment.json(&part)["next"], 5);
    for bad in [["--slice", "five"], ["--field", "a[x]"], ["--field", "none"], ["--lines", "0-1"]] {
        let ran = environment.run(&[&["ref", "get", &hash], &bad[..], &STORE].concat());
        assert_eq!(ran.code, 2, "{bad:?} {}", ran.stderr);
    }
}

#[test]
fn what_was_kept_twice_is_kept_once() {
    let environment = kept();
    let before = environment.json(&["log", "--limit", "1000", STORE[0], STORE[1]]);
    environment.data(&["replay", "session.jsonl", "--store", "kept.db"]);
    environment.data(&["explain", "session.jsonl", "--store", "kept.db"]);
    let after = environment.json(&["log", "--limit", "1000", STORE[0], STORE[1]]);
    assert_eq!(before, after);
    assert!(before.as_array().is_some_and(|rows| rows.len() > 30));
}

#[test]
fn the_log_counts_what_was_saved() {
    let environment = kept();
    let stats = environment.json(&["log", "stats", STORE[0], STORE[1]]);
    assert!(stats[0]["tokens_saved"].as_i64().expect("a number") > 0);
    assert!(environment.data(&["log", "stats", STORE[0], STORE[1]]).contains("none"));
    let selections =
        environment.data(&["log", "--node-type", "context_selection", STORE[0], STORE[1]]);
    assert!(selections.lines().all(|line| line.contains("context_selection")));
}

#[test]
fn words_are_searched_literally() {
    let environment = kept();
    let hits = environment.json(&["search", "fn", STORE[0], STORE[1]]);
    assert!(hits.as_array().is_some());
    for odd in ["' OR 1=1 --", "\"", "a* NEAR(b)", "%"] {
        environment.data(&["search", odd, STORE[0], STORE[1]]);
    }
}

#[test]
fn what_is_not_there_is_said_on_one_line() {
    let environment = kept();
    for arguments in [
        &["ref", "get", "ref:message:0123456789abcdef"][..],
        &["ref", "get", "nothing"],
        &["log", "--session", "no id at all"],
    ] {
        let ran = environment.run(&[arguments, &STORE].concat());
        assert_eq!(ran.code, 2, "{arguments:?} {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    let ran = environment.run(&["log", "--store", "mysql://x"]);
    assert_eq!(ran.code, 2);
}
