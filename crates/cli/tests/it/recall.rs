//! `import` and `recall`: what was said, found again within a budget.

use crate::environment::Environment;
use crate::sessions;

const DIALOGUE: &str = include_str!("../../../../examples/dialogue.jsonl");

fn imported() -> Environment {
    let environment = Environment::new();
    environment.write("dialogue.jsonl", DIALOGUE);
    let told = environment.data(&["import", "dialogue.jsonl", "--store", "kept.db"]);
    assert_eq!(told, "dialogue.jsonl: 10 messages added\n");
    environment
}

fn recall(environment: &Environment, query: &str, more: &[&str]) -> String {
    let mut all = vec!["recall", "--store", "kept.db", "--query", query];
    all.extend(more);
    environment.data(&all)
}

#[test]
fn what_answers_comes_first_with_its_header() {
    let environment = imported();
    let found = recall(&environment, "Where is the berth of the boat from April on?", &[]);
    assert_eq!(
        found.lines().next(),
        Some(
            "[8 | 2025-03-20T08:10:00] Ben: The harbour office moved our berth to number 14, starting in April."
        )
    );
    let answer =
        recall(&environment, "Which boat did Ben take to the regatta?", &["--budget", "60"]);
    assert!(answer.contains("[4 | 2025-03-01T09:03:00] Ben: The Marigold."), "{answer}");
    assert!(answer.chars().count() <= 240, "60 tokens of 4 characters");
    assert_eq!(
        recall(&environment, "boat", &["--budget", "3"]),
        "no message fits into the budget\n"
    );
    assert_eq!(recall(&environment, "?", &[]), "no message has to do with these words\n");
    let none = recall(&environment, "boat", &["--session", "elsewhere"]);
    assert_eq!(none, "the store has no such messages\n");
}

#[test]
fn every_score_is_explained() {
    let environment = imported();
    let page =
        recall(&environment, "When did Ann paint the kitchen?", &["--explain", "--budget", "60"]);
    assert!(page.contains("× speaker 2.00") && page.contains("paint ~ painted"), "{page}");
    assert!(page.lines().last().is_some_and(|line| line.contains("of 60 tokens")), "{page}");
    let json = environment.json(&[
        "recall",
        "--query",
        "When did Ann paint the kitchen?",
        "--explain",
        "--store",
        "kept.db",
    ]);
    let best = &json["hits"][0];
    let part = |name: &str| best["why"][name].as_f64().expect("a number");
    let sum: f64 = ["text", "vector", "neighbours", "passage", "date"].map(part).iter().sum();
    let factors = part("speaker") * part("question") * part("role") * part("size");
    let score = sum * factors;
    assert!((score - best["score"].as_f64().expect("a score")).abs() < 1e-3, "{best}");
    assert_eq!((best["id"].as_str(), best["session"].as_str()), (Some("5"), Some("quay")));
    let reference = best["ref"].as_str().expect("a ref");
    let text = environment.data(&["ref", "get", reference, "--store", "kept.db"]);
    assert!(text.contains("sea green"));
}

#[test]
fn what_is_imported_again_adds_only_what_is_new() {
    let environment = imported();
    let import = ["import", "dialogue.jsonl", "--store", "kept.db"];
    assert_eq!(environment.data(&import), "dialogue.jsonl: 0 messages added, 10 known\n");
    environment.write(
        "dialogue.jsonl",
        format!("{DIALOGUE}{{\"id\":11,\"session\":\"quay\",\"text\":\"Bye\"}}\n"),
    );
    assert_eq!(environment.data(&import), "dialogue.jsonl: 1 messages added, 10 known\n");
}

#[test]
fn bad_lines_are_told_and_the_rest_is_imported() {
    let environment = imported();
    environment.write(
        "bad.jsonl",
        "{\"text\":\"fine\"}\n{\"text\":\n{\"session\":\"no id\",\"text\":\"x\"}\n{\"id\":\"1\",\"session\":\"quay\",\"text\":\"other\"}\n",
    );
    let ran = environment.run(&["import", "bad.jsonl", "--store", "kept.db", "--verbose"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "bad.jsonl: 1 messages added\n"));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stderr);
    assert!(lines[0].contains("line 2: skipped, not JSON"), "{}", lines[0]);
    assert!(lines[1].contains("line 3: skipped, its session: an id has"), "{}", lines[1]);
    assert!(lines[2].contains("line 4: skipped, its id is kept with another text"), "{}", lines[2]);
    let short = environment.run(&["import", "bad.jsonl", "--store", "kept.db"]);
    assert_eq!(short.stderr.lines().count(), 1, "{}", short.stderr);
    // A line without a session belongs to that of the file's name.
    assert!(recall(&environment, "fine", &["--session", "bad"]).ends_with("user: fine\n"));
    environment.write("worse.jsonl", "{\"text\":1}\n");
    let ran = environment.run(&["import", "worse.jsonl", "--store", "kept.db"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1));
}

