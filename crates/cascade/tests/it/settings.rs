//! What a phase says goes before what the cascade says, and that before the defaults.

use plimsoll_cascade::definition::Strategy;

use crate::cascade;

const PHASES: &str = "phases:\n  - {name: a, instructions: x, intra_context: {window: 2}}\n  - {name: b, instructions: y, context: {mode: auto, anchors: {window: 5}, selection: {max_tokens: 7}}}\n";

#[test]
fn settings_within_a_phase() {
    let plain = cascade(&format!("cascade_id: c\n{PHASES}"));
    assert!(plain.intra_phase(&plain.phases[1]).is_none(), "nothing is said");
    let own = plain.intra_phase(&plain.phases[0]).unwrap();
    assert_eq!((own.window, own.mask_observations_after, own.loop_history_limit), (2, 3, 3));
    let text = format!(
        "cascade_id: c\nauto_context: {{intra_phase: {{window: 9, mask_observations_after: 1, preserve_errors: keyword, min_masked_size: 50}}}}\n{PHASES}"
    );
    let shared = cascade(&text);
    let own = shared.intra_phase(&shared.phases[0]).unwrap();
    assert_eq!((own.window, own.mask_observations_after), (2, 1));
    assert_eq!(shared.intra_phase(&shared.phases[1]).unwrap().window, 9);
    assert_eq!(
        (plain.min_masked_size(&plain.phases[0]), shared.min_masked_size(&shared.phases[0])),
        (200, 50)
    );
}

#[test]
fn settings_between_phases() {
    let plain = cascade(&format!("cascade_id: c\n{PHASES}"));
    assert!(plain.selection(&plain.phases[0]).is_none());
    let found = plain.selection(&plain.phases[1]).unwrap();
    assert_eq!(
        (found.window, found.max_tokens, found.max_messages, found.strategy),
        (5, 7, 50, Strategy::Hybrid)
    );
    assert!((found.similarity_threshold - 0.7).abs() < 1e-9);
    let text = format!(
        "cascade_id: c\nauto_context: {{inter_phase: {{enabled: no, strategy: llm, selection: {{max_messages: 3}}, anchors: {{window: 1, include: [errors]}}}}}}\n{PHASES}"
    );
    let shared = cascade(&text);
    let found = shared.selection(&shared.phases[1]).unwrap();
    assert_eq!(
        (found.enabled, found.strategy, found.max_messages, found.window, found.include.len()),
        (false, Strategy::Llm, 3, 5, 1)
    );
}
