use crate::{cascade, phase, said, told};

#[test]
fn mistakes_of_syntax_have_their_place() {
    assert_eq!(
        told("{\"cascade_id\": \"c\",\n \"phases\": [}", "c.json").split(": ").next(),
        Some("2:13")
    );
    assert!(said("cascade_id: [\nphases: }").contains("invalid YAML"), "{}", said("a: [\nb: }"));
    assert_eq!(said(""), "1:1: error: the file is empty");
    assert_eq!(told("", "c.json"), "1:1: error: the file is empty");
    assert_eq!(said("- a"), "1:1: error: expected a map, found a list");
}

#[test]
fn json_may_have_comments_and_trailing_commas_with_a_warning() {
    let text = "{\n// why\n\"cascade_id\": \"c\", \"phases\": [{\"name\": \"a\", \"instructions\": \"x\"},]}";
    assert!(
        told(text, "c.json").starts_with("2:1: warning: JSON has no comments"),
        "{}",
        told(text, "c.json")
    );
}

#[test]
fn a_key_that_stands_twice_is_an_error() {
    let text = phase("instructions: x\nname: b");
    assert_eq!(
        said(&text),
        "5:5: error: the key `name` stands here twice\n5:5: error: phases[0]: `name` repeats `name`"
    );
    let json = r#"{"cascade_id": "c", "cascade_id": "d", "phases": []}"#;
    assert!(told(json, "c.json").contains("1:21: error: the key `cascade_id` stands here twice"));
}

#[test]
fn switches_of_yaml_1_1_are_switches() {
    let text = phase("instructions: x\ncontext: {from: [], include_input: no}");
    assert!(!cascade(&text).phases[0].context.as_ref().unwrap().include_input);
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "cascade_id: c\nphases:\n  - &base\n    name: a\n    instructions: x\n    rules: &rules {max_turns: 3}\n  - <<: *base\n    name: b\n  - {name: d, instructions: y, rules: {<<: *rules, max_attempts: 2}}\n";
    let cascade = cascade(text);
    assert_eq!(cascade.phases[1].instructions, cascade.phases[0].instructions);
    assert_eq!(cascade.phases[1].rules, cascade.phases[0].rules);
    let rules = &cascade.phases[2].rules;
    assert_eq!(
        (rules.max_turns.as_ref().unwrap().fixed(), rules.max_attempts.as_ref().unwrap().fixed()),
        (Some(3), Some(2))
    );
}

#[test]
fn what_expands_without_end_is_refused() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for n in 1..12 {
        let nine = vec![format!("*a{}", n - 1); 9].join(", ");
        laughs = format!("{laughs}a{n}: &a{n} [{nine}]\n");
    }
    assert!(said(&laughs).contains("with aliases expanded"), "{}", said(&laughs));
    assert!(said("a: &a [*a]").contains("inside its own anchor"), "{}", said("a: &a [*a]"));
    let deep = "[".repeat(100_000);
    assert!(said(&deep).contains("recursion limit"), "{}", said(&deep));
    let blocks: Vec<String> = (0..100).map(|depth| " ".repeat(depth) + "- \n").collect();
    let blocks = blocks.concat();
    assert!(said(&blocks).contains("more than 64 levels"), "{}", said(&blocks));
    assert!(told(&deep, "c.json").contains("error"));
    let nested = "{\"a\": ".repeat(100) + "1" + &"}".repeat(100);
    assert!(told(&nested, "c.json").contains("more than 64 levels"), "{}", told(&nested, "c.json"));
}

#[test]
fn the_first_document_counts() {
    let text = phase("instructions: x") + "---\ncascade_id: d\n";
    assert_eq!(said(&text), "5:1: warning: only the first document of the file is read");
}
