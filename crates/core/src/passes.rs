//! Passes: each makes some messages of a plan smaller, and says why.

mod ceiling;
mod clear;
mod drop;
mod mask;
mod newest;
mod settle;
mod summarise;
mod working_set;

pub(crate) use ceiling::{fit, give_up};
pub(crate) use clear::clear_tool_uses;
pub(crate) use drop::{DropGiven, drop_named, drop_to_fit, lift};
pub(crate) use mask::mask;
pub(crate) use newest::keep_newest;
pub(crate) use settle::{Given, Settled, first_form};
pub(crate) use summarise::summarise;
pub(crate) use working_set::fit_working_set;
pub(crate) use working_set::{ArtefactLine, FactLine, Findings};

use std::sync::Arc;

use crate::choose::Reason;
use crate::hash::Ref;
use crate::plan::{Plan, Sent, newest};
use crate::policy::PreserveErrors;
use crate::render;
use crate::transcript::{Position, Transcript};

/// Returns the short form of an earlier attempt of a call.
pub(crate) fn attempt_of(
    transcript: &Transcript,
    position: Position,
    number: u32,
) -> Option<Arc<Sent>> {
    let entry = &transcript.entries()[position];
    let message = render::replace_results(&entry.message, |result| {
        render::attempt_text(result, number, Ref::message(entry.hash))
    })?;
    Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
}

/// Returns the stub of a tool message, or `None` where there is no result in it.
pub(crate) fn stub_of(
    transcript: &Transcript,
    position: Position,
    errors: PreserveErrors,
) -> Option<Arc<Sent>> {
    let entry = &transcript.entries()[position];
    let original = Ref::message(entry.hash);
    let message = render::replace_results(&entry.message, |result| {
        let call = transcript.call_of(position, &result.call_id);
        render::stub_text(result, call, original, errors != PreserveErrors::Off)
    })?;
    Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
}

/// Protects system messages and the task, which no policy changes.
pub(crate) fn protect_head(transcript: &Transcript, end: Position, plan: &mut Plan) {
    for position in transcript.head(end) {
        plan.protect(position, Reason::Protected);
    }
}

/// Protects the head, and the messages since the model last spoke.
pub(crate) fn protect_ends(transcript: &Transcript, end: Position, plan: &mut Plan) {
    protect_head(transcript, end, plan);
    for position in newest(transcript, end)..end {
        plan.protect(position, Reason::Fresh);
    }
}
