//! Whole while fresh, then settled: large results become excerpts for good as soon as that pays.

use std::sync::Arc;

use crate::cost::Prices;
use crate::hash::Ref;
use crate::message::Role;
use crate::plan::{Plan, Reason, Sent, Treatment, newest, sent_tokens};
use crate::policy::Bounds;
use crate::render;
use crate::transcript::{Position, Transcript};

/// What settling remembers from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The excerpt of each message, once it was made.
    forms: Vec<Option<Arc<Sent>>>,
}

pub(crate) fn settle(
    transcript: &Transcript,
    end: Position,
    bounds: &Bounds,
    prices: &Prices,
    cold: bool,
    settled: &mut Settled,
    plan: &mut Plan,
) {
    settled.forms.resize(end, None);
    let fresh = newest(transcript, end);
    let mut best = 0.0;
    let mut start = None;
    let mut removed = 0.0;
    let mut standing = 0.0;
    let _ = cold;
    for position in (0..fresh).rev() {
        let entry = &transcript.entries()[position];
        let now = f64::from(sent_tokens(&plan.decisions()[position]));
        standing += now;
        if entry.message.role != Role::Tool
            || entry.tokens < bounds.settle.least
            || plan.decisions()[position].treatment != Treatment::Keep
        {
            continue;
        }
        let form = settled.forms[position].get_or_insert_with(|| {
            let message = render::replace_results(&entry.message, |result| {
                render::cut_middle(&result.text, 1200, Ref::message(entry.hash))
            });
            Arc::new(message.map_or_else(
                || Sent::whole(position, entry),
                |message| Sent::rendered(Some(position), message, transcript.tokenizer()),
            ))
        });
        removed += now - f64::from(form.tokens);
        let gain = removed * prices.cache_read * f64::from(bounds.settle.calls_expected)
            - (standing - removed).max(0.0) * (prices.cache_write - prices.cache_read);
        if gain > best {
            best = gain;
            start = Some(position);
        }
    }
    let Some(start) = start else { return };
    for position in start..fresh {
        if let Some(form) = settled.forms[position].clone() {
            plan.reduce(transcript, position, Treatment::Excerpt, Reason::Settled, form);
        }
    }
}
