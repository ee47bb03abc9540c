//! An operator's view of the tenants of a store: listed, read, exported and erased whole.

use crate::environment::Environment;

const LINES: &str = "{\"id\": \"a\", \"session\": \"s\", \"speaker\": \"ann\", \"text\": \"the berth is fourteen\"}\n";

fn filled() -> Environment {
    let environment = Environment::new();
    environment.write("lines.jsonl", LINES);
    for tenant in ["ann", "bob"] {
        environment.data(&["import", "lines.jsonl", "--store", "kept.db", "--tenant", tenant]);
        let add =
            ["memory", "add", "fact", "ann likes tea", "--store", "kept.db", "--tenant", tenant];
        assert_eq!(environment.run(&add).code, 0, "{}", environment.run(&add).stderr);
    }
    environment
}

#[test]
fn a_tenant_is_listed_read_exported_and_erased() {
    let environment = filled();
    let on = |arguments: &[&str]| {
        let all: Vec<&str> = arguments.iter().copied().chain(["--store", "kept.db"]).collect();
        environment.run(&all)
    };
    let list = on(&["tenant", "list"]).stdout;
    assert!(list.contains("ann") && list.contains("bob") && list.contains("1 messages"), "{list}");
    for tenant in ["ann", "bob"] {
        assert!(on(&["search", "fourteen", "--tenant", tenant]).stdout.contains("fourteen"));
        assert!(on(&["log", "--tenant", tenant]).stdout.contains('s'));
    }
    assert!(!on(&["search", "fourteen"]).stdout.contains("berth"), "another tenant's");
    let exported = on(&["tenant", "export", "ann"]).stdout;
    let kinds: Vec<String> = exported
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON")["kind"].to_string()
        })
        .collect();
    assert!(
        kinds.contains(&"\"log\"".to_owned()) && kinds.contains(&"\"memory\"".to_owned()),
        "{kinds:?}"
    );
    assert_eq!(on(&["tenant", "erase", "ann"]).code, 2, "without a word nothing goes");
    let erased = on(&["tenant", "erase", "ann", "--yes"]);
    assert!(erased.stdout.contains("none is left"), "{} {}", erased.stdout, erased.stderr);
    assert!(!on(&["tenant", "list"]).stdout.contains("ann"));
    assert!(on(&["search", "fourteen", "--tenant", "bob"]).stdout.contains("fourteen"));
    assert_eq!(on(&["tenant", "erase", "ann", "--yes"]).code, 2, "there is none any more");
    // Neither a table nor a free page holds it.
    on(&["tenant", "erase", "bob", "--yes"]);
    let bytes = std::fs::read(environment.work().join("kept.db")).expect("the store");
    let holds = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(!holds("fourteen") && !holds("likes tea"));
}

#[test]
fn commands_that_read_make_no_store() {
    let environment = Environment::new();
    for command in [
        &["log"][..],
        &["search", "x"],
        &["ref", "list"],
        &["cards"],
        &["cache", "list"],
        &["tenant", "list"],
        &["recall", "--query", "x"],
    ] {
        let all: Vec<&str> = command.iter().copied().chain(["--store", "none/kept.db"]).collect();
        let ran = environment.run(&all);
        assert_eq!(ran.code, 2, "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("there is no store"), "{command:?}: {}", ran.stderr);
        assert_eq!(environment.run(command).code, 2, "{command:?}");
    }
    for command in [&["assemble", "--turn", "x"][..], &["work", "--once"]] {
        let all: Vec<&str> = command.iter().copied().chain(["--store", "none/kept.db"]).collect();
        let ran = environment.run(&all);
        assert!(ran.stderr.contains("there is no store"), "{command:?}: {}", ran.stderr);
    }
    assert!(environment.files().is_empty());
    assert!(!environment.home().join(".local").exists());
    environment.write("empty.db", "");
    for command in [&["search", "x"][..], &["sessions"], &["tenant", "list"], &["store", "check"]] {
        let all: Vec<&str> = command.iter().copied().chain(["--store", "empty.db"]).collect();
        let ran = environment.run(&all);
        assert_eq!(ran.code, 2, "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("empty.db: the file is empty"), "{command:?}: {}", ran.stderr);
    }
    assert_eq!(environment.files(), ["empty.db"]);
    assert_eq!(environment.read("empty.db"), "");
}

#[test]
fn files_of_one_id_that_begin_otherwise_are_sessions_of_their_own() {
    let environment = Environment::new();
    let session = |first: &str| {
        format!(
            "{{\"type\":\"user\",\"sessionId\":\"same\",\"uuid\":\"1\",\"parentUuid\":null,\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{first}\"}}}}\n"
        )
    };
    environment.write("one.jsonl", session("the first of them"));
    environment.write("two.jsonl", session("another beginning"));
    for file in ["one.jsonl", "two.jsonl", "one.jsonl", "two.jsonl"] {
        let ran = environment.run(&["import", file, "--store", "kept.db"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let list = environment.run(&["tenant", "list", "--store", "kept.db"]).stdout;
    assert!(list.contains("2 sessions") && list.contains("2 messages"), "{list}");
}

#[test]
fn a_store_is_checked_and_copied() {
    let environment = filled();
    let ran = environment.run(&["store", "check", "--store", "kept.db"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 messages checked, 0 faults"), "{}", ran.stderr);
    assert_eq!(environment.run(&["store", "backup", "copy.db", "--store", "kept.db"]).code, 0);
    let again = environment.run(&["store", "backup", "copy.db", "--store", "kept.db"]);
    assert_eq!(again.code, 1, "a file that is there is not replaced");
    let found = environment.run(&["search", "fourteen", "--tenant", "ann", "--store", "copy.db"]);
    assert!(found.stdout.contains("fourteen"), "{}", found.stderr);
    // A letter of a message changes on the disk.
    let mut bytes = std::fs::read(environment.work().join("copy.db")).expect("the copy");
    let word = b"the berth is fourteen";
    let at = bytes.windows(word.len()).position(|part| part == word).expect("a message");
    bytes[at] = b'T';
    environment.write("copy.db", bytes);
    let found = environment.run(&["search", "fourteen", "--tenant", "ann", "--store", "copy.db"]);
    let of_bob = environment.run(&["search", "fourteen", "--tenant", "bob", "--store", "copy.db"]);
    let told = format!("{}{}", found.stderr, of_bob.stderr);
    assert!(told.contains("1 message is damaged and missing here"), "{told}");
    assert!(told.contains("plimsoll store check"), "{told}");
    let ran = environment.run(&["store", "check", "--store", "copy.db"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("1 message no longer as stored"), "{}", ran.stdout);
    let ran = environment.run(&["store", "repair", "--store", "copy.db"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("unified_logs: 1 row kept, 1 dropped, no longer as stored"),
        "{}",
        ran.stdout
    );
    assert!(environment.work().join("copy.db.damaged").exists());
    assert_eq!(environment.run(&["store", "check", "--store", "copy.db"]).code, 0);
    let ran = environment.run(&["store", "repair", "--store", "copy.db"]);
    assert!(ran.stdout.contains("nothing to repair"), "{}", ran.stdout);
}
