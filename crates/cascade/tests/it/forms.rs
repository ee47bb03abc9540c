//! The short and the long forms mean the same, and so do other names.

use plimsoll_cascade::definition::{
    Count, Include, Language, OnError, SourcePhase, Tackle, Validator, WardMode,
};

use crate::{cascade, phase, said};

fn same(short: &str, long: &str) {
    assert_eq!(cascade(&phase(short)), cascade(&phase(long)), "{short}");
}

#[test]
fn short_forms_are_long_forms() {
    let with = |keys: &str| format!("instructions: x\n{keys}");
    same(&with("context: {from: previous}"), &with("context: {from: [{phase: previous}]}"));
    same(&with("context: [first, all]"), &with("context: {from: [first, all]}"));
    same(&with("callouts: Result"), &with("callouts: {output: Result}"));
    same(
        &with("sub_cascades: [child.yaml]"),
        &with("sub_cascades: [{ref: child.yaml, context_in: true, context_out: true}]"),
    );
    same(&with("wards: [check]"), &with("wards: {post: [{validator: check, mode: blocking}]}"));
    same(&with("handoffs: a"), &with("handoffs: [{target: a}]"));
    same(&with("intra_context: true"), &with("intra_context: {enabled: true}"));
    same(&with("soundings: {models: {m: {factor: 2}}}"), &with("candidates: {models: {m: 2}}"));
    same(
        &with("context: {from: [previous], include: [state]}"),
        &with("context: {from: [{phase: previous, include: state}], include: [state]}"),
    );
}

#[test]
fn other_names_mean_the_same() {
    let text = "cascade_id: c\nphases:\n  - {name: a, instructions: x, tackle: [t], soundings: {factor: 2}}\n  - {name: b, instructions: y, context: {from: [{phase: a, messages_filter: last_turn}]}}\n";
    let other = text
        .replace("phases:", "cells:")
        .replace("phase:", "cell:")
        .replace("tackle", "skills")
        .replace("soundings", "takes")
        .replace("messages_filter", "filter");
    assert_eq!(cascade(text), cascade(&other));
}

#[test]
fn every_key_of_a_phase_is_read() {
    let cascade = cascade(&phase(
        "instructions: x\ntackle: manifest\nhandoffs: [{target: a, description: again}]\nrules: {max_turns: '{{ input.n }}', max_attempts: 4, loop_until: {bash: 'exit 0'}, loop_until_silent: yes, retry_instructions: r, turn_prompt: t, loop_until_prompt: p}\ncontext: {from: [all], exclude: [a], include_input: no}\ncontext_retention: output_only\ncontext_ttl: {tool_results: 1, images: 2, assistant: null}\noutput_extraction: {pattern: p, store_as: s, required: yes, format: json}\noutput_schema: {type: object}\nsoundings: {factor: 3, evaluator_instructions: e, max_parallel: 2}\nwards: {pre: [{validator: v, mode: retry, max_attempts: 2}]}\nmodel: m\non_error: {instructions: mend}\ntimeout: 30s\ncondition: '{{ state.x }}'",
    ));
    let phase = &cascade.phases[0];
    assert_eq!(phase.tackle, Tackle::Manifest);
    assert_eq!(phase.handoffs[0].description.as_deref(), Some("again"));
    assert!(matches!(phase.rules.max_turns, Some(Count::Template(_))));
    assert!(matches!(
        &phase.rules.loop_until,
        Some(Validator::Code { language: Language::Bash, .. })
    ));
    assert!(phase.rules.loop_until_silent);
    let context = phase.context.as_ref().unwrap();
    assert_eq!((&context.from[0].phase, context.include_input), (&SourcePhase::All, false));
    assert_eq!(context.from[0].include, [Include::Images, Include::Output]);
    let ttl = phase.context_ttl.as_ref().unwrap();
    assert_eq!((ttl.tool_results, ttl.images, ttl.assistant), (Some(1), Some(2), None));
    assert_eq!((phase.wards.pre[0].mode, phase.wards.pre[0].max_attempts), (WardMode::Retry, 2));
    assert!(matches!(phase.on_error, Some(OnError::Prompt(_))));
    assert_eq!(phase.timeout.as_deref(), Some("30s"));
}

#[test]
fn wrong_kinds_are_named_with_place_and_path() {
    assert_eq!(
        said(&phase("instructions: x\nrules: {max_turns: many}")),
        "5:24: error: phases[0].rules.max_turns: expected a whole number, found the text \"many\""
    );
    assert_eq!(
        said(&phase("instructions: x\ncontext_retention: output-only")),
        "5:24: error: phases[0].context_retention: expected `full` or `output_only`, found the text \"output-only\"; did you mean `output_only`?"
    );
    assert_eq!(
        said(&phase("instructions: [x, y]")),
        "4:19: error: phases[0].instructions: expected a text, found a list"
    );
    assert_eq!(said("cascade_id: c"), "1:1: error: a cascade needs `phases`");
}

#[test]
fn unknown_keys_warn_with_the_nearest_known_one() {
    let text = phase("instructions: x\nrules: {max_turn: 3}");
    assert_eq!(
        said(&text),
        "5:13: warning: phases[0].rules: `max_turn` is not a key of rules; did you mean `max_turns`?"
    );
    let (_, problems) = plimsoll_cascade::parse(&text, "c.yaml");
    let strict: Vec<_> = problems.into_iter().map(plimsoll_cascade::Problem::strict).collect();
    assert_eq!(strict[0].severity, plimsoll_cascade::Severity::Error);
}

#[test]
fn keys_without_support_warn_by_name_unless_they_are_off() {
    let text = phase(
        "instructions: x\nbrowser: {url: u}\nsoundings: {factor: 2, downstream_model: m, human_eval: null}\nmetadata: {a: 1}",
    );
    assert_eq!(
        said(&text),
        "5:5: warning: phases[0]: `browser` is known but not supported: a browser is a tool, as an MCP server\n6:28: warning: phases[0].soundings: `downstream_model` is known but not supported: tools have models of their own"
    );
}
