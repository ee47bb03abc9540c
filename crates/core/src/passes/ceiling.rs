//! The ceiling: reductions, least lossy first, for a context that exceeds its budget.

use std::sync::Arc;

use crate::choose::{Reason, shrink};
use crate::excerpt::excerpt_writing;
use crate::hash::Ref;
use crate::message::Role;
use crate::plan::{Plan, Sent, Treatment, newest};
use crate::policy::PreserveErrors;
use crate::transcript::{Position, Transcript};

use super::stub_of;

/// The share of the budget to which a batch goes down, so that the prefix does not break again at the next turn.
///
/// Measured with a budget of 20,000 tokens on the development sessions: 0.85, 0.7, 0.55 and 0.4 give a mean work of .74,
/// .70, .69 and .67; lower ones leave out more than they save in clarity.
const AFTER_BATCH: f64 = 0.5;

/// Tokens of the smallest message that is worth a stub; the stub's own ref and figures take about 40.
const LEAST_STUBBED: u32 = 40;

/// The share of an old result, or of a text that the model wrote, that its excerpt keeps; as in [`crate::policy::Settle`].
const KEPT: f64 = 0.1;

/// Brings the plan to at most `budget` tokens if it can.
///
/// In one batch, oldest first: old results become stubs; then the model's own long writing is cut; then old
/// exchanges and messages are left out. System messages, the task and what the model waits for stay: they are the smallest
/// context that means anything. `lookups` returns whether the model can look up the original behind a ref.
pub(crate) fn fit(
    transcript: &Transcript,
    end: Position,
    budget: u64,
    lookups: bool,
    plan: &mut Plan,
) {
    if plan.tokens() <= budget {
        return;
    }
    let target = (budget as f64 * AFTER_BATCH) as u64;
    let fresh = newest(transcript, end);
    let is_asked = |at: &Position| transcript.entries()[*at].message.role == Role::User;
    // A shorter message has no shorter stub.
    let is_long = |plan: &Plan, at: Position| {
        let decision = &plan.decisions()[at];
        decision.treatment < Treatment::Stub && decision.form.tokens > LEAST_STUBBED
    };
    let of_role =
        |role| (0..fresh).filter(move |at| transcript.entries()[*at].message.role == role);
    let original = |at: Position| lookups.then(|| Ref::message(transcript.entries()[at].hash));
    give_up(plan, target, of_role(Role::Tool), |plan, position| {
        if is_long(plan, position)
            && let Some(form) = stub_of(transcript, position, PreserveErrors::Lines)
        {
            plan.reduce(transcript, position, Treatment::Stub, Reason::Ceiling, form);
        }
    });
    give_up(plan, target, of_role(Role::Assistant), |plan, position| {
        let message = &transcript.entries()[position].message;
        if let Some(form) = excerpt_writing(message, KEPT, original(position)) {
            let form = Arc::new(Sent::rendered(Some(position), form, transcript.tokenizer()));
            plan.reduce(transcript, position, Treatment::Excerpt, Reason::Ceiling, form);
        }
    });
    if plan.tokens() <= budget {
        return;
    }
    let omit = |plan: &mut Plan, position| {
        plan.omit(transcript, position, Reason::Ceiling);
    };
    // The model's messages go before those of the user, and these only as far as they must.
    give_up(plan, target, (0..fresh).filter(|at| !is_asked(at)), omit);
    give_up(plan, budget, (0..fresh).filter(is_asked), omit);
}

/// Makes the messages at `positions` smaller, one after the other, until the plan has at most `budget` tokens.
pub(crate) fn give_up(
    plan: &mut Plan,
    budget: u64,
    positions: impl IntoIterator<Item = Position>,
    mut reduce: impl FnMut(&mut Plan, Position),
) {
    let mut positions = positions.into_iter();
    shrink(plan, budget, Plan::tokens, |plan| {
        positions.next().map(|position| reduce(plan, position)).is_some()
    });
}