#[test]
fn recorded_sessions_are_imported_too() {
    let environment = Environment::new();
    environment.write("session.jsonl", sessions::pi(12, 60));
    let import = ["import", "session.jsonl", "--store", "kept.db"];
    let first = environment.data(&import);
    assert!(first.ends_with("messages added\n"), "{first}");
    assert!(environment.data(&import).contains(": 0 messages added, "));
    // As `--store` keeps it elsewhere, so that both know each other's messages.
    environment.data(&["replay", "session.jsonl", "--store", "kept.db"]);
    assert!(!recall(&environment, "fn", &[]).is_empty());
}

#[test]
fn other_conversations_of_one_id_are_not_merged() {
    let environment = Environment::new();
    let line = |role: &str, text: &str| {
        format!(
            r#"{{"type":"{role}","sessionId":"s","uuid":"{text}","parentUuid":null,"isSidechain":false,"cwd":"/w","version":"2.1","timestamp":"2026-01-21T06:24:41.000Z","message":{{"role":"{role}","content":"{text}"}}}}"#
        )
    };
    let file = |texts: &[&str]| {
        let lines = texts.iter().enumerate();
        let lines: Vec<String> =
            lines.map(|(at, text)| line(["user", "assistant"][at % 2], text)).collect();
        lines.join("\n")
    };
    environment.write("short.jsonl", file(&["alike", "answer"]));
    environment.write("long.jsonl", file(&["alike", "answer", "more", "of it"]));
    environment.write("other.jsonl", file(&["alike", "otherwise", "elsewhere"]));
    let import = |name: &str| environment.data(&["import", name, "--store", "kept.db"]);
    assert!(import("short.jsonl").contains(": 2 messages added"));
    assert!(import("long.jsonl").contains(": 2 messages added, 2 known"));
    assert!(import("other.jsonl").contains(": 3 messages added"));
    for again in ["short.jsonl", "long.jsonl", "other.jsonl"] {
        assert!(import(again).contains(": 0 messages added"), "{again}");
    }
    let sessions = environment.data(&["sessions", "--store", "kept.db", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&sessions).expect("JSON");
    let list = sessions["sessions"].as_array().or_else(|| sessions.as_array()).expect("a list");
    let mut sizes: Vec<u64> = list.iter().filter_map(|one| one["messages"].as_u64()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [3, 4], "{sessions}");
}

#[test]
fn a_batch_ranks_for_each_question() {
    let environment = imported();
    environment.write(
        "queries.jsonl",
        "{\"id\":\"quay/0\",\"query\":\"Which boat?\"}\nnonsense\n{\"id\":7,\"query\":\"painted kitchen\",\"session\":\"quay\"}\n",
    );
    let arguments =
        ["recall", "--store", "kept.db", "--batch", "queries.jsonl", "--out", "results.jsonl"];
    let ran = environment.run(&arguments);
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("line 2: skipped"), "{}", ran.stderr);
    let results = environment.read("results.jsonl");
    let lines: Vec<serde_json::Value> =
        results.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["id"], &lines[1]["id"]), (&"quay/0".into(), &7.into()));
    assert!(["3", "4"].contains(&lines[0]["ids"][0].as_str().expect("an id")), "{results}");
    assert_eq!(lines[1]["ids"][0], "5");
    assert!(lines[0].get("sessions").is_none());
    environment.write("other.jsonl", "{\"id\":\"1\",\"text\":\"A boat elsewhere\"}\n");
    environment.data(&["import", "other.jsonl", "--store", "kept.db"]);
    environment.run(&arguments);
    let results = environment.read("results.jsonl");
    let first: serde_json::Value =
        serde_json::from_str(results.lines().next().expect("a line")).expect("JSON");
    let places = |key: &str| first[key].as_array().map_or(0, Vec::len);
    assert!(places("ids") > 3 && places("ids") == places("sessions"), "{results}");
}

#[test]
fn settings_change_what_is_recalled() {
    let environment = imported();
    environment.write("few.toml", "[recall]\nlimit = 1\n");
    let few = recall(&environment, "boat", &["--config", "few.toml"]);
    assert_eq!(few.lines().count(), 1);
    environment.write("odd.toml", "[recall]\nneighbor = 1.0\n");
    let ran =
        environment.run(&["recall", "--store", "kept.db", "--query", "x", "--config", "odd.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("the nearest known key is `neighbour`"), "{}", ran.stderr);
    let ran =
        environment.run(&["recall", "--store", "kept.db", "--query", "x", "--tokens", "x200k"]);
    assert_eq!(ran.code, 2);
}
