use crate::environment::Environment;
use crate::sessions;

#[test]
fn every_message_of_a_turn_has_its_reason() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(6, 30));
    let arguments =
        ["explain", "s.jsonl", "--tokens", "estimate", "--policy", "newest:2000", "--turn", "3"];
    let found = environment.json(&arguments);
    assert_eq!(found["receipt"]["turn"], 3);
    assert_eq!(found["messages"].as_array().map(Vec::len), Some(7));
    let arguments = ["explain", "s.jsonl", "--tokens", "estimate", "--budget", "900"];
    let found = environment.json(&arguments);
    let rows = found["messages"].as_array().expect("messages");
    let kept = rows.iter().map(|row| &row["kept"]).find(|kept| !kept.is_null());
    let kept = kept.expect("a shortened message");
    assert!(kept["kept"].as_u64() < kept["lines"].as_u64(), "{kept}");
    let page = environment.data(&arguments);
    assert!(page.contains("kept ") && page.contains(" of 30 lines"), "{page}");
    let original = environment.data(&["explain", "s.jsonl", "--show", "2"]);
    assert!(original.contains("quay = 0") || original.contains("ref:message:"), "{original}");
}

#[test]
fn a_turn_that_is_not_there_is_a_usage_error() {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(2, 3));
    let ran = environment.run(&["explain", "s.jsonl", "--turn", "9"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: the session has 3 turns, turn 9 is not among them; turns are counted from 0");
}
