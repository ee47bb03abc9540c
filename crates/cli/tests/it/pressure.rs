use crate::environment::Environment;
use crate::sessions;

/// Eight characters a token make the counts easy to follow.
const COUNTED: [&str; 2] = ["--tokens", "chars:8"];

fn pressure(environment: &Environment, more: &[&str]) -> (String, String) {
    let all: Vec<&str> =
        ["pressure", "s.jsonl"].iter().chain(&COUNTED).chain(more).copied().collect();
    let ran = environment.run(&all);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (ran.stdout, ran.stderr)
}

#[test]
fn the_bar_and_its_messages() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(3, 40));
    insta::assert_snapshot!(pressure(&environment, &["--window", "1200"]).0, @r#"
    📊 Context: ████████████░░░░░░░░ 62%
    ℹ️ Older conversation turns are being summarized to preserve context quality.
    "#);
    insta::assert_snapshot!(pressure(&environment, &["--window", "1600", "--format", "markdown"]).0, @"<sub>📊 Context: █████████░░░░░░░░░░░ 47%</sub>");
    insta::assert_snapshot!(pressure(&environment, &["--window", "2000"]).0, @"📊 Context: ███████░░░░░░░░░░░░░ 37%");
}

#[test]
fn a_low_pressure_is_silent_but_for_a_note() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(1, 2));
    let (stdout, stderr) = pressure(&environment, &[]);
    assert_eq!(stdout, "");
    insta::assert_snapshot!(stderr, @"0% of 200,000 tokens, shown from 30% on");
    assert_eq!(pressure(&environment, &["--format", "markdown"]), (String::new(), String::new()));
}

#[test]
fn context_json_here_or_named_sets_window_and_thresholds() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(3, 40));
    environment.write("context.json", r#"{"totalTokens": 1500, "compressionThreshold": 0.9}"#);
    environment.write("other.json", r#"{"showPressureAbove": 0.0}"#);
    let percent = |more: &[&str]| {
        let all: Vec<&str> =
            ["pressure", "s.jsonl"].iter().chain(&COUNTED).chain(more).copied().collect();
        let found = environment.json(&all);
        (found["total_tokens"].as_u64().unwrap(), found["level"].as_str().unwrap().to_owned())
    };
    assert_eq!(percent(&[]), (1500, "normal".to_owned()));
    assert_eq!(percent(&["--window", "900"]), (900, "nearly_full".to_owned()));
    assert_eq!(percent(&["--context-config", "other.json"]), (200_000, "normal".to_owned()));
}

#[test]
fn inspect_does_not_trip_over_a_context_json_of_others() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(1, 2));
    environment.write("context.json", "{\"harbour\": true}");
    environment.data(&["inspect", "s.jsonl"]);
    assert_eq!(environment.run(&["pressure", "s.jsonl"]).code, 2);
}
