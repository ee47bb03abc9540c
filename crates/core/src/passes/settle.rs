//! Whole while fresh, then settled for good as soon as that pays under the provider's real rules.
//!
//! An old result may become an excerpt. The saving at every further call is weighed against the chance that a hidden line is
//! needed again, times the price of fetching it back. A change breaks the prefix, so changes are made from a place onward,
//! where their sum exceeds the cost of writing the later messages again. The account pays for a break from earlier savings
//! before: a session never costs more than without us by more than a small allowance.

mod account;
mod holders;
mod need;

use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use crate::attempts::Attempts;
use crate::choose::Reason;
use crate::cost::Prices;
use crate::excerpt::{ContentKind, Cut, ExcerptSource, asks_for_size, excerpt};
use crate::file_access::{Access, file_access};
use crate::hash::Ref;
use crate::message::{Role, ToolResult};
use crate::names::Key;
use crate::need::fetch_price;
use crate::plan::{Plan, Sent, Treatment, newest, sent_tokens};
use crate::policy::{Bounds, PreserveErrors};
use crate::said_once::{LineAt, SaidOnce};
use crate::terms::Terms;
use crate::text::{is_cut_by_tool, mentions_error};
use crate::transcript::{Entry, Position, Transcript};

use super::attempt_of;
use account::Account;
use need::{Class, Needs, class};

/// The input of settling beside the transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) bounds: &'a Bounds,
    pub(crate) terms: &'a Terms,
    /// As this client pays.
    pub(crate) prices: &'a Prices,
    pub(crate) attempts: &'a Attempts,
    /// Whether the cache is gone, so that everything is written anyway.
    pub(crate) cold: bool,
}

/// The memory of settling from turn to turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settled {
    needs: Needs,
    account: Account,
    /// For each message, the excerpt that it could have, once it was asked for.
    excerpts: Vec<Option<Excerpt>>,
    /// Messages that the provider has seen.
    sent: Position,
}

/// The excerpt of a message, with the lines that it had to keep.
#[derive(Debug, Clone)]
struct Excerpt {
    pointed_at: Vec<LineAt>,
    form: Option<Arc<Sent>>,
}

/// Finds for each message whether an entry of the cache ends with it.
type EntryEnds<'a> = &'a dyn Fn(&Plan) -> Vec<bool>;

/// A change that would gain something.
#[derive(Debug, Clone)]
struct SettleCandidate {
    position: Position,
    form: Arc<Sent>,
    treatment: Treatment,
    reason: Reason,
}

impl Settled {
    /// Reads the messages since the last request, and charges the account for hidden lines that the model used.
    pub(crate) fn read(
        &mut self,
        transcript: &Transcript,
        end: Position,
        given: &Given<'_>,
        said: &SaidOnce,
        plan: &Plan,
    ) {
        let context = context_tokens(given.terms, plan);
        self.excerpts.resize(end.max(self.excerpts.len()), None);
        for position in self.needs.seen()..end {
            let tokens = plan.decisions()[position].form.tokens;
            let settings = &given.bounds.settle;
            let fetched = self.needs.read(transcript, position, tokens, settings, said);
            for position in fetched {
                let price = fetch_price(given.prices, context, self.needs.tokens(position));
                self.account.spend(price);
            }
        }
    }

    /// Follows a change that another pass made.
    pub(crate) fn follow(&mut self, plan: &Plan, said: &mut SaidOnce) {
        for change in plan.changes().iter().filter(|change| change.reason == Reason::Ceiling) {
            let decision = &plan.decisions()[change.position];
            let shown = match decision.treatment {
                Treatment::Omit => String::new(),
                _ => decision.form.message.shown(),
            };
            self.needs.hide(change.position, &shown);
            said.changed(change.position, &shown);
        }
    }

    /// Settles those messages in `range` for which it pays.
    pub(crate) fn settle(
        &mut self,
        transcript: &Transcript,
        range: Range<Position>,
        given: &Given<'_>,
        ends: EntryEnds<'_>,
        said: &mut SaidOnce,
        plan: &mut Plan,
    ) {
        let settings = &given.bounds.settle;
        let seen = std::mem::replace(&mut self.sent, range.end);
        self.account.request(transcript, plan, given, seen);
        let context = context_tokens(given.terms, plan);
        if context < settings.floor as f64 || range.start >= seen {
            return;
        }
        let chosen = self.choose(transcript, range, given, (seen, ends), said, plan);
        for candidate in chosen {
            let SettleCandidate { position, form, treatment, reason } = candidate;
            if plan.reduce(transcript, position, treatment, reason, form.clone()) {
                let shown = form.message.shown();
                self.needs.hide(position, &shown);
                said.changed(position, &shown);
            }
        }
    }

