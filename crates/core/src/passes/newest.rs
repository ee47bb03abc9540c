//! System prompt, task, and the newest messages that fit: the trim that most frameworks offer.

use crate::choose::Reason;
use crate::message::Role;
use crate::plan::{Plan, members};
use crate::transcript::{Position, Transcript};

use super::ceiling::give_up;

/// Leaves out the oldest messages, whole exchanges at a time, until the rest fits `budget`.
pub(crate) fn keep_newest(transcript: &Transcript, end: Position, budget: u64, plan: &mut Plan) {
    let entries = &transcript.entries()[..end];
    let first = |role| entries.iter().position(|entry| entry.message.role == role);
    for head in [first(Role::System), first(Role::User)].into_iter().flatten() {
        plan.protect(head, Reason::Protected);
    }
    // The model waits for the last exchange; without it the request would mean nothing.
    let is_awaited = |at: &Position| members(transcript, *at, end).contains(&(end - 1));
    give_up(plan, budget, (0..end).take_while(|at| !is_awaited(at)), |plan, position| {
        if !plan.is_protected(position) {
            plan.omit(transcript, position, Reason::NotNewest);
        }
    });
}
