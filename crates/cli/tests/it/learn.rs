//! `learn`: what sessions show becomes settings that `replay --config` reads, and the default stays where nothing is gained.

use crate::environment::Environment;
use crate::sessions;

fn environment() -> Environment {
    let environment = Environment::new();
    for (at, steps) in [6, 9, 12, 15].into_iter().enumerate() {
        environment.write(&format!("kept/{at}.jsonl"), sessions::pi(steps, 40));
    }
    environment
}

#[test]
fn the_default_stays_where_sessions_show_too_little() {
    let environment = environment();
    environment.write("plimsoll.toml", "[settle]\nfloor = 5000\n");
    let found = environment.json(&["learn", "kept", "--out", "policy.toml", "--folds", "2"]);
    assert_eq!(found["sessions"], 4);
    assert_eq!(found["is_new"], false);
    assert_eq!(found["need"], found["default"]);
    assert_eq!(found["kept"].as_array().map(Vec::len), Some(4));
    let policy = environment.read("policy.toml");
    assert!(policy.starts_with("# Written by `plimsoll learn` from 4 sessions"), "{policy}");
    assert!(policy.contains("The default stays") && policy.contains("floor = 5000"), "{policy}");
    assert!(!policy.contains("[settle.need]"), "{policy}");
}

#[test]
fn the_written_settings_are_read_by_replay_and_shown() {
    let environment = environment();
    let text = environment.data(&["learn", "kept", "--out", "policy.toml"]);
    assert!(text.contains("needed at the next turn, %"), "{text}");
    assert!(text.contains("policy.toml is written"), "{text}");
    environment.data(&["replay", "kept/0.jsonl", "--config", "policy.toml"]);
    let again = environment.run(&["learn", "kept", "--out", "policy.toml"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("`--overwrite` replaces it"), "{}", again.stderr);
}

#[test]
fn few_sessions_are_refused() {
    let environment = environment();
    let ran = environment.run(&["learn", "kept/0.jsonl", "kept/1.jsonl", "--out", "p.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("2 sessions have turns, and 3 are needed"), "{}", ran.stderr);
    assert!(!environment.files().contains(&"p.toml".to_owned()));
}
