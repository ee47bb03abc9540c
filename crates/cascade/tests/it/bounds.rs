use crate::{phase, said};

#[test]
fn numbers_stay_in_their_bounds() {
    for (keys, expected) in [
        (
            "rules: {max_turns: 0}",
            "5:24: error: phases[0].rules.max_turns: expected 1 to 1000, found 0",
        ),
        (
            "rules: {max_attempts: 1000}",
            "5:27: error: phases[0].rules.max_attempts: expected 1 to 100, found 1000",
        ),
        (
            "soundings: {factor: 0}",
            "5:25: error: phases[0].soundings.factor: expected 1 to 100, found 0",
        ),
        (
            "rules: {max_turns: -1}",
            "5:24: error: phases[0].rules.max_turns: expected a whole number of 0 to 4294967295, found `-1`",
        ),
    ] {
        assert_eq!(said(&phase(&format!("instructions: x\n{keys}"))), expected);
    }
}

#[test]
fn a_loop_without_a_bound_says_which_it_gets() {
    assert!(
        said(&phase("instructions: x\nrules: {loop_until: ok}"))
            .contains("the loop has no `max_attempts`: it ends after 3")
    );
}

#[test]
fn schemas_are_json_schemas() {
    let text = phase("instructions: x\noutput_schema: {type: objekt}");
    assert!(
        said(&text).starts_with("5:20: error: phases[0].output_schema: invalid JSON Schema"),
        "{}",
        said(&text)
    );
    let text = "inputs_schema: {type: object, properties: {a: {type: strng}}}\n".to_owned()
        + &phase("instructions: x");
    assert!(said(&text).contains("error: inputs_schema: invalid JSON Schema"), "{}", said(&text));
}

#[test]
fn patterns_are_regular_expressions() {
    let text = phase("instructions: x\noutput_extraction: {pattern: '(a', store_as: s}");
    assert_eq!(
        said(&text),
        "5:34: error: phases[0].output_extraction.pattern: invalid regular expression: error: unclosed group"
    );
    let cascade = crate::cascade(&phase(
        "instructions: x\noutput_extraction: {pattern: '<a>(.*?)</a>', store_as: s}",
    ));
    let pattern = cascade.phases[0].output_extraction.as_ref().unwrap().pattern.regex().unwrap();
    assert_eq!(&pattern.captures("<a>1\n2</a>").unwrap()[1], "1\n2");
}
