//! The ceiling: what is done, least lossy first, when a context would pass its budget.

use crate::message::Role;
use crate::plan::{Plan, Reason, Treatment, newest};
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

/// Brings the plan below `budget`; returns by how many tokens it still exceeds it, 0 where it fits.
///
/// Old results become stubs in one batch, oldest first; then old exchanges and messages are left out. System messages, the
/// task and what the model waits for stay: they are the smallest context that means anything.
pub(crate) fn fit(transcript: &Transcript, end: Position, budget: u64, plan: &mut Plan) -> u64 {
    if plan.tokens() <= budget {
        return 0;
    }
    let target = (budget as f64 * AFTER_BATCH) as u64;
    let fresh = newest(transcript, end);
    for position in 0..fresh {
        if plan.tokens() <= target {
            break;
        }
        let decision = &plan.decisions()[position];
        // A shorter message has no shorter stub.
        if decision.treatment < Treatment::Stub
            && decision.form.tokens > LEAST_STUBBED
            && transcript.entries()[position].message.role == Role::Tool
            && let Some(form) = stub_of(transcript, position, PreserveErrors::Lines)
        {
            plan.reduce(transcript, position, Treatment::Stub, Reason::Ceiling, form);
        }
    }
    if plan.tokens() <= budget {
        return 0;
    }
    // What was said and done goes before what the user asked for, and that only as far as it must.
    for (asked, enough) in [(false, target), (true, budget)] {
        for position in 0..fresh {
            if plan.tokens() <= enough {
                break;
            }
            if (transcript.entries()[position].message.role == Role::User) == asked {
                plan.omit(transcript, position, Reason::Ceiling);
            }
        }
    }
    plan.tokens().saturating_sub(budget)
}
