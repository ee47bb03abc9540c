//! `ab`: both contexts are asked of a scripted model, the answers are kept, and a second run asks nothing twice.

use serde_json::Value;

use crate::environment::Environment;
use crate::sessions;

const CALL: &str = "{\"calls\": [{\"name\": \"bash\", \"arguments\": {\"command\": \"rg quay\"}}], \"likelihood\": {\"log_probability\": -30.0, \"tokens\": 10}}";
const OTHER: &str =
    "{\"text\": \"All is renamed.\", \"likelihood\": {\"log_probability\": -40.0, \"tokens\": 10}}";

fn environment(script: &[&str]) -> Environment {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(12, 60));
    environment.write("script.jsonl", script.join("\n"));
    environment
}

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["ab", "s.jsonl", "--model", "scripted/script.jsonl", "--out", "a.jsonl"];
    all.extend(["--policy", "newest:2000", "--turns", "2", "--json"]);
    all.extend(more);
    all
}

fn report(environment: &Environment, arguments: &[&str]) -> Value {
    let ran = environment.run(arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn two_turns_are_asked_twice_each() {
    let environment = environment(&[CALL, CALL, CALL, OTHER]);
    let ran = environment.run(&arguments(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("4 requests of scripted/script.jsonl"), "{}", ran.stderr);
    assert!(ran.stderr.contains("at most $0.0000"), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(found["summary"]["turns"], 2);
    assert_eq!(found["summary"]["same_tools"]["hits"], 1);
    assert_eq!(found["summary"]["full_as_recorded"]["hits"], 2);
    assert_eq!(found["measure"], "shared words (lexical)");
    assert_eq!(found["summary"]["nats"]["difference"]["mean"], 0.5);
    assert!(found["sample"]["same"].as_u64() > Some(0), "the first turns fit the budget");
    let tokens = |key: &str| found["summary"][key].as_u64();
    assert!(tokens("tokens") < tokens("full_tokens"));
    assert_eq!(environment.read("a.jsonl").lines().count(), 4);
}

#[test]
fn a_resumed_run_asks_only_what_has_no_answer() {
    let environment = environment(&[CALL, CALL, CALL, "{\"fault\": \"unavailable\"}"]);
    let stopped = environment.run(&arguments(&[]));
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("`--resume` asks the rest"), "{}", stopped.stderr);
    // A run that was killed leaves a part of a line.
    let kept = environment.read("a.jsonl") + "{\"key\": \"0";
    environment.write("a.jsonl", kept);
    let again = environment.run(&arguments(&[]));
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("a.jsonl exists"), "{}", again.stderr);
    environment.write("script.jsonl", OTHER);
    let found = report(&environment, &arguments(&["--resume"]));
    assert_eq!(found["summary"]["turns"], 2);
    assert_eq!(found["summary"]["same_tools"]["hits"], 1, "three answers are the first run's");
    environment.write("script.jsonl", "{\"fault\": \"invalid\"}");
    let whole = report(&environment, &arguments(&["--resume"]));
    assert_eq!(whole["summary"], found["summary"], "nothing is asked any more");
    // Another context is another question.
    let other = environment.run(&arguments(&["--resume", "--policy", "newest:1900"]));
    assert_ne!(other.code, 0);
}

#[test]
fn the_worst_turn_is_shown_side_by_side() {
    let environment = environment(&[CALL, CALL, CALL, OTHER]);
    let all = arguments(&["--worst", "1"]);
    let text: Vec<&str> = all.into_iter().filter(|one| *one != "--json").collect();
    let ran = environment.run(&text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("the same tools") && ran.stdout.contains("50 % (1 of 2;"));
    assert!(ran.stdout.contains("other tools, arguments 0.00"), "{}", ran.stdout);
    let line = ran.stdout.lines().find(|line| line.starts_with("bash {")).expect("the columns");
    assert!(line.contains("All is renamed."), "{line}");
}

#[test]
fn the_cost_is_known_before_anything_is_asked() {
    let environment = environment(&[]);
    environment.write(
        "plimsoll.toml",
        "[models.providers.here]\napi = 'chat'\nbase_url = 'http://127.0.0.1:9/v1'\nprice = { input = 1.0, output = 2.0 }\n",
    );
    let base = ["ab", "s.jsonl", "--model", "here/m", "--policy", "newest:2000", "--turns", "1"];
    let ran = environment.run(&[&base[..], &["--estimate"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 requests of here/m") && ran.stderr.contains("at most $0.0"));
    // The cap refuses before anything is sent: nobody listens at that port.
    let ran =
        environment.run(&[&base[..], &["--out", "a.jsonl", "--most-dollars", "0.0001"]].concat());
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("the spending cap is reached"), "{}", ran.stderr);
}
