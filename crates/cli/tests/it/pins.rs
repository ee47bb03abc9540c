//! `plimsoll pin`, `plimsoll drop`, and what `explain` tells of both.

use crate::environment::Environment;
use crate::sessions;

/// Returns an environment with a session, the turn of it that is explained, and the ref of its first result.
fn explained(more: &[&str]) -> (Environment, serde_json::Value, String) {
    let environment = Environment::new();
    environment.write("s.jsonl", sessions::pi(6, 30));
    let plain = ["explain", "s.jsonl", "--tokens", "estimate", "--budget", "900"];
    let before = environment.json(&plain);
    let rows = before["messages"].as_array().expect("messages");
    let result = rows.iter().find(|row| !row["kept"].is_null()).expect("a shortened result");
    let reference = result["ref"].as_str().expect("a ref").to_owned();
    let more = more.iter().map(|one| if *one == "REF" { &*reference } else { *one });
    let arguments: Vec<&str> = plain.into_iter().chain(more).collect();
    let found = environment.json(&arguments);
    (environment, found, reference)
}

fn row<'a>(found: &'a serde_json::Value, reference: &str) -> &'a serde_json::Value {
    let rows = found["messages"].as_array().expect("messages");
    rows.iter().find(|row| row["ref"] == reference).expect("the message")
}

#[test]
fn a_pinned_message_is_explained_as_whole() {
    let (_, found, reference) = explained(&["--pin", "REF"]);
    assert_eq!(row(&found, &reference)["treatment"], "keep", "{found}");
    assert_eq!(found["receipt"]["pins"]["pinned"][0]["ref"], reference, "{found}");
}

#[test]
fn a_dropped_message_is_explained_as_gone() {
    let (_, found, reference) = explained(&["--drop", "REF"]);
    let dropped = row(&found, &reference);
    assert_ne!(dropped["treatment"], "keep", "{dropped}");
    assert_eq!(found["receipt"]["pins"]["dropped"][0]["ref"], reference, "{found}");
}

#[test]
fn wishes_are_kept_with_the_stored_session_and_taken_back() {
    let (environment, _, reference) = explained(&[]);
    environment.data(&["import", "s.jsonl", "--store", "s.db"]);
    let session = environment.json(&["log", "--store", "s.db"]);
    let session = session[0]["session"].as_str().expect("a session").to_owned();
    for (command, undo, wish) in
        [("pin", false, "pin"), ("drop", false, "drop"), ("drop", true, "undo")]
    {
        let mut arguments = vec![command, &session, &reference, "--store", "s.db"];
        arguments.extend(undo.then_some("--undo"));
        let kept = environment.json(&arguments);
        assert_eq!((&kept["wish"], &kept["ref"]), (&wish.into(), &(*reference).into()), "{kept}");
    }
    for (arguments, said) in [
        (["pin", &session, "ref:message:zz"], "is no ref"),
        (["pin", "nobody", &reference], "the session nobody"),
        (["drop", &session, "ref:message:0123456789abcdef"], "0123456789abcdef"),
    ] {
        let ran = environment.run(&[&arguments[..], &["--store", "s.db"]].concat());
        assert!(ran.code != 0 && ran.stderr.contains(said), "{} {}", ran.code, ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}
