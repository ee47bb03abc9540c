use crate::environment::Environment;
use crate::sessions;

const COUNTED: [&str; 2] = ["--tokens", "estimate"];

fn trim<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["trim", file].iter().chain(&COUNTED).chain(more).copied().collect()
}

#[test]
fn a_session_that_is_due_is_trimmed_to_its_shares() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(60, 30));
    let ran = environment.run(&trim("s.jsonl", &["--window", "20000", "--out", "t.jsonl"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(ran.stderr, @"22,553 → 6,045 tokens (27%), 122 → 33 messages: 90 summarised; wrote t.jsonl");
    assert_eq!(environment.files(), ["s.jsonl", "t.jsonl"]);
    let found = environment.json(&["inspect", "t.jsonl", "--tokens", "estimate"]);
    assert_eq!(found["notes"], serde_json::json!({}));
    assert!(found["tokens"].as_u64().unwrap() <= 8000, "{found}");
    let written = environment.read("t.jsonl");
    assert!(written.contains("Rename every quay in the harbour"), "the task stays");
    assert!(written.contains("[Earlier conversation summary"), "{written}");
}

#[test]
fn the_configured_model_writes_the_summary() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(60, 30));
    environment.write("plimsoll.toml", "[cards]\nsummarizer_model = 'scripted/script.jsonl'\n");
    environment.write("context.json", r#"{"useLLMSummarization": true}"#);
    let arguments = trim("s.jsonl", &["--window", "20000", "--context-config", "context.json"]);
    let model = "[Earlier conversation summary — written by a model]";
    let script =
        "{\"expect\": \"Summarise these earlier turns\", \"text\": \"All quays were renamed.\"}\n";
    environment.write("script.jsonl", script);
    let ran = environment.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{model}\\nAll quays were renamed.")), "{}", ran.stdout);
    // A model that fails leaves the first sentences.
    environment.write("script.jsonl", "");
    let ran = environment.run(&arguments);
    assert!(ran.stderr.contains("the summary is made of first sentences"), "{}", ran.stderr);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains(model) && ran.stdout.contains("compressed to save context"));
    environment.write("plimsoll.toml", "[cards]\nsummarizer_model = ''\n");
    let ran = environment.run(&arguments);
    assert!(ran.stderr.contains("`cards.summarizer_model` names no model"), "{}", ran.stderr);
}

#[test]
fn what_is_not_due_is_left_alone_unless_forced() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(12, 10));
    let ran = environment.run(&trim("s.jsonl", &["--out", "t.jsonl"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(ran.stderr, @"note: nothing to trim: 1,694 tokens are 1% of 200,000, it is due from 120,000 tokens on; `--force` trims all the same");
    assert_eq!(environment.files(), ["s.jsonl"]);
    let ran = environment.run(&trim("s.jsonl", &["--force", "--out", "t.jsonl", "--json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stdout, @r#"
    {
      "by": "trim",
      "tokens_before": 1694,
      "tokens_after": 704,
      "ratio": 0.4155844155844156,
      "messages_before": 26,
      "messages_after": 11,
      "left_out": 16,
      "made_smaller": 0,
      "over_budget": 0,
      "estimate": false,
      "out": "t.jsonl"
    }
    "#);
}

#[test]
fn without_out_the_session_goes_to_standard_output() {
    let environment = Environment::new();
    environment.write("s.json", sessions::openai(6, 30));
    let ran = environment.run(&trim("s.json", &["--policy", "newest:1500"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @"2,130 → 1,436 tokens (67%), 15 → 11 messages: 4 dropped");
    environment.write("t.json", ran.stdout);
    assert_eq!(environment.json(&["inspect", "t.json"])["notes"], serde_json::json!({}));
}

#[test]
fn each_policy_writes_what_reads_back_without_repairs() {
    let formats = [
        ("s.jsonl", sessions::pi(20, 30)),
        ("s.json", sessions::openai(20, 30)),
        ("c.jsonl", sessions::claude_code()),
    ];
    for (name, session) in formats {
        let environment = Environment::new();
        environment.write(name, session);
        let before = environment.json(&["inspect", name, "--tokens", "estimate"]);
        for policy in ["plimsoll", "window", "clear-tool-uses:2000,2", "newest:3000", "full"] {
            let out = format!("t-{name}");
            let ran =
                environment.run(&trim(name, &["--policy", policy, "--out", &out, "--overwrite"]));
            assert_eq!(ran.code, 0, "{name} {policy}: {}", ran.stderr);
            let after = environment.json(&["inspect", &out, "--tokens", "estimate"]);
            assert_eq!(after["notes"], serde_json::json!({}), "{name} {policy}");
            assert_eq!(after["format"], before["format"], "{name} {policy}");
            assert!(after["tokens"].as_u64() <= before["tokens"].as_u64(), "{name} {policy}");
            if policy == "full" {
                assert_eq!(environment.read(&out), environment.read(name), "{name}");
            }
        }
    }
}

#[test]
fn a_file_that_exists_is_replaced_only_on_request() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(5, 10));
    environment.write("t.jsonl", "mine");
    let ran = environment.run(&trim("s.jsonl", &["--force", "--out", "t.jsonl"]));
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stderr, @"error: t.jsonl exists; `--overwrite` replaces it");
    assert_eq!(environment.read("t.jsonl"), "mine");
    let ran = environment.run(&trim("s.jsonl", &["--force", "--out", "t.jsonl", "--overwrite"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_ne!(environment.read("t.jsonl"), "mine");
    assert_eq!(environment.files(), ["s.jsonl", "t.jsonl"]);
}

#[test]
fn a_format_that_cannot_be_written_is_refused() {
    let environment = Environment::new();
    let step = |role: &str, text: &str| serde_json::json!({"role": role, "content": text});
    let session = serde_json::json!({
        "trajectory": [], "info": {},
        "history": [step("system", "You mend nets."), step("user", "Mend."), step("assistant", "Mended.")],
    });
    environment.write("s.traj", session.to_string());
    let ran = environment.run(&trim("s.traj", &["--force", "--out", "t.traj"]));
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stderr, @r#"error: cannot write swe-agent sessions back: pi, claude-code, openai-messages, anthropic-messages and cline can be; `plimsoll replay --contexts` writes the contexts of any session as JSON Lines"#);
    assert_eq!(environment.files(), ["s.traj"]);
}
