use plimsoll_cascade::Values;
use serde_json::json;

use crate::{cascade, phase, said};

#[test]
fn mistakes_in_templates_have_the_place_in_the_file() {
    // A literal block: line and column of the file.
    let text = phase("instructions: |\n  Hello\n  you {{ input.x + }}");
    assert!(
        said(&text).starts_with("6:24: error: phases[0].instructions: invalid template: "),
        "{}",
        said(&text)
    );
    // Else the place of the text, and the line in it.
    let text = phase("instructions: \"Hello\\n{% if x %}\"");
    assert!(
        said(&text).starts_with("4:19: error: phases[0].instructions: invalid template: "),
        "{}",
        said(&text)
    );
    assert!(said(&text).contains("(line 2"), "{}", said(&text));
}

#[test]
fn inputs_that_are_not_listed_and_filters_that_are_not_there_warn() {
    let text = "inputs_schema: {topic: What about}\n".to_owned()
        + &phase(
            "instructions: '{{ input.topik }} {{ input.topic | uper }} {{ input.other | default(1) }}'",
        );
    assert_eq!(
        said(&text),
        "5:19: warning: phases[0].instructions: there is no filter `uper`; did you mean `upper`?\n\
         5:19: warning: phases[0].instructions: `inputs_schema` does not list `topik`; did you mean `input.topic`?"
    );
}

#[test]
fn a_template_of_a_cascade_renders_with_values() {
    let cascade = cascade(&phase(
        "instructions: 'On {{ input.topic }}: {{ outputs.before.text }}{{ state.x }}.'\ncondition: '{{ state.go }}'",
    ));
    let mut values = Values::default();
    values.set("input", &json!({"topic": "{{ 1 + 1 }}"}));
    values.set("state", &json!({"go": false}));
    let phase = &cascade.phases[0];
    assert_eq!(phase.instructions.as_ref().unwrap().render(&values).unwrap(), "On {{ 1 + 1 }}: .");
    assert!(!phase.condition.as_ref().unwrap().is_true(&values).unwrap());
    values.set("state", &json!({"go": "yes"}));
    assert!(phase.condition.as_ref().unwrap().is_true(&values).unwrap());
}
