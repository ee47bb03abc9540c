//! Bad input: one line of error, exit code 2, and nothing is written.

use std::io::Write as _;
use std::process::Stdio;

use crate::environment::Environment;
use crate::sessions;

/// Runs every command that reads a session on `file`; returns the line that the first of them prints.
fn check(environment: &Environment, file: &str) -> String {
    let before = environment.files();
    let commands: [&[&str]; 5] = [
        &["replay", file, "--html", "out.html", "--contexts", "out.jsonl"],
        &["explain", file],
        &["pressure", file],
        &["trim", file, "--force", "--out", "out.trimmed"],
        &["inspect", file],
    ];
    let mut first = None;
    for command in commands {
        let ran = environment.run(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{command:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{command:?}: {}", ran.stderr);
        assert_eq!(environment.files(), before, "{command:?}");
        first.get_or_insert(ran.stderr);
    }
    first.unwrap_or_default()
}

#[test]
fn no_session() {
    let environment = Environment::new();
    environment.write("letter.txt", "Dear Sir,\nthe quay is wet.\n");
    insta::assert_snapshot!(check(&environment, "letter.txt"), @r#"error: letter.txt: not a recorded session: expected JSON lines or a JSON document of pi, claude-code, codex, openai-messages, anthropic-messages, swe-agent, mini-swe-agent, openhands, gemini-cli, opencode, copilot-cli, cursor, cline, tau-bench; the file begins with `Dear Sir, the quay is wet.`; give the session file itself, not a log or an export; compressed files must be unpacked first"#);
}

#[test]
fn nothing_in_it() {
    let environment = Environment::new();
    environment.write("empty.jsonl", "");
    insta::assert_snapshot!(check(&environment, "empty.jsonl"), @"error: empty.jsonl: the file is empty; the agent may not have written anything yet; look at the file's size");
    environment.write("blank.jsonl", " \n\n\t\n");
    insta::assert_snapshot!(check(&environment, "blank.jsonl"), @"error: blank.jsonl: the file is empty; the agent may not have written anything yet; look at the file's size");
}

#[test]
fn no_file() {
    let environment = Environment::new();
    insta::assert_snapshot!(check(&environment, "nowhere.jsonl"), @"error: cannot read nowhere.jsonl: No such file or directory (os error 2); give recorded sessions or folders of them");
}

#[test]
fn a_folder() {
    let environment = Environment::new();
    std::fs::create_dir(environment.work().join("folder")).expect("a folder");
    let ran = environment.run(&["replay", "folder"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: there is no session in the folder; sessions are files that end with .jsonl, .json or .traj");
    let ran = environment.run(&["trim", "folder", "--out", "out"]);
    assert_eq!((ran.code, environment.files()), (2, vec!["folder".to_owned()]));
}

#[test]
fn no_utf_8() {
    let environment = Environment::new();
    environment.write("noise.jsonl", (0u8..=255).collect::<Vec<_>>().repeat(40));
    check(&environment, "noise.jsonl");
    // Among good lines a bad one costs only itself.
    let mut mixed = sessions::pi(2, 3).into_bytes();
    mixed.extend(b"{\"type\":\"message\",\"id\":\"\xff\xfe\n");
    environment.write("mixed.jsonl", mixed);
    assert_eq!(environment.run(&["inspect", "mixed.jsonl"]).code, 0);
}

#[test]
fn a_deep_document() {
    let environment = Environment::new();
    environment.write("deep.json", "[".repeat(100_000));
    check(&environment, "deep.json");
    environment.write("closed.json", "[".repeat(100_000) + &"]".repeat(100_000));
    check(&environment, "closed.json");
    let deep =
        format!("{{\"type\":\"message\",\"id\":\"x\",\"message\":{}\n", "{\"a\":".repeat(100_000));
    environment.write("line.jsonl", sessions::pi(2, 3) + &deep);
    let ran = environment.run(&["replay", "line.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_giant_line_is_skipped() {
    let environment = Environment::new();
    environment.write("giant.jsonl", sessions::pi(2, 3));
    let path = environment.work().join("giant.jsonl");
    let mut file = std::fs::File::options().append(true).open(path).expect("the session");
    file.write_all(b"{\"type\":\"message\",\"id\":\"big\",\"text\":\"").expect("space");
    for _ in 0..70 {
        file.write_all(&vec![b'x'; 1 << 20]).expect("space");
    }
    file.write_all(b"\"}\n").expect("space");
    drop(file);
    let ran = environment.run(&["inspect", "giant.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("longer than 64 MiB"), "{}", ran.stdout);
}

#[test]
fn an_unknown_policy() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(2, 3));
    for command in [
        ["replay", "s.jsonl", "--policy", "plimsol", "--html", "out"],
        ["trim", "s.jsonl", "--policy", "plimsol", "--out", "out"],
    ] {
        let ran = environment.run(&command);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert_eq!(ran.stderr.lines().count(), 1);
        assert_eq!(environment.files(), ["s.jsonl"]);
    }
    insta::assert_snapshot!(environment.run(&["replay", "s.jsonl", "--policy", "plimsol"]).stderr, @"error: unknown policy `plimsol`; one of full, window, plimsoll, clear-tool-uses[:TRIGGER,KEEP], newest[:BUDGET], trim[:WINDOW], working-set[:BUDGET]");
}

#[test]
fn an_unknown_key() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(2, 3));
    environment.write("plimsoll.toml", "[intra_phase]\nwindwo = 3\n");
    let ran = environment.run(&["replay", "s.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: plimsoll.toml:2: unknown field `windwo`, expected one of `enabled`, `window`, `mask_observations_after`, `compress_loops`, `loop_history_limit`, `preserve_reasoning`, `preserve_errors`, `cadence`; the nearest known key is `window`");
    environment.write("context.json", "{\"totalToken\": 3}");
    let ran = environment.run(&["pressure", "s.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: context.json: unknown key `totalToken`, nearest known key is `totalTokens`; another file is read with `--context-config`");
}

#[test]
fn prices_that_cannot_be_read() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(2, 3));
    environment.write("prices.toml", "date = 3");
    let ran = environment.run(&["replay", "s.jsonl", "--pricing", "prices.toml", "--html", "out"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert_eq!(ran.stderr.lines().count(), 1);
    insta::assert_snapshot!(ran.stderr, @"error: prices.toml:1: invalid type: integer `3`, expected a string; the shipped table in the repository shows the shape");
    assert_eq!(environment.files(), ["prices.toml", "s.jsonl"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let environment = Environment::new();
    for arguments in [
        &["trm"][..],
        &["trim"],
        &["trim", "s", "--json"],
        &["trim", "s", "--force", "--policy", "window"],
        &["trim", "s", "--policy", "window", "--window", "9"],
        &["trim", "s", "--budget", "9"],
        &["pressure", "s", "--window", "0"],
        &["replay", "s", "--turn", "3"],
    ] {
        let ran = environment.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    insta::assert_snapshot!(environment.run(&["trm"]).stderr, @"error: unrecognized subcommand 'trm' tip: a similar subcommand exists: 'trim'; `--help` tells more");
}

#[test]
fn a_place_that_cannot_be_written() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(2, 3));
    let ran = environment.run(&["trim", "s.jsonl", "--force", "--out", "no/such/place"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert_eq!(ran.stderr.lines().count(), 1);
    assert_eq!(environment.files(), ["s.jsonl"]);
}

#[test]
fn a_session_that_would_steer_the_terminal() {
    let environment = Environment::new();
    environment.write("hostile.json", sessions::hostile());
    for command in [
        &["inspect", "hostile.json"][..],
        &["inspect", "."],
        &["explain", "hostile.json"],
        &["replay", "hostile.json", "--policy", "newest:2000", "--missed"],
        &["replay", "hostile.json", "--policy", "window", "--missed"],
    ] {
        let ran = environment.run_coloured(command);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.stderr);
        // Colours are ours; what the session wrote has another character before it.
        for bad in ["\0", "\u{202e}", "\u{1b}[31m\u{fffd}", "'\u{1b}"] {
            assert!(!ran.stdout.contains(bad), "{command:?}: {bad:?} in {}", ran.stdout);
        }
    }
}

#[test]
fn a_session_can_come_from_standard_input() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(6, 30));
    for command in ["inspect", "replay", "explain", "trim", "pressure"] {
        let run = |file: &str, input: Stdio| {
            let out = if command == "trim" {
                &["--out", "out.jsonl", "--force", "--overwrite"][..]
            } else {
                &[]
            };
            let mut command = environment.command(&[&[command, file, "--json"][..], out].concat());
            let output = command.stdin(input).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).replace("s.jsonl", "-");
            (output.status.code(), text)
        };
        let file = std::fs::File::open(environment.work().join("s.jsonl")).expect("a file");
        let named = run("s.jsonl", Stdio::null());
        assert_eq!(named.0, Some(0), "{command}");
        assert_eq!(run("-", file.into()), named, "{command}");
    }
}