    /// Returns the smaller form that an old result could have.
    ///
    /// Lines behind a pointer stay for as long as the message that points to them, or go with it.
    fn form_of(
        &mut self,
        transcript: &Transcript,
        position: Position,
        given: &Given<'_>,
        said: &SaidOnce,
        candidates: &[SettleCandidate],
    ) -> Option<(Arc<Sent>, Treatment, Reason)> {
        let intra = &given.bounds.intra_phase;
        let stands = |from: Position| {
            !self.needs.is_hidden(from)
                && candidates.iter().all(|candidate| candidate.position != from)
        };
        let pointed_at = said.pointed_at(position, stands)?;
        if pointed_at.is_empty()
            && intra.compress_loops
            && let Some(number) = given.attempts.earlier(position, intra.loop_history_limit)
            && let Some(form) = attempt_of(transcript, position, number)
        {
            return Some((form, Treatment::Merge, Reason::EarlierAttempt));
        }
        let reason = if given.cold { Reason::Cold } else { Reason::Settled };
        let known = self.excerpts.get_mut(position)?;
        if known.as_ref().is_none_or(|known| known.pointed_at != pointed_at) {
            let stands = |key| self.needs.stands_elsewhere(key, position);
            let form = excerpt_of(transcript, position, given, said, &pointed_at, &stands);
            *known = Some(Excerpt { pointed_at, form });
        }
        let form = known.as_ref()?.form.clone()?;
        Some((form, Treatment::Excerpt, reason))
    }

    /// Finds the changes from the place onward from which making all of them gains most.
    fn choose(
        &mut self,
        transcript: &Transcript,
        range: Range<Position>,
        given: &Given<'_>,
        (seen, ends): (Position, EntryEnds<'_>),
        said: &SaidOnce,
        plan: &Plan,
    ) -> Vec<SettleCandidate> {
        let (settings, prices) = (&given.bounds.settle, given.prices);
        let context = context_tokens(given.terms, plan);
        let turn = plan.turn();
        let further = turn.saturating_sub(1).max(settings.least_calls).min(settings.most_calls);
        let further = f64::from(further);
        let break_price = prices.cache_write - prices.cache_read;
        let allowed = self.account.allowed(settings.allowance);
        let invested = self.account.allowed(settings.investment);
        let fresh = newest(transcript, range.end);
        // Read only where a change would gain something, which few turns have.
        let unread = LazyCell::new(|| unread(transcript, plan, given.terms, &ends(plan)));
        let (mut gain, mut behind, mut removed, mut paid) = (0.0, 0.0, 0.0, 0.0);
        let (mut best, mut chosen) = (0.0, 0);
        let mut candidates: Vec<SettleCandidate> = Vec::new();
        for position in range.rev() {
            let decision = &plan.decisions()[position];
            let tokens = sent_tokens(decision);
            let entry = &transcript.entries()[position];
            let mut offered = false;
            if position < seen.min(fresh)
                && entry.message.role == Role::Tool
                && !plan.is_protected(position)
                && !self.needs.is_hidden(position)
                && tokens >= settings.least
                && !keeps_errors(given, entry)
                && let Some((form, treatment, reason)) =
                    self.form_of(transcript, position, given, said, &candidates)
            {
                let saved = f64::from(tokens) - f64::from(form.tokens);
                let merged = treatment == Treatment::Merge;
                let needs = if merged {
                    0.0
                } else {
                    self.needs.expected(position, turn, further, settings)
                };
                let fetch = fetch_price(prices, context, f64::from(tokens));
                let written = if given.cold { prices.cache_write } else { 0.0 };
                let gained = saved * (prices.cache_read * further + written) - needs * fetch;
                if saved > 0.0 && gained > 0.0 && needs.is_finite() {
                    gain += gained;
                    behind -= saved;
                    removed += saved;
                    candidates.push(SettleCandidate { position, form, treatment, reason });
                    offered = true;
                }
            }
            if position < seen {
                behind += f64::from(tokens) + unseen(transcript, position, given.terms);
            }
            if offered {
                // The messages between the last entry before the change and the change are written again too.
                let rewritten = f64::max(0.0, behind + unread[position]);
                let cost = if given.cold { 0.0 } else { rewritten * break_price };
                let net = gain - cost * (1.0 + settings.caution);
                // A cost that is back after a few calls is a small risk, even if the session ends before.
                let soon = cost <= removed * prices.cache_read * f64::from(settings.payback);
                if (cost <= allowed || (soon && cost <= invested)) && net > best {
                    (best, chosen, paid) = (net, candidates.len(), cost);
                }
            }
        }
        if best < settings.least_gain * context * prices.cache_read * further {
            return Vec::new();
        }
        candidates.truncate(chosen);
        self.account.spend(paid);
        candidates
    }
}

impl Given<'_> {
    fn keeps_error_lines(&self) -> bool {
        self.bounds.intra_phase.preserve_errors != PreserveErrors::Off
    }
}

