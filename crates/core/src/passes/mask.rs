//! The sliding window of `auto-context.md`: old results masked, and beyond the window calls and reasoning shortened too.

use std::sync::Arc;

use crate::attempts::Attempts;
use crate::choose::Reason;
use crate::hash::Ref;
use crate::message::Role;
use crate::plan::{Plan, Sent, Treatment};
use crate::policy::{IntraPhase, PreserveErrors};
use crate::render;
use crate::text::mentions_error;
use crate::transcript::{Position, Transcript};

use super::{attempt_of, stub_of};

/// Characters of a long argument that stay outside the window.
const ARGUMENT_KEPT: usize = 200;

/// Masks messages that are older than the settings allow; `forms` keeps the forms of earlier turns.
///
/// Age is in turns: a message since the model last spoke has age 1.
pub(crate) fn mask(
    transcript: &Transcript,
    end: Position,
    settings: &IntraPhase,
    attempts: &Attempts,
    forms: &mut Vec<Option<Arc<Sent>>>,
    plan: &mut Plan,
) {
    forms.resize(forms.len().max(end), None);
    let now = plan.turn();
    for (position, entry) in transcript.entries()[..end].iter().enumerate() {
        let age = now - entry.turn;
        let outside = age > settings.window;
        let role = entry.message.role;
        let masked = role == Role::Tool && (outside || age > settings.mask_observations_after);
        let attempt = if settings.compress_loops {
            attempts.earlier(position, settings.loop_history_limit)
        } else {
            None
        };
        if let Some(number) = attempt
            && let Some(form) = attempt_of(transcript, position, number)
            && plan.reduce(transcript, position, Treatment::Merge, Reason::EarlierAttempt, form)
        {
            continue;
        }
        if !(masked || (outside && role == Role::Assistant)) || plan.is_protected(position) {
            continue;
        }
        if settings.preserve_errors == PreserveErrors::Keyword
            && mentions_error(&entry.message.shown())
        {
            plan.explain(position, Reason::ErrorKept);
            continue;
        }
        let (treatment, reason) = match role {
            Role::Tool if outside => (Treatment::Stub, Reason::OutsideWindow),
            Role::Tool => (Treatment::Stub, Reason::Masked),
            _ => (Treatment::Shorten, Reason::OutsideWindow),
        };
        let form = forms[position].get_or_insert_with(|| {
            shrunk(transcript, position, settings)
                .unwrap_or_else(|| Arc::new(Sent::whole(position, entry)))
        });
        if !plan.reduce(transcript, position, treatment, reason, form.clone()) {
            plan.explain(position, Reason::Small);
        }
    }
}

fn shrunk(transcript: &Transcript, position: Position, settings: &IntraPhase) -> Option<Arc<Sent>> {
    let entry = &transcript.entries()[position];
    if entry.message.role == Role::Tool {
        return stub_of(transcript, position, settings.preserve_errors);
    }
    let original = Ref::message(entry.hash);
    let message = if entry.message.calls().next().is_some() {
        // The text beside the calls, and the calls themselves.
        let text = if settings.preserve_reasoning {
            render::shorten_reasoning(&entry.message, original)
        } else {
            render::stub_called(&entry.message, original)
        };
        let message = text.as_ref().unwrap_or(&entry.message);
        render::shorten_arguments(message, ARGUMENT_KEPT, original).or(text)
    } else if settings.preserve_reasoning {
        render::shorten_reasoning(&entry.message, original)
    } else {
        render::stub_reasoning(&entry.message, original)
    }?;
    Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
}
