//! The pages at several widths of the terminal, totals of folders, and the conversations of one file.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::environment::Environment;
use crate::sessions;

/// A session of Claude Code that reports its usage, in a project on a day.
fn billed(project: &str, day: &str, model: &str, id: &str) -> String {
    let line = |n: usize, body: Value| {
        let mut line = json!({
            "uuid": format!("{id}-{n}"), "parentUuid": Value::Null, "sessionId": id,
            "cwd": project, "timestamp": format!("{day}T10:00:0{n}.000Z"),
        });
        for (key, value) in body.as_object().expect("an object") {
            line[key] = value.clone();
        }
        line.to_string() + "\n"
    };
    let answer = |n: usize, read: u64| {
        let usage = json!({"input_tokens": 100, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": read, "output_tokens": 50});
        let message = json!({"id": format!("{id}-m{n}"), "role": "assistant", "model": model, "content": [{"type": "text", "text": "Done."}], "usage": usage});
        line(n, json!({"type": "assistant", "message": message, "requestId": format!("{id}-r{n}")}))
    };
    let asked = |n: usize| {
        line(n, json!({"type": "user", "message": {"role": "user", "content": "go on"}}))
    };
    [asked(0), answer(1, 0), asked(2), answer(3, 2000)].concat()
}

fn folder() -> Environment {
    let environment = Environment::new();
    for (name, project, day, model) in [
        ("a", "/work/harbour", "2026-05-01", "claude-sonnet-4-5"),
        ("b", "/work/harbour", "2026-05-02", "claude-sonnet-4-5"),
        ("c", "/work/lighthouse", "2026-05-02", "claude-opus-4-5"),
    ] {
        environment.write(&format!("all/{name}.jsonl"), billed(project, day, model, name));
    }
    environment
}

#[test]
fn inspect_adds_a_folder_up_by_day_project_and_model() {
    let environment = folder();
    let names = |by: &str| -> Vec<(String, u64)> {
        let found = environment.json(&["inspect", "all", "--by", by]);
        assert_eq!(found["total"]["requests"], 6, "{found}");
        assert_eq!(found["total"]["cache_read_tokens"], 6000);
        assert_eq!(found["total"]["input_tokens"], 600);
        let rows = found["rows"].as_array().expect("rows");
        let sum: f64 = rows.iter().filter_map(|row| row["dollars"].as_f64()).sum();
        assert!((sum - found["total"]["dollars"].as_f64().unwrap_or(0.0)).abs() < 1e-9);
        let row = |row: &Value| {
            (
                row["name"].as_str().expect("a name").to_owned(),
                row["requests"].as_u64().unwrap_or(0),
            )
        };
        rows.iter().map(row).collect()
    };
    let pair = |name: &str, requests| (name.to_owned(), requests);
    assert_eq!(names("day"), [pair("2026-05-01", 2), pair("2026-05-02", 4)]);
    let mut projects = names("project");
    projects.sort();
    assert_eq!(projects, [pair("/work/harbour", 4), pair("/work/lighthouse", 2)]);
    assert_eq!(names("model").len(), 2);
    let later = environment.json(&["inspect", "all", "--by", "day", "--since", "2026-05-02"]);
    assert_eq!(later["total"]["requests"], 4);
    insta::assert_snapshot!(environment.data(&["inspect", "all", "--by", "project"]), @r#"
    project           requests  input  output  cache write  cache read  tokens   cost
    /work/harbour            4    400     200        4,000       4,000   8,600  $0.02
    /work/lighthouse         2    200     100        2,000       2,000   4,300  $0.02
    total                    6    600     300        6,000       6,000  12,900  $0.04
    "#);
}

#[test]
fn replay_adds_a_folder_up_by_day_project_and_model() {
    let environment = folder();
    for (by, groups) in [("day", 2), ("project", 2), ("model", 2), ("session", 3)] {
        let found = environment.json(&["replay", "all", "--by", by]);
        let list = found["groups"].as_array().expect("groups");
        assert_eq!((found["by"].as_str(), list.len()), (Some(by), groups), "{found}");
        let turns = |figures: &Value| figures["full"]["totals"]["turns"].as_u64().unwrap_or(0);
        assert_eq!(list.iter().map(turns).sum::<u64>(), turns(&found));
    }
    insta::assert_snapshot!(environment.data(&["replay", "all", "--by", "project"]), @r#"
    3 sessions, 6 turns

    policy           tokens sent    %   cost $    %  work shown places blind fetches
    billed                              0.0374 146%
    full                      72 100%   0.0256 100% 1.000 100.0  100.0   0.0       0
    plimsoll                  72 100%   0.0256 100% 1.000 100.0  100.0   0.0       0

    project             policy  sessions  turns  tokens sent     %   full   cost     %
    /work/harbour     plimsoll         2      4           48  100%  $0.01  $0.01  100%
    /work/lighthouse  plimsoll         1      2           24  100%  $0.01  $0.01  100%
    "#);
}

#[test]
fn two_policies_are_drawn_side_by_side() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(25, 60));
    environment.data(&[
        "replay",
        "s.jsonl",
        "--policy",
        "plimsoll",
        "--policy",
        "newest:3000",
        "--picture",
        "two.svg",
    ]);
    let drawn = environment.read("two.svg");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"), "{drawn:.200}");
    assert_eq!(drawn.matches("<g transform").count(), 2);
    // Side by side: the second panel is to the right of the first, at the same height.
    assert!(drawn.contains("translate(48 52)") && drawn.contains("translate(584 52)"));
    assert!(drawn.contains(">plimsoll</text>") && drawn.contains(">newest:3000</text>"));
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let environment = folder();
    environment.write("s.jsonl", sessions::pi(25, 40));
    let ran = environment.run(&["replay", "s.jsonl", "--store", "kept.db"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    environment.run(&[
        "memory",
        "add",
        "decision",
        "Keep one database for the whole harbour and all its quays",
        "--store",
        "kept.db",
    ]);
    environment.run(&["work", "--once", "--store", "kept.db"]);
    let two = ["replay", "s.jsonl", "--policy", "plimsoll", "--policy", "clear-tool-uses:2000,2"];
    let commands: [&[&str]; 16] = [
        &["inspect", "s.jsonl"],
        &["inspect", "all"],
        &["inspect", "all", "--by", "project"],
        &["bill", "all"],
        &["replay", "s.jsonl"],
        &two,
        &["replay", "all", "--by", "model", "--each"],
        &["explain", "s.jsonl", "--turn", "20"],
        &["sessions", "--store", "kept.db"],
        &["search", "quay", "--store", "kept.db"],
        &["cards", "--store", "kept.db"],
        &["recall", "--query", "Which quay?", "--store", "kept.db", "--explain"],
        &["memory", "list", "--store", "kept.db"],
        &["log", "stats", "--store", "kept.db"],
        &["models", "prices", "claude"],
        &["pressure", "s.jsonl"],
    ];
    for width in [60, 80, 120, 200] {
        for arguments in commands {
            let ran = environment.run_with(arguments, &[("COLUMNS", &width.to_string())]);
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
            let widest = ran.stdout.lines().max_by_key(|line| line.width()).unwrap_or_default();
            assert!(widest.width() <= width, "{arguments:?} at {width}: {widest}");
        }
    }
    // Where the output goes into a file or a pipe, lines stay whole.
    let whole = environment.data(&["search", "quay", "--store", "kept.db"]);
    let narrow = ["search", "quay", "--store", "kept.db"];
    let narrow = environment.run_with(&narrow, &[("COLUMNS", "60")]).stdout;
    assert!(whole.lines().count() < narrow.lines().count());
}

#[test]
fn every_conversation_of_a_file_can_be_named() {
    let environment = Environment::new();
    let main = billed("/work/harbour", "2026-05-01", "claude-sonnet-4-5", "s");
    let aside = json!({"type": "user", "uuid": "x1", "isSidechain": true, "agentId": "scout", "sessionId": "s", "message": {"role": "user", "content": "look around"}});
    let found = json!({"type": "assistant", "uuid": "x2", "parentUuid": "x1", "isSidechain": true, "agentId": "scout", "sessionId": "s", "message": {"id": "xm", "role": "assistant", "content": [{"type": "text", "text": "Nothing there."}]}});
    environment.write("s.jsonl", format!("{main}{aside}\n{found}\n"));
    let inspected = environment.json(&["inspect", "s.jsonl"]);
    let listed = inspected["conversations"].as_array().expect("conversations");
    assert_eq!(listed.len(), 2, "{inspected}");
    let name = listed[1]["file"].as_str().expect("a name");
    assert_eq!((name, listed[1]["name"].as_str()), ("s.jsonl#1", Some("scout")));
    assert!(environment.data(&["inspect", "s.jsonl"]).contains("s.jsonl#1  sub-agent, 2 messages"));
    for command in ["inspect", "replay", "explain", "pressure"] {
        let ran = environment.run(&[command, name, "--json"]);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
    assert_eq!(environment.json(&["inspect", name])["messages"]["user"], 1);
    let ran = environment.run(&["inspect", "s.jsonl#2"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stderr, @r#"error: s.jsonl#2: the file has 2 conversations, and no number 2 among them; `plimsoll inspect FILE` lists the conversations of a file"#);
    // An import takes all of them, each as its own session.
    environment.data(&["import", "s.jsonl", "--store", "kept.db"]);
    let sessions = environment.json(&["sessions", "--store", "kept.db"]);
    let mut ids: Vec<&str> = sessions
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|session| session["session"].as_str())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["s", "s:scout"]);
}

#[test]
fn a_trim_without_a_store_has_no_refs_and_one_with_a_store_has_living_ones() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(25, 60));
    let refs = regex::Regex::new("ref:message:[0-9a-f]+").expect("a pattern");
    for policy in ["plimsoll", "window", "clear-tool-uses:2000,2", "working-set:4000"] {
        let trim = |more: &[&str]| {
            let mut arguments = vec!["trim", "s.jsonl", "--policy", policy];
            arguments.extend(more);
            let ran = environment.run(&arguments);
            assert_eq!(ran.code, 0, "{policy}: {}", ran.stderr);
            ran.stdout
        };
        assert!(!trim(&[]).contains("ref:message:"), "{policy}");
        let kept = trim(&["--store", "kept.db"]);
        let mut count = 0;
        for reference in refs.find_iter(&kept) {
            let ran = environment.run(&["ref", "get", reference.as_str(), "--store", "kept.db"]);
            assert_eq!(ran.code, 0, "{policy} {}: {}", reference.as_str(), ran.stderr);
            count += 1;
        }
        assert!(count > 0 || policy == "working-set:4000", "{policy} shortens nothing");
    }
}

/// Takes ids out of the tables that print them, and gives them to commands as they are.
#[test]
fn short_ids_are_taken_wherever_they_are_printed() {
    let environment = Environment::new();
    for name in ["a-long-name-of-a-session-one", "another-long-name-of-a-session"] {
        let line = json!({"id": format!("{name}-1"), "session": name, "speaker": "Ann", "text": format!("The quay of {name} is closed.")});
        environment.write(&format!("{name}.jsonl"), format!("{line}\n"));
        environment.data(&["import", &format!("{name}.jsonl"), "--store", "kept.db"]);
    }
    environment.run(&["work", "--once", "--store", "kept.db"]);
    let printed = |command: &[&str], pattern: &str| -> Vec<String> {
        let table = environment.data(command);
        let pattern = regex::Regex::new(pattern).expect("a pattern");
        let found: Vec<String> =
            pattern.find_iter(&table).map(|one| one.as_str().to_owned()).collect();
        assert!(!found.is_empty(), "{command:?}: {table}");
        found
    };
    let sessions = [
        printed(&["log", "--store", "kept.db"], "a-long-…|another…"),
        printed(&["cards", "--store", "kept.db"], "a-long-name…|another-lon…"),
        printed(&["sessions", "--store", "kept.db"], "a-long[a-z-]+|another[a-z-]+"),
        vec!["a-lo".to_owned()],
    ];
    for session in sessions.concat() {
        for command in [
            &["search", "quay", "--store", "kept.db", "--session", &session][..],
            &["log", "--store", "kept.db", "--session", &session],
            &["cards", "--store", "kept.db", "--session", &session],
            &["recall", "--query", "quay", "--store", "kept.db", "--session", &session],
        ] {
            let found = environment.data(command);
            assert!(found.contains("quay"), "{command:?}: {found}");
            let other = if session.starts_with("a-") { "another" } else { "a-long" };
            assert!(!found.contains(&format!("of {other}")), "{command:?}: {found}");
        }
    }
    let ran = environment.run(&["search", "quay", "--store", "kept.db", "--session", "a"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("2 sessions begin with `a`"), "{}", ran.stderr);
    for reference in printed(&["search", "quay", "--store", "kept.db"], "ref:message:[0-9a-f]+") {
        for part in [&*reference, &reference[..reference.len() - 4]] {
            assert!(environment.data(&["ref", "get", part, "--store", "kept.db"]).contains("quay"));
        }
    }
}
