//! Anchors: messages that are always included.

use std::collections::BTreeSet;

use crate::message::Role;

use super::{AnchorConfig, AnchorKind, CardCandidate};

/// Marks the candidates that `config` always includes, beside those that are anchors already.
///
/// `phases` are those that ran, in order, `current` the one that runs, if any. `output` is the last answer of each phase of
/// `from_phases`, `input` the first thing that the user said, `callouts` and `errors` those of all phases that ran. Without
/// phases the whole session counts as the current one, so that its last turns are the window.
pub fn mark_anchors(
    candidates: &mut [CardCandidate],
    config: &AnchorConfig,
    phases: &[String],
    current: Option<&str>,
) {
    let includes = |kind| config.include.contains(&kind);
    let named = resolved(&config.from_phases, phases);
    let mut anchors = BTreeSet::new();
    let mut mark_last = |of: &dyn Fn(&CardCandidate) -> bool,
                         oldest: bool,
                         candidates: &[CardCandidate]| {
        let key = |at: &usize| (candidates[*at].at, candidates[*at].turn, *at);
        let matching = (0..candidates.len()).filter(|at| of(&candidates[*at]));
        anchors.extend(if oldest { matching.min_by_key(key) } else { matching.max_by_key(key) });
    };
    if includes(AnchorKind::Input) {
        mark_last(&|it| it.role == Role::User, true, candidates);
    }
    if includes(AnchorKind::Output) {
        for phase in &named {
            let is_answer = |it: &CardCandidate| {
                it.role == Role::Assistant && it.phase.as_deref() == Some(phase)
            };
            mark_last(&is_answer, false, candidates);
        }
    }
    let ran = |it: &CardCandidate| {
        it.phase.as_deref().is_none_or(|of| Some(of) == current || phases.iter().any(|p| p == of))
    };
    let turns: BTreeSet<u32> = candidates
        .iter()
        .filter(|it| it.phase.as_deref() == current)
        .filter_map(|it| it.turn)
        .collect();
    let first_turn = turns
        .iter()
        .rev()
        .nth((config.window as usize).saturating_sub(1))
        .or(turns.first())
        .filter(|_| config.window > 0)
        .copied();
    for (at, it) in candidates.iter().enumerate() {
        let in_window = it.phase.as_deref() == current
            && first_turn.is_some_and(|first| it.turn.is_some_and(|turn| turn >= first));
        let is_anchor = in_window
            || (includes(AnchorKind::Callouts) && it.is_callout && ran(it))
            || (includes(AnchorKind::Errors) && it.is_error && ran(it));
        if is_anchor {
            anchors.insert(at);
        }
    }
    for at in anchors {
        candidates[at].is_anchor = true;
    }
}

/// Returns the phases that are meant, in the order in which they ran.
fn resolved<'a>(from: &[String], phases: &'a [String]) -> Vec<&'a str> {
    let meant = |at: usize, phase: &str| {
        from.iter().any(|name| match name.as_str() {
            "previous" => at + 1 == phases.len(),
            "first" => at == 0,
            "all" => true,
            name => name == phase,
        })
    };
    let all = phases.iter().enumerate();
    all.filter(|(at, phase)| meant(*at, phase)).map(|(_, phase)| phase.as_str()).collect()
}
