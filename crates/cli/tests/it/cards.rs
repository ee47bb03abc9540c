//! `cards` and `work`: what was kept gets cards, a model summarises it once, and nothing sensitive is told.

use serde_json::{Value, json};

use crate::environment::Environment;

const LONG: &str = "The harbour was surveyed and every quay got a new name. ";

/// A kept session of three messages, the second of them long enough for a model.
fn kept(settings: &str) -> Environment {
    let environment = Environment::new();
    let session = json!([
        {"role": "user", "content": "Rename every quay; write to jane@example.com."},
        {"role": "assistant", "content": format!("Done. {}", LONG.repeat(5))},
        {"role": "user", "content": "The key is AKIAQ2X4K7M4WBT3ZN5H, use it."},
    ]);
    environment.write("session.json", session.to_string());
    environment.write("plimsoll.toml", settings);
    let ran = environment.run(&["replay", "session.json", "--store", "kept.db"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    environment
}

const OFFLINE: &str = "[cards]\nsummarizer_model = ''\n";

fn scripted(turns: &str) -> Environment {
    let environment = kept("[cards]\nsummarizer_model = 'scripted/script.jsonl'\n");
    environment.write("script.jsonl", turns);
    environment
}

fn work(environment: &Environment) -> Value {
    environment.json(&["work", "--once", "--store", "kept.db"])
}

fn cards(environment: &Environment) -> Vec<Value> {
    let cards = environment.json(&["cards", "--store", "kept.db"]);
    cards.as_array().expect("rows").clone()
}

#[test]
fn every_message_gets_a_card() {
    let environment = kept(OFFLINE);
    assert!(environment.data(&["cards", "--store", "kept.db"]).contains("`--make` makes them"));
    let made = environment.json(&["cards", "--make", "--store", "kept.db"]);
    let told: Vec<(&str, &str)> = made
        .as_array()
        .expect("rows")
        .iter()
        .map(|card| {
            let text = |key: &str| card[key].as_str().unwrap_or_default();
            (text("role"), text("generator_model"))
        })
        .collect();
    assert_eq!(told.len(), 3);
    assert!(told.contains(&("assistant", "truncated")) && told.contains(&("user", "fast")));
    assert!(environment.data(&["cards", "--store", "kept.db"]).contains(" anchor\n    Rename"));
}

#[test]
fn a_model_summarises_once() {
    let environment =
        scripted("{\"expect\": \"surveyed\", \"text\": \"All quays were renamed.\"}\n");
    let first = work(&environment);
    assert_eq!((&first["summarised"], &first["done"]), (&json!(1), &json!(4)));
    assert!(first["tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let summaries: Vec<Value> =
        cards(&environment).iter().map(|it| it["summary"].clone()).collect();
    assert!(summaries.contains(&json!("All quays were renamed.")), "{summaries:?}");
    assert_eq!(work(&environment)["taken"], 0);
}

#[test]
fn a_summary_that_invents_is_not_kept() {
    let environment = scripted("{\"text\": \"All 17 quays were renamed.\"}\n");
    let worked = work(&environment);
    assert_eq!((&worked["summarised"], &worked["truncated"]), (&json!(0), &json!(1)));
    assert!(
        cards(&environment).iter().all(|card| card["generator_model"] != "scripted/script.jsonl")
    );
}

#[test]
fn a_model_that_cannot_be_had_is_told_of_and_done_without() {
    let environment = kept("[cards]\nsummarizer_model = 'scripted/none.jsonl'\n");
    let ran = environment.run(&["work", "--once", "--store", "kept.db"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("summaries are beginnings of texts"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("4 jobs done: 0 summaries by a model, 1 without one"));
}

#[test]
fn a_task_shows_what_it_would_be_given() {
    let environment = kept(OFFLINE);
    environment.data(&["cards", "--make", "--store", "kept.db"]);
    let session = cards(&environment)[0]["session"].as_str().expect("an id").to_owned();
    let arguments = ["cards", "--session", &session, "--task", "quay names", "--store", "kept.db"];
    let chosen = environment.json(&arguments);
    assert_eq!(chosen["selection"]["used"], "heuristic");
    assert_eq!(chosen["refs"].as_array().map(Vec::len), Some(3));
    environment.write(
        "plimsoll.toml",
        format!("{OFFLINE}[selection]\nstrategy = 'semantic'\nmax_tokens = 5\n"),
    );
    let chosen = environment.json(&arguments)["selection"].clone();
    assert_eq!((&chosen["asked"], &chosen["budget"]), (&json!("semantic"), &json!(5)));
    assert!(chosen["over_budget"].as_u64().is_some_and(|over| over > 0), "anchors stay");
}

#[test]
fn logs_redact_by_setting() {
    let environment = kept(OFFLINE);
    let log = ["log", "--node-type", "message", "--store", "kept.db"];
    let shown = environment.data(&log);
    assert!(shown.contains("[redacted:email]") && shown.contains("[redacted:aws_key]"), "{shown}");
    environment.write("plimsoll.toml", "[safety.logs]\npersonal = 'flag'\nsecrets = 'redact'\n");
    let shown = environment.data(&log);
    assert!(shown.contains("jane@example.com") && !shown.contains("AKIAQ2X"), "{shown}");
}

#[test]
fn what_is_redacted_at_ingestion_is_nowhere_in_the_store() {
    for (settings, kept_words) in [("", true), ("[safety.ingestion]\nsecrets = 'redact'\n", false)]
    {
        let environment = kept(settings);
        let found = environment.data(&["search", "use", "key", "--store", "kept.db"]);
        assert_eq!(found.contains("AKIAQ2X4K7M4WBT3ZN5H"), kept_words, "{found}");
        assert_eq!(found.contains("[redacted:aws_key]"), !kept_words);
        let files = environment.files();
        let holds = files.iter().filter(|name| name.starts_with("kept.db")).any(|name| {
            let bytes = std::fs::read(environment.work().join(name)).expect("a file");
            bytes.windows(20).any(|part| part == b"AKIAQ2X4K7M4WBT3ZN5H")
        });
        assert!(kept_words || !holds, "in a file of the store");
    }
    let ran = kept("").run(&["explain", "session.json", "--store", "kept.db"]);
    assert!(ran.stderr.contains("holds 1 email, 1 aws_key"), "flagged: {}", ran.stderr);
}

#[test]
fn errors_tell_no_secret() {
    let environment = Environment::new();
    let address = "postgres://app:s3cr3tWord@127.0.0.1:1/x";
    let ran = environment.run(&["log", "--store", address]);
    assert_ne!(ran.code, 0);
    assert!(!ran.stderr.contains("s3cr3tWord"), "{}", ran.stderr);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let environment = Environment::new();
    for (settings, told) in [
        ("[cards]\nbatch_sise = 3", "`batch_size`"),
        ("[safety.logs]\npersonel = 'flag'", "`personal`"),
        ("[safety]\nlog = 1", "`logs`"),
        ("[selection]\nmax_token = 1", "`max_tokens`"),
    ] {
        environment.write("plimsoll.toml", settings);
        let ran = environment.run(&["work", "--once", "--store", "kept.db"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}
