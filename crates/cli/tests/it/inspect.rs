use crate::environment::Environment;
use crate::sessions;

#[test]
fn a_session_on_one_page() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", sessions::pi(3, 40));
    insta::assert_snapshot!(environment.data(&["inspect", "harbour.jsonl", "--tokens", "estimate"]), @r#"
    harbour.jsonl  pi session

    id           5eb1
    model        claude-sonnet-4-5
    folder       /home/ada/harbour
    started      2026-03-01 10:00 UTC, over 39 s
    messages     8  1 user, 4 assistant, 3 tool
    turns        4  3 exchanges with tools, 3 calls, 1 error

    tokens       1,455  counted by estimate (4 / 3.5 characters)
    window       ░░░░░░░░░░░░░░░░░░░░ 1% of 200,000

    by role                                 by kind
    user             17   1% ▏              text               59   4% ▌
    assistant        72   5% ▋              tool calls         30   2% ▎
    tool          1,331  94% █████████████  tool results    1,331  94% █████████████

        #  role        tokens  largest messages
        4  tool           448  bash rg quay crates/harbour_1
        6  tool           448  bash rg quay crates/harbour_2
        2  tool           435  bash rg quay crates/harbour_0
        1  assistant       18  I look at part 0 of the harbour. bash {"command":"rg…
        3  assistant       18  I look at part 1 of the harbour. bash {"command":"rg…
        5  assistant       18  I look at part 2 of the harbour. bash {"command":"rg…
        7  assistant       18  All quays are renamed; crates/harbour_0/src/berth_3.…
        0  user            17  Rename every quay in the harbour and tell me which o…

    tool                         calls   arguments       results   share
    bash                             3          30         1,331     96%
    "#);
}

#[test]
fn usage_errors_and_the_folder_are_told() {
    let environment = Environment::new();
    environment.write("berths.jsonl", sessions::claude_code());
    insta::assert_snapshot!(environment.data(&["inspect", "berths.jsonl"]), @r#"
    berths.jsonl  claude-code session

    id           c1a0de
    model        claude-opus-4-6
    folder       /home/ada/harbour
    started      2026-03-02 08:00 UTC
    messages     4  1 user, 2 assistant, 1 tool
    turns        2  1 exchange with tools, 1 call, 1 error

    tokens       988  counted by o200k × 1.18
    window       ░░░░░░░░░░░░░░░░░░░░ 0% of 1,000,000
    reported     1,000 in over 1 request, 90% of it cached, 20 out
                 largest prompt 1,000; $0.00 at the prices of claude-opus-4-6

    by role                                 by kind
    user              7   1%                text               15   2% ▏
    assistant        17   2% ▏              tool calls          9   1% ▏
    tool            944  98% █████████████▋ tool results      944  98% █████████████▋

        #  role        tokens  largest messages
        2  tool           944  Bash berths --free
        1  assistant        9  Bash berths --free
        3  assistant        8  Berth 3 is free.
        0  user             7  Which berths are free?

    tool                         calls   arguments       results   share
    Bash                             1           9           944     98%
    "#);
}

#[test]
fn the_json_has_what_the_page_has() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", sessions::pi(3, 40));
    let found =
        environment.json(&["inspect", "harbour.jsonl", "--tokens", "estimate", "--window", "9000"]);
    assert_eq!(found["format"], "pi");
    assert_eq!(found["model"], "claude-sonnet-4-5");
    assert_eq!(found["turns"], 4);
    assert_eq!(found["exchanges"], 3);
    assert_eq!(found["tool_errors"], 1);
    assert_eq!(found["messages"]["assistant"], 4);
    assert_eq!(found["pressure"]["total_tokens"], 9000);
    let statistics = &found["statistics"];
    assert_eq!(
        found["tokens"],
        statistics["total"].as_u64().unwrap() + statistics["overhead"].as_u64().unwrap()
    );
}

#[test]
fn what_was_skipped_is_counted_and_listed() {
    let environment = Environment::new();
    environment.write("harbour.jsonl", sessions::pi(2, 3) + "{\"type\": \"message\", broken\n");
    let page = environment.data(&["inspect", "harbour.jsonl"]);
    assert!(page.contains("! 1 skipped records"), "{page}");
    let page = environment.data(&["inspect", "harbour.jsonl", "--verbose"]);
    assert!(page.contains("! line 9: skipped"), "{page}");
}

#[test]
fn usual_places_are_listed_newest_first() {
    let environment = Environment::new();
    let ran = environment.run(&["inspect"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(ran.stderr, @r#"note: no session in ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.pi/agent/sessions, ~/.gemini/tmp, ~/.gemini/tmp, ~/.copilot/session-state, ~/.copilot/history-session-state, ~/.cursor/projects, ~/.cline/data/tasks, ~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks, ~/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/tasks, ~/AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/tasks, ~/.openhands/sessions, ~/.config/mini-swe-agent; give a session or a folder of them, `plimsoll inspect FILE`"#);

    environment.write_home(".claude/projects/-harbour/one.jsonl", sessions::claude_code());
    environment.write_home(".pi/agent/sessions/--harbour--/two.jsonl", sessions::pi(1, 1));
    insta::assert_snapshot!(sorted(&environment.data(&["inspect"])), @r#"
    agent                  changed      size  session
    claude-code           just now      3 kB  ~/.claude/projects/-harbour/one.jsonl
    pi                    just now      1 kB  ~/.pi/agent/sessions/--harbour--/two.jsonl
    "#);
    let list = environment.json(&["inspect", "--limit", "1"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1));
}

/// Two files written one after the other may have the same time.
fn sorted(list: &str) -> String {
    let mut lines: Vec<&str> = list.lines().take(3).collect();
    lines[1..].sort_unstable();
    lines.join("\n")
}

#[test]
fn a_folder_lists_what_reads_as_a_session() {
    let environment = Environment::new();
    environment.write("logs/deep/harbour.jsonl", sessions::pi(1, 1));
    environment.write("logs/package.json", "{\"name\": \"harbour\"}");
    environment.write("logs/notes.txt", "no session");
    let list = environment.json(&["inspect", "logs"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(
        (&list[0]["format"], &list[0]["path"]),
        (&"pi".into(), &"logs/deep/harbour.jsonl".into())
    );
    std::fs::create_dir(environment.work().join("empty")).expect("a folder");
    let ran = environment.run(&["inspect", "empty"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(ran.stderr, @"note: no session in empty; sessions are files that end with .jsonl, .json or .traj");
}
