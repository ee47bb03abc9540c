//! `cache`: what is kept, evicted, counted, and how the guard is tried.

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::answer::{AnswerScope, AnswerSettings};
use plimsoll_engine::TenantId;
use plimsoll_engine::answer::{AnswerCache, AnswerQuestion, find_answer, keep_answer};

use crate::environment::Environment;

/// Keeps an answer for each question and serves the first one once.
fn kept(environment: &Environment, questions: &[&str]) {
    let address = environment.work().join("kept.db");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (_, knowledge) =
            plimsoll_store::open(&plimsoll_store::StoreAddress::new(address.to_string_lossy()))
                .await
                .expect("a store");
        let settings = AnswerSettings { enabled: true, ..AnswerSettings::default() };
        let tenant = TenantId::default();
        let knowledge = &*knowledge;
        let cache = AnswerCache { knowledge, embedder: None, tenant: &tenant, settings: &settings };
        let signature = AnswerScope::default().signature();
        let mut at = MillisSinceEpoch(0);
        for text in questions {
            at.0 += 1;
            let question = AnswerQuestion { text, signature: &signature };
            let used = ["ref:message:0123456789abcdef".to_owned()];
            keep_answer(&cache, &question, &format!("to {text}"), &used, at).await.expect("kept");
        }
        let first = AnswerQuestion { text: questions[0], signature: &signature };
        find_answer(&cache, &first, at).await.expect("found");
    });
}

#[test]
fn answers_are_listed_shown_and_evicted() {
    let environment = Environment::new();
    kept(&environment, &["Why is it so?", "Who \u{1b}[31mdid it?"]);
    let cache = |arguments: &[&str]| {
        let all: Vec<&str> = ["cache"]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain(["--store", "kept.db"])
            .collect();
        environment.run(&all)
    };
    let list = cache(&["list"]).stdout;
    let lines: Vec<&str> = list.lines().map(|line| &line[13..]).collect();
    assert_eq!(lines, ["     0 hits  Who \u{fffd}[31mdid it?", "     1 hits  Why is it so?"]);
    let key = list.lines().nth(1).expect("a line").split(' ').next().expect("a key").to_owned();
    assert_eq!(cache(&["show", &key]).stdout, "to Why is it so?\n");
    let stats = cache(&["stats"]).stdout;
    assert_eq!(
        stats,
        "2 answers of at most 10,000, 2 of them past their time\n\
         64 bytes of at most 67,108,864\n\
         1 hits, 1 answers served at least once, hit rate 33.3 %\n"
    );
    assert_eq!(cache(&["evict", &key]).stdout, "1 answers removed\n");
    let again = cache(&["evict", &key]);
    assert_eq!((again.code, again.stdout.as_str()), (2, ""));
    let by_ref = cache(&["evict", "--ref", "ref:message:0123456789abcdef", "--json"]).stdout;
    assert_eq!(by_ref, "{\n  \"evicted\": 1\n}\n");
    assert_eq!(cache(&["list"]).stdout, "no answer is kept\n");
    assert_eq!(cache(&["list", "--json"]).stdout, "[]\n");
    assert_eq!(cache(&["evict"]).code, 2);
}

const PAIRS: &str = "1\tHow do I feed a cat?\thow can I feed the cat\n\
    1\tHow do I feed a cat?\tWhat do cats eat?\n\
    0\tHow do I feed a cat?\tHow do I not feed a cat?\n\
    0\tWhat is a dog?\tWhat's a dog?\n";

#[test]
fn the_guard_is_tried_on_labelled_pairs() {
    let environment = Environment::new();
    environment.write("pairs.tsv", PAIRS);
    let report = environment.json(&["cache", "check", "pairs.tsv", "--halves", "--wrong"]);
    assert_eq!((report["pairs"].as_u64(), report["labelled_same"].as_u64()), (Some(4), Some(2)));
    let row = |lines: &str, guard: &str| {
        let mut rows = report["rows"].as_array().expect("rows").iter();
        rows.rfind(|row| row["lines"] == lines && row["guard"] == guard).expect("a row").clone()
    };
    let configured = row("all", "configured");
    assert_eq!((configured["served"].as_u64(), configured["wrong"].as_u64()), (Some(2), Some(1)));
    assert_eq!(configured["precision"].as_f64(), Some(0.5));
    assert_eq!(configured["hit_rate"].as_f64(), Some(0.5));
    assert!(configured["wrong_at_most"].as_f64().is_some_and(|most| most > 0.9));
    assert_eq!(row("odd", "configured")["served"].as_u64(), Some(1));
    assert_eq!(row("even", "configured")["wrong"].as_u64(), Some(1));
    assert_eq!(report["wrong"][0][1], "What's a dog?");
    let page = environment.data(&["cache", "check", "pairs.tsv"]);
    assert!(page.starts_with("4 pairs, 2 of them labelled the same\n"), "{page}");
    assert_eq!(page.lines().count(), 12, "{page}");
}

#[test]
fn settings_change_the_check() {
    let environment = Environment::new();
    environment.write("pairs.tsv", PAIRS);
    environment.write("plimsoll.toml", "[answers.alike]\nhow_to = false\narticles = false\n");
    let report = environment.json(&["cache", "check", "pairs.tsv"]);
    let last = report["rows"].as_array().and_then(|rows| rows.last()).expect("a row").clone();
    assert_eq!(last["served"].as_u64(), Some(1));
    environment.write("pairs.tsv", "1\ta\n");
    let ran = environment.run(&["cache", "check", "pairs.tsv"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("pairs.tsv:1 is no labelled pair"), "{}", ran.stderr);
}

/// Pairs of our own: reversed, with other numbers, names, units, dates, negations, opposites and persons.
#[test]
fn the_guard_serves_what_is_the_same_and_no_near_miss() {
    let environment = Environment::new();
    environment.write("pairs.tsv", include_str!("../../../../examples/questions.tsv"));
    let report = environment.json(&["cache", "check", "pairs.tsv", "--wrong"]);
    assert_eq!(report["wrong"], serde_json::json!([]));
    let last = report["rows"].as_array().and_then(|rows| rows.last()).expect("a row").clone();
    assert_eq!(last["served"], report["labelled_same"]);
}
