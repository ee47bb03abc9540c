use crate::environment::Environment;
use crate::sessions;

#[test]
fn the_table_and_the_picture() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(8, 30));
    environment.write(
        "prices.toml",
        "date = \"2000-01-01\"\n[[model]]\nname = \"claude-sonnet-4-5\"\ninput = 3.0\noutput = 15.0\n\
         cache_read = 0.1\ncache_writes = [{ seconds = 300, price = 1.25 }]\ncache_least = 1024\n",
    );
    let text = environment.data(&[
        "replay",
        "s.jsonl",
        "--tokens",
        "estimate",
        "--policy",
        "newest:2000",
        "--pricing",
        "prices.toml",
    ]);
    insta::assert_snapshot!(text, @r#"
    pi session, 18 messages, 9 turns, 2,929 tokens, claude-sonnet-4-5
    counted by estimate (4 / 3.5 characters)
    prices of claude-sonnet-4-5 (2000-01-01): cache read × 0.1, write × 1.25, life 300 s

    policy           tokens sent    %   cost $    %  work reuse  runs breaks fetches
    full                  13,141 100%   0.0188 100% 1.000 100.0 100.0      0       0
    newest:2000           10,999  84%   0.0329 175% 2.244   0.0 100.0      3       1

           █ sent anew  ▒ from the cache  · full history  ╳ prefix broke

     turn                                                              tokens
        0  █                                                               21
        1  ████████                                                       373
        2  ███████████████                                                735
        3  ██████████████████████                                       1,097
        4  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█████████                                1,459
        5  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█████████                         1,821
        6 ╳████████████████████████████████████·······                  1,831
        7 ╳████████████████████████████████████··············           1,831
        8 ╳████████████████████████████████████····················     1,831
    "#);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn policies_are_compared() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(12, 30));
    let policies = ["plimsoll", "window", "clear-tool-uses:2000,2", "newest:3000", "full"];
    let mut arguments = vec!["replay", "s.jsonl", "--tokens", "estimate"];
    arguments.extend(policies.iter().flat_map(|policy| ["--policy", *policy]));
    let found = environment.json(&arguments);
    let names: Vec<&str> = found["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, policies);
    assert_eq!(found["full"]["totals"]["turns"], 13);
    assert_eq!(found["policies"][4]["cost_ratio"], 1.0);
}

#[test]
fn contexts_are_one_line_a_turn() {
    let environment = Environment::new();
    environment.write("s.json", sessions::openai(3, 5));
    environment.data(&["replay", "s.json", "--policy", "full", "--contexts", "c.jsonl"]);
    let contexts = environment.read("c.jsonl");
    let lines: Vec<serde_json::Value> =
        contexts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        (&lines[0]["turn"], lines[0]["messages"].as_array().map(Vec::len)),
        (&0.into(), Some(2))
    );
    assert_eq!(lines[1]["messages"][2]["text"], "Part 0 is next.\nsearch {\"part\":0}");
}

#[test]
fn the_page_holds_nothing_that_acts() {
    let environment = Environment::new();
    environment.write("hostile.json", sessions::hostile());
    let ran = environment.run(&[
        "replay",
        "hostile.json",
        "--html",
        "page.html",
        "--policy",
        "window",
        "--policy",
        "newest:2000",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = environment.read("page.html");
    assert!(page.contains("alert(1)"), "the session's text is on the page");
    for bad in ["<script", "</script", "<img", "onerror=alert(2)>", "\u{0}", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    assert_eq!(page.matches("<style").count(), 1);
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(!page.contains(" style="), "the policy would ignore it");
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing is fetched");
}

#[test]
fn the_page_has_a_row_for_every_turn_and_policy() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(9, 30));
    environment.data(&[
        "replay",
        "s.jsonl",
        "--html",
        "p.html",
        "--policy",
        "plimsoll",
        "--policy",
        "newest:2000",
    ]);
    let page = environment.read("p.html");
    for policy in 0..2 {
        for turn in 0..10 {
            assert!(page.contains(&format!("<tr id=\"p{policy}t{turn}\">")), "{policy} {turn}");
            assert!(page.contains(&format!("href=\"#p{policy}t{turn}\"")), "{policy} {turn}");
        }
    }
    assert_eq!(page.matches("<figure").count(), 2);
}

#[test]
fn a_session_without_a_turn_has_a_page_too() {
    let environment = Environment::new();
    environment.write("s.json", r#"[{"role": "user", "content": "Is anybody there?"}]"#);
    environment.data(&["replay", "s.json", "--html", "p.html"]);
    assert!(environment.read("p.html").contains("no turn"));
}
