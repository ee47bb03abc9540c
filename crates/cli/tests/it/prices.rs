//! Prices: the table, lists that others publish, the user's own, and models that none of them knows.

use serde_json::Value;

use crate::environment::Environment;
use crate::sessions;

const OWN: &str = "date = \"2026-11-20\"\n[[model]]\nname = \"claude-sonnet-4-5\"\ninput = 30.0\noutput = 15.0\n\
                   cache = \"marks\"\ncache_read = 0.5\ncache_least = 1024\ncache_writes = [{ seconds = 300, price = 1.5 }]\n";

const LIST: &str = r#"{"anthropic":{"models":{
"claude-opus-5-5":{"cost":{"input":4,"output":20,"cache_read":0.2,"cache_write":5}},
"claude-fable-5-2":{"cost":{"input":9,"output":40,"cache_read":0.225,"cache_write":11.25}},
"claude-novel-9":{"limit":{"context":500000},"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75}}}},
"openrouter":{"models":{"anthropic/claude-opus-5-5":{"cost":{"input":9,"output":9}}}}}"#;

/// Where the user's own prices are.
const USERS: &str = ".config/plimsoll/pricing.toml";

#[test]
fn the_table_is_shown() {
    let environment = Environment::new();
    let text = environment.data(&["models", "prices", "sonnet-5-5"]);
    insta::assert_snapshot!(text, @r"
    US dollars for a million tokens; cache prices are multiples of `in`; read on 2026-11-22

    model              from        in  out  read   writes               least  cache  window  above  thinking
    claude-sonnet-5-5              2   10   ×0.1   ×1.25 5 min, ×2 1 h  512    marks  1M             bound
    claude-sonnet-5-5  2026-10-07  2   10   ×0.05  ×1.25 5 min, ×2 1 h  512    marks  1M             bound
    ");
    let found = environment.json(&["models", "prices", "haiku-5-5"]);
    assert_eq!(found["models"][0]["bands"][0]["above"], 100_000);
    assert_eq!(found["models"][0]["binds_thinking"], true);
    let ran = environment.run(&["models", "prices", "nobody"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
}

#[test]
fn a_list_is_read_into_the_users_own_prices() {
    let environment = Environment::new();
    environment.write("api.json", LIST);
    let report = environment.json(&["models", "prices", "--import", "api.json"]);
    assert_eq!(report["new"], serde_json::json!(["claude-novel-9"]));
    assert_eq!(report["changed"], serde_json::json!(["claude-fable-5-2"]));
    assert_eq!(
        (&report["alike"], &report["left"]["sold by others than their maker"]),
        (&1.into(), &1.into())
    );
    assert!(report["out"].as_str().is_some_and(|out| out.ends_with(USERS)));
    // The written prices hold at once; fields that the list lacks keep the table's values.
    let found = environment.json(&["models", "prices", "claude-novel-9"]);
    let novel = &found["models"][0];
    assert_eq!((&novel["cache"], &novel["window"]), (&"marks".into(), &500_000.into()));
    assert_eq!(novel["cache_writes"][1], serde_json::json!({"seconds": 3600, "price": 2.0}));
    let found = environment.json(&["models", "prices", "claude-fable-5-2"]);
    let inputs: Vec<&Value> =
        found["models"].as_array().unwrap().iter().map(|one| &one["input"]).collect();
    assert_eq!(inputs, [8.0, 9.0]);
    let again = environment.data(&["models", "prices", "--import", "api.json"]);
    assert!(again.starts_with("nothing new in models.dev"), "{again}");
}

#[test]
fn an_import_goes_to_a_named_file_and_keeps_what_is_in_it() {
    let environment = Environment::new();
    environment.write("api.json", LIST);
    environment.write("own.toml", OWN);
    let told = environment.data(&["models", "prices", "--import", "api.json", "--out", "own.toml"]);
    assert!(
        told.starts_with(
            "2 models of models.dev taken: 1 new, 1 at other prices; wrote own.toml\n"
        ),
        "{told}"
    );
    let written = environment.read("own.toml");
    assert!(
        written.contains("claude-sonnet-4-5") && written.contains("claude-novel-9"),
        "{written}"
    );
    assert!(!written.contains("claude-opus-5-5"), "it costs what the table says");
    environment.write("notes.txt", "my notes");
    let ran = environment.run(&["models", "prices", "--import", "api.json", "--out", "notes.txt"]);
    assert_eq!(
        (ran.code, environment.read("notes.txt").as_str()),
        (2, "my notes"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_that_is_no_list_is_one_line() {
    let environment = Environment::new();
    for (content, expected) in
        [("{}", "neither"), ("", "not JSON"), ("[1", "neither"), ("{\"a\":1}", "neither")]
    {
        environment.write("list.json", content);
        let ran = environment.run(&["models", "prices", "--import", "list.json"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{content}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn own_prices_lie_over_the_shipped_ones_and_named_ones_over_both() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(3, 5));
    let cost = |arguments: &[&str]| {
        let all = [&["replay", "s.jsonl", "--policy", "full"], arguments].concat();
        environment.json(&all)["full"]["cost_dollars"].as_f64().expect("a figure")
    };
    let shipped = cost(&[]);
    environment.write_home(USERS, OWN.replace("0.5", "0.1").replace("1.5 }", "1.25 }"));
    let own = cost(&[]);
    assert!((own / shipped - 10.0).abs() < 1e-6, "{own} {shipped}");
    environment.write(
        "p.toml",
        OWN.replace("30.0", "300.0").replace("0.5", "0.1").replace("1.5 }", "1.25 }"),
    );
    let named = cost(&["--pricing", "p.toml"]);
    assert!((named / own - 10.0).abs() < 1e-6, "{named} {own}");
    // A table that lists another model leaves this one as it is.
    environment.write("other.toml", OWN.replace("claude-sonnet-4-5", "other"));
    assert!((cost(&["--pricing", "other.toml"]) - own).abs() < 1e-12);
}

#[test]
fn absurd_prices_are_refused_with_one_line() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(1, 1));
    for bad in ["-1.0", "1e300", "nan", "inf"] {
        environment.write("p.toml", OWN.replace("30.0", bad));
        let ran = environment.run(&["replay", "s.jsonl", "--pricing", "p.toml"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{bad}: {}", ran.stderr);
        assert!(ran.stderr.contains("a price of `claude-sonnet-4-5`"), "{}", ran.stderr);
    }
}

#[test]
fn an_unknown_model_is_told_once_and_its_figures_are_estimates() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(3, 5).replace("claude-sonnet-4-5", "claude-novel-9"));
    for command in [
        &["replay", "s.jsonl", "--policy", "full"][..],
        &["explain", "s.jsonl"],
        &["inspect", "s.jsonl"],
        &["trim", "s.jsonl", "--policy", "full"],
    ] {
        let ran = environment.run(command);
        assert_eq!(
            ran.stderr.lines().next(),
            Some(
                "warning: no price is known for `claude-novel-9`: it is priced as claude-sonnet-5-5, and its figures are estimates; a price in `pricing.toml` of Plimsoll's configuration folder is used instead (`plimsoll models prices --import` writes one)"
            ),
            "{command:?}"
        );
        assert_eq!(ran.stderr.matches("claude-novel-9").count(), 1, "{command:?}");
    }
    let ran = environment.run(&["replay", "s.jsonl", "--policy", "full"]);
    assert!(ran.stdout.contains(" ~0.0"), "{}", ran.stdout);
    for command in ["replay", "explain", "inspect"] {
        let ran = environment.run(&[command, "s.jsonl", "--json"]);
        let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(found["estimate"], true, "{command}");
    }
    environment.write("known.jsonl", sessions::pi(3, 5));
    assert_eq!(environment.json(&["replay", "known.jsonl"])["estimate"], false);
}

#[test]
fn a_run_with_an_unknown_model_is_an_estimate() {
    let environment = Environment::new();
    environment.write(
        "c.yaml",
        "cascade_id: greeting\nphases:\n  - name: greet\n    instructions: Say hello.\n",
    );
    environment.write("s.jsonl", "{\"text\": \"Hello.\"}\n");
    let run = ["run", "c.yaml", "--model", "scripted/s.jsonl", "--store", "s.db"];
    let ran = environment.run(&run);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("~$"), "{}", ran.stderr);
    let events = environment.run(&[&run[..], &["--json"]].concat()).stdout;
    let account: Value =
        serde_json::from_str(events.lines().last().unwrap_or_default()).expect("an account");
    assert_eq!(account["total"]["estimate"], true, "{account}");
}
