use crate::said;

fn phases(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  - {{{line}}}\n")).collect();
    format!("cascade_id: c\nphases:\n{}", lines.concat())
}

#[test]
fn targets_and_sources_that_are_no_phases_are_named() {
    let text = phases(&[
        "name: draft, instructions: x, handoffs: [reviw]",
        "name: review, instructions: y, context: {from: [drafts]}, inject_from: []",
        "name: ship, tool: t, routing: {ok: nowhere}, on_error: oops",
    ]);
    assert_eq!(
        said(&text),
        "3:47: error: phases[0].handoffs: there is no phase `reviw`; did you mean `review`?\n\
         4:54: error: phases[1].context.from[0]: there is no phase `drafts`; did you mean `draft`?\n\
         5:41: error: phases[2].routing: there is no phase `nowhere`\n\
         5:61: error: phases[2].on_error: there is no phase `oops`"
    );
}

#[test]
fn a_phase_sees_only_what_has_run() {
    let text = phases(&[
        "name: a, instructions: x, context: {from: [b]}",
        "name: b, instructions: y, inject_from: [b]",
    ]);
    assert_eq!(
        said(&text),
        "3:49: error: phases[0].context.from[0]: `b` can only run later than `a`; a phase sees phases that have run\n\
         4:46: error: phases[1].inject_from[0]: a phase cannot see itself"
    );
    // A handoff that comes back makes the later phase an earlier one.
    let text = phases(&[
        "name: a, instructions: x, context: {from: [b]}",
        "name: b, instructions: y, handoffs: [a]",
    ]);
    assert!(!said(&text).contains("error"), "{}", said(&text));
}

#[test]
fn a_cycle_without_a_bound_warns_and_says_the_bound() {
    let text = phases(&[
        "name: a, instructions: x, handoffs: [b]",
        "name: b, instructions: y, handoffs: [a]",
    ]);
    assert_eq!(
        said(&text),
        "4:42: warning: phases[1]: `b` can hand back to `a` again and again: each phase runs at most 10 times; `max_visits` of the cascade sets another bound"
    );
    assert_eq!(
        said(
            &text
                .replace("cascade_id: c", "{cascade_id: c}")
                .replace("{cascade_id: c}", "cascade_id: c\nmax_visits: 3")
        ),
        ""
    );
}

#[test]
fn injecting_into_a_chosen_context_warns() {
    let text = phases(&[
        "name: a, instructions: x",
        "name: b, instructions: y, context: {from: []}, inject_from: [a]",
    ]);
    assert!(said(&text).contains("its sources belong into `context.from`"), "{}", said(&text));
}

#[test]
fn a_phase_has_something_to_do() {
    assert_eq!(
        said(&phases(&["name: a"])),
        "3:5: error: phases[0]: a phase has `instructions` for a model, or a `tool`"
    );
    assert_eq!(said(&phases(&["name: a, hitl: '<p>'"])), "", "a person answers");
    assert!(said(&phases(&["name: a, rag: {directory: d}"])).contains("it does nothing"));
    assert!(
        said(&phases(&["name: a, instructions: x, tool: t"]))
            .contains("the tool is called, and no model")
    );
    assert!(said("cascade_id: c\nphases: []").contains("at least one phase"));
}