/// Returns whether a message holds an error word and the settings keep such messages whole.
fn keeps_errors(given: &Given<'_>, entry: &Entry) -> bool {
    given.bounds.intra_phase.preserve_errors == PreserveErrors::Keyword
        && mentions_error(&entry.message.shown())
}

/// Returns the excerpt of an old tool message, or `None` where nothing can be left out.
///
/// `stands` returns whether a name stands in another message too, so that it is no reason to keep a line.
fn excerpt_of(
    transcript: &Transcript,
    position: Position,
    given: &Given<'_>,
    said: &SaidOnce,
    pointed_at: &[LineAt],
    stands: &dyn Fn(Key) -> bool,
) -> Option<Arc<Sent>> {
    let must = |line: LineAt| match pointed_at.binary_search(&line) {
        Ok(_) => Some(true),
        Err(_) => said.is_pointed(position, line).then_some(false),
    };
    let (share, errors) = (given.bounds.settle.kept, given.keeps_error_lines());
    let cut = |bytes| Cut::old(bytes, share, errors);
    shortened(transcript, position, given, false, (&must, stands), cut)
}

/// Returns the form of a new result that is longer than the settings allow; `None` if it is not, or its tool cut it already.
pub(crate) fn first_form(
    transcript: &Transcript,
    position: Position,
    given: &Given<'_>,
    said: &SaidOnce,
) -> Option<Arc<Sent>> {
    let message = &transcript.entries()[position].message;
    let call = transcript.call_answered(position);
    if call.is_some_and(asks_for_size) {
        return None;
    }
    let settle = &given.bounds.settle;
    // A model that reads a file is about to work on it.
    let is_file = class(call, transcript, position) == Class::Reads;
    let most = if is_file { settle.giant_file } else { settle.giant } as usize;
    let is_giant = |result: &ToolResult| {
        result.text.len() > most
            && result.text.chars().count() > most
            && !is_cut_by_tool(&result.text)
    };
    if !message.results().any(is_giant) {
        return None;
    }
    let must = |line: LineAt| said.is_pointed(position, line).then_some(false);
    let errors = given.keeps_error_lines();
    shortened(transcript, position, given, true, (&must, &|_| false), |bytes| {
        if bytes > most { Cut::new(most, errors) } else { Cut::WHOLE }
    })
}

/// The decision about a line, and about a name.
type Decided<'a> = (&'a dyn Fn(LineAt) -> Option<bool>, &'a dyn Fn(Key) -> bool);

fn shortened(
    transcript: &Transcript,
    position: Position,
    given: &Given<'_>,
    is_new: bool,
    (must, stands): Decided<'_>,
    cut: impl Fn(usize) -> Cut,
) -> Option<Arc<Sent>> {
    let entry = &transcript.entries()[position];
    let text = entry.message.results().next().map_or("", |result| &result.text);
    let call = transcript.call_answered(position);
    let reads = call.and_then(file_access);
    let source = ExcerptSource {
        message: &entry.message,
        content: ContentKind::of(call, text),
        original: given.terms.around.lookups.then(|| Ref::message(entry.hash)),
        must,
        stands,
        // Later the file may have changed: then only the ref gives back what stood here.
        reads_on: is_new && matches!(reads, Some((_, Access::ReadsAll | Access::ReadsPart))),
    };
    let message = excerpt(&source, cut)?;
    Some(Arc::new(Sent::rendered(Some(position), message, transcript.tokenizer())))
}

/// Returns for each message the tokens between the last entry of the cache before it and itself.
fn unread(transcript: &Transcript, plan: &Plan, terms: &Terms, ends: &[bool]) -> Vec<f64> {
    let mut since = 0.0;
    let decisions = plan.decisions().iter().enumerate();
    let unread = decisions.map(|(position, decision)| {
        let before = since;
        let tokens = f64::from(sent_tokens(decision)) + unseen(transcript, position, terms);
        since = if ends.get(position) == Some(&true) { 0.0 } else { since + tokens };
        before
    });
    unread.collect()
}

/// Returns the tokens of a turn that the transcript does not show.
fn unseen(transcript: &Transcript, position: Position, terms: &Terms) -> f64 {
    let role = transcript.entries()[position].message.role;
    if role == Role::Assistant { terms.around.unseen } else { 0.0 }
}

/// Returns the tokens of a request: its messages, and the parts that the transcript does not show.
fn context_tokens(terms: &Terms, plan: &Plan) -> f64 {
    let turns = plan.turn().saturating_sub(1);
    plan.tokens() as f64 + f64::from(turns) * terms.around.unseen
}
