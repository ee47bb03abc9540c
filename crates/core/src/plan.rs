//! The plan: for each message a treatment, a reason, and the form in which it is sent.
//!
//! A plan outlives its turn: the next turn's plan begins as this one, so that a form, once sent, stays until a pass
//! changes it. Passes change a plan only through [`Plan::reduce`], which holds two laws for all of them: a message never
//! grows, and no later pass touches a protected message. Texts beside the conversation are added to a message of
//! the user ([`Plan::add`]); it counts, and stands there for as long as the message does.

mod sent;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::choose::Reason;
use crate::hash::Ref;
use crate::message::{Block, Role};
use crate::section::Section;
use crate::tokens::Tokenizer;
use crate::transcript::{Position, Transcript};

pub(crate) use sent::RoleTokens;
pub use sent::Sent;

/// The treatment of a message, least lossy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// As it was said.
    Keep,
    /// Long reasoning, or a call's long arguments, cut in the middle.
    Shorten,
    /// A large result as exact lines, with counts of the missing ones.
    Excerpt,
    /// One line: tool, arguments, size, first line, ref.
    Stub,
    /// Failed attempts of a loop, told in short.
    Merge,
    /// Not sent.
    Omit,
}

impl Treatment {
    /// Returns the treatment's name as every interface prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Shorten => "shorten",
            Self::Excerpt => "excerpt",
            Self::Stub => "stub",
            Self::Merge => "merge",
            Self::Omit => "omit",
        }
    }
}

/// Texts beside the conversation that stand with a message in every request from their first on.
#[derive(Debug, Clone)]
struct Additions {
    texts: BTreeMap<Section, Arc<str>>,
    tokenizer: Tokenizer,
    /// The message with the texts, in its present form.
    sent: Arc<Sent>,
}

impl Additions {
    /// Puts the texts around another form of their message.
    fn surround(&mut self, form: &Sent) {
        let mut message = (*form.message).clone();
        let (behind, before): (Vec<_>, Vec<_>) =
            self.texts.iter().partition(|(section, _)| section.is_behind());
        let block = |(_, text): (&Section, &Arc<str>)| Block::Text(text.clone());
        message.blocks.splice(0..0, before.into_iter().map(block));
        message.blocks.extend(behind.into_iter().map(block));
        self.sent = Arc::new(Sent::rendered(form.position, message, self.tokenizer));
    }
}

/// Returns the tokens that a decision sends, by role.
fn sent_by_role(decision: &Decision) -> RoleTokens {
    if decision.treatment == Treatment::Omit {
        RoleTokens::default()
    } else {
        RoleTokens::of(&decision.form)
    }
}

/// The messages that are sent, in order.
pub type Context = Vec<Arc<Sent>>;

/// The decision about one message.
#[derive(Debug, Clone)]
pub struct Decision {
    pub treatment: Treatment,
    pub reason: Reason,
    /// The form that is sent, also kept while the message is omitted.
    pub form: Arc<Sent>,
    /// The message as it was said.
    pub whole: Arc<Sent>,
    /// The turn in which the treatment was last changed.
    pub since: u32,
    protected: bool,
}

/// A change of state in one turn, as the receipt records it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    pub position: Position,
    pub treatment: Treatment,
    #[serde(serialize_with = "crate::choose::tagged")]
    pub reason: Reason,
    pub tokens_before: u32,
    pub tokens_after: u32,
    #[serde(rename = "ref")]
    pub original: Ref,
}

/// Decisions for the first messages of a transcript, in order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    decisions: Vec<Decision>,
    turn: u32,
    changes: Vec<Change>,
    /// The tokens of all forms that are sent, without additions; kept up with each change, since a long session has many turns.
    tokens: RoleTokens,
    additions: BTreeMap<Position, Additions>,
    /// A text of ours between messages, and the place of the message that it stands before.
    inserted: Option<(Position, Arc<Sent>)>,
}

impl Plan {
    /// Begins a turn: messages of `transcript` before `end` that are not planned yet are kept, fresh.
    pub fn extend(&mut self, transcript: &Transcript, end: Position) {
        self.changes.clear();
        let entries = &transcript.entries()[..end];
        self.turn = entries.last().map_or(0, |entry| entry.turn) + 1;
        for (position, entry) in entries.iter().enumerate().skip(self.decisions.len()) {
            let whole = Arc::new(Sent::whole(position, entry));
            self.tokens.add(RoleTokens::of(&whole));
            self.decisions.push(Decision {
                treatment: Treatment::Keep,
                reason: Reason::Fresh,
                form: whole.clone(),
                whole,
                since: self.turn,
                protected: false,
            });
        }
    }

    /// Takes back every decision, for a policy that decides anew at each turn; returns the earlier treatments and sizes.
    pub fn reset(&mut self) -> Vec<(Treatment, u32)> {
        let before = self.decisions.iter().map(|one| (one.treatment, sent_tokens(one))).collect();
        self.tokens = RoleTokens::default();
        self.inserted = None;
        for decision in &mut self.decisions {
            self.tokens.add(RoleTokens::of(&decision.whole));
            decision.treatment = Treatment::Keep;
            decision.reason = Reason::Fresh;
            decision.form = decision.whole.clone();
            decision.protected = false;
        }
        for (&position, additions) in &mut self.additions {
            if let Some(decision) = self.decisions.get(position) {
                additions.surround(&decision.form);
            }
        }
        self.changes.clear();
        before
    }

    /// Keeps as changes only the differences from `before`, which [`Plan::reset`] returned.
    pub fn compare(&mut self, transcript: &Transcript, before: &[(Treatment, u32)]) {
        self.changes.clear();
        for (position, decision) in self.decisions.iter_mut().enumerate() {
            let now = (decision.treatment, sent_tokens(decision));
            let last =
                before.get(position).copied().unwrap_or((Treatment::Keep, decision.whole.tokens));
            if now != last {
                decision.since = self.turn;
                self.changes.push(Change {
                    position,
                    treatment: now.0,
                    reason: decision.reason,
                    tokens_before: last.1,
                    tokens_after: now.1,
                    original: Ref::message(transcript.entries()[position].hash),
                });
            }
        }
    }

    /// Returns the decisions, oldest message first.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Returns the changes made since [`Plan::extend`].
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the turn that is being planned, counted from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the tokens of the context as planned, added texts included.
    pub fn tokens(&self) -> u64 {
        let inserted = self.inserted.as_ref().map_or(0, |(_, sent)| u64::from(sent.tokens));
        self.tokens.total()
            + inserted
            + self.additions.keys().map(|at| u64::from(self.added_tokens(*at))).sum::<u64>()
    }

    /// Returns the tokens of the messages as planned, by role, without added texts.
    pub(crate) fn tokens_by_role(&self) -> RoleTokens {
        self.tokens
    }

    /// Puts a text of ours before the message at `position`, until the plan is reset.
    pub fn insert(&mut self, position: Position, text: Sent) {
        self.inserted = Some((position, Arc::new(text)));
    }

    /// Returns the tokens by which additions make the message at `position` larger.
    pub fn added_tokens(&self, position: Position) -> u32 {
        let additions = self.additions.get(&position).filter(|_| self.is_sent(position));
        let more = |additions: &Additions| {
            additions.sent.tokens.saturating_sub(self.decisions[position].form.tokens)
        };
        additions.map_or(0, more)
    }

    /// Puts a text with the message at `position`, from this request on; one that stands there for the section goes.
    pub fn add(
        &mut self,
        position: Position,
        section: Section,
        text: Arc<str>,
        tokenizer: Tokenizer,
    ) {
        let Some(decision) = self.decisions.get(position) else { return };
        let additions = self.additions.entry(position).or_insert_with(|| Additions {
            texts: BTreeMap::new(),
            tokenizer,
            sent: decision.form.clone(),
        });
        additions.texts.insert(section, text);
        additions.surround(&decision.form);
    }

    /// Takes back the text of a section that stands with the message at `position`.
    pub fn take_back(&mut self, position: Position, section: Section) {
        let Some(additions) = self.additions.get_mut(&position) else { return };
        additions.texts.remove(&section);
        if additions.texts.is_empty() {
            self.additions.remove(&position);
        } else if let Some(decision) = self.decisions.get(position) {
            additions.surround(&decision.form);
        }
    }

    /// Returns the texts that stand with messages which are sent, with the places of those, ascending.
    pub fn additions(&self) -> impl Iterator<Item = (Position, Section, &Arc<str>)> {
        let sent = self.additions.iter().filter(|(position, _)| self.is_sent(**position));
        sent.flat_map(|(position, additions)| {
            additions.texts.iter().map(|(section, text)| (*position, *section, text))
        })
    }

    fn is_sent(&self, position: Position) -> bool {
        self.decisions.get(position).is_some_and(|one| one.treatment != Treatment::Omit)
    }

    /// Keeps the message at `position` from every later pass, in the form that it has.
    pub fn protect(&mut self, position: Position, reason: Reason) {
        self.decisions[position].protected = true;
        self.explain(position, reason);
    }

    /// Returns whether a pass protected the message.
    pub fn is_protected(&self, position: Position) -> bool {
        self.decisions[position].protected
    }

    /// Lifts the protection of a message.
    pub(crate) fn lift(&mut self, position: Position) {
        self.decisions[position].protected = false;
    }

    /// Gives a message back the form in which it was said.
    pub(crate) fn restore(&mut self, transcript: &Transcript, position: Position, reason: Reason) {
        let turn = self.turn;
        let decision = &mut self.decisions[position];
        let (before, after) = (sent_tokens(decision), decision.whole.tokens);
        self.tokens.subtract(sent_by_role(decision));
        self.tokens.add(RoleTokens::of(&decision.whole));
        decision.treatment = Treatment::Keep;
        decision.reason = reason;
        decision.form = decision.whole.clone();
        decision.since = turn;
        if let Some(additions) = self.additions.get_mut(&position) {
            additions.surround(&decision.form);
        }
        self.changes.push(Change {
            position,
            treatment: Treatment::Keep,
            reason,
            tokens_before: before,
            tokens_after: after,
            original: Ref::message(transcript.entries()[position].hash),
        });
    }

    /// Lifts all protection and gives `reason` for every message that is sent whole, until a pass of this turn gives another.
    pub fn unprotect(&mut self, reason: Reason) {
        for decision in &mut self.decisions {
            decision.protected = false;
            if decision.treatment == Treatment::Keep {
                decision.reason = reason;
            }
        }
    }

    /// Says why a kept message is kept.
    pub fn explain(&mut self, position: Position, reason: Reason) {
        let decision = &mut self.decisions[position];
        if decision.treatment == Treatment::Keep {
            decision.reason = reason;
        }
    }

    /// Gives a message a smaller form; tells whether it did.
    ///
    /// Refused where the message is protected, where the form is not smaller, and where the treatment is a less lossy one
    /// than the message already has.
    pub fn reduce(
        &mut self,
        transcript: &Transcript,
        position: Position,
        treatment: Treatment,
        reason: Reason,
        form: Arc<Sent>,
    ) -> bool {
        let decision = &mut self.decisions[position];
        let before = sent_tokens(decision);
        let after = if treatment == Treatment::Omit { 0 } else { form.tokens };
        if decision.protected || treatment < decision.treatment || after >= before {
            return false;
        }
        self.tokens.subtract(sent_by_role(decision));
        if treatment != Treatment::Omit {
            self.tokens.add(RoleTokens::of(&form));
        }
        decision.treatment = treatment;
        decision.reason = reason;
        if let Some(additions) = self.additions.get_mut(&position) {
            additions.surround(&form);
        }
        decision.form = form;
        decision.since = self.turn;
        self.changes.push(Change {
            position,
            treatment,
            reason,
            tokens_before: before,
            tokens_after: after,
            original: Ref::message(transcript.entries()[position].hash),
        });
        true
    }

    /// Leaves out a message together with its whole exchange; tells whether it did.
    pub fn omit(&mut self, transcript: &Transcript, position: Position, reason: Reason) -> bool {
        let members = members(transcript, position, self.decisions.len());
        if members.iter().any(|&member| self.decisions[member].protected) {
            return false;
        }
        for &member in &members {
            let form = self.decisions[member].form.clone();
            self.reduce(transcript, member, Treatment::Omit, reason, form);
        }
        true
    }

    /// Returns the messages that are sent: every form that is not omitted, in the transcript's order.
    pub fn render(&self) -> Context {
        self.sent().into_iter().cloned().collect()
    }

    /// Returns what [`Plan::render`] returns, borrowed.
    pub(crate) fn sent(&self) -> Vec<&Arc<Sent>> {
        let mut sent = Vec::with_capacity(self.decisions.len() + 1);
        let mut inserted = self.inserted.as_ref();
        for (position, decision) in self.decisions.iter().enumerate() {
            if let Some((_, text)) = inserted.take_if(|(before, _)| *before <= position) {
                sent.push(text);
            }
            if decision.treatment != Treatment::Omit {
                let additions = self.additions.get(&position);
                sent.push(additions.map_or(&decision.form, |additions| &additions.sent));
            }
        }
        sent.extend(inserted.map(|(_, text)| text));
        sent
    }
}

/// Returns the positions that must be left out together with `position`, itself among them.
pub fn members(transcript: &Transcript, position: Position, end: Position) -> Vec<Position> {
    match transcript.entries()[position].exchange {
        Some(index) => {
            let exchange = &transcript.exchanges()[index];
            std::iter::once(exchange.call)
                .chain(exchange.results.iter().copied())
                .filter(|&member| member < end)
                .collect()
        }
        None => vec![position],
    }
}

/// Returns the tokens that a decision sends.
pub fn sent_tokens(decision: &Decision) -> u32 {
    if decision.treatment == Treatment::Omit { 0 } else { decision.form.tokens }
}

/// Returns where the messages since the model last spoke begin, among those before `end`.
///
/// The model asked for them and has not read them yet.
pub fn newest(transcript: &Transcript, end: Position) -> Position {
    transcript.entries()[..end]
        .iter()
        .rposition(|entry| entry.message.role == Role::Assistant)
        .map_or(0, |position| position + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn planned() -> (Transcript, Plan) {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        transcript.push(Message::text(Role::User, "a task of some length to begin with"));
        transcript
            .push(Message::text(Role::Assistant, "a long thought that is worth cutting down"));
        let mut plan = Plan::default();
        plan.extend(&transcript, 2);
        (transcript, plan)
    }

    fn small(position: Position) -> Arc<Sent> {
        Arc::new(Sent::rendered(
            Some(position),
            Message::text(Role::Assistant, "cut"),
            Tokenizer::Estimate,
        ))
    }

    #[test]
    fn a_pass_cannot_enlarge_nor_touch_what_is_protected() {
        let (transcript, mut plan) = planned();
        let whole = plan.decisions()[1].form.clone();
        assert!(!plan.reduce(&transcript, 1, Treatment::Excerpt, Reason::Settled, whole.clone()));
        plan.protect(0, Reason::Protected);
        assert!(!plan.reduce(&transcript, 0, Treatment::Stub, Reason::Settled, small(0)));
        assert!(plan.reduce(&transcript, 1, Treatment::Stub, Reason::Settled, small(1)));
        assert!(!plan.reduce(&transcript, 1, Treatment::Excerpt, Reason::Settled, whole));
        assert_eq!(
            plan.tokens(),
            plan.render().iter().map(|sent| u64::from(sent.tokens)).sum::<u64>()
        );
    }

    #[test]
    fn an_added_text_counts_and_stands_until_its_message_goes() {
        let (mut transcript, mut plan) = planned();
        transcript.push(Message::text(Role::User, "and now?"));
        plan.extend(&transcript, 3);
        let before = plan.tokens();
        plan.add(2, Section::Memory, "known: berth 14".into(), Tokenizer::Estimate);
        let added = plan.render()[2].clone();
        assert_eq!(added.message.shown(), "and now?\nknown: berth 14");
        assert_eq!(plan.tokens(), before + u64::from(plan.added_tokens(2)));
        let sum = |plan: &Plan| plan.render().iter().map(|one| u64::from(one.tokens)).sum::<u64>();
        assert_eq!(plan.tokens(), sum(&plan));
        plan.add(2, Section::Facts, "berths: 20".into(), Tokenizer::Estimate);
        assert_eq!(plan.render()[2].message.shown(), "berths: 20\nand now?\nknown: berth 14");
        plan.take_back(2, Section::Facts);
        plan.reset();
        assert_eq!(plan.render()[2].hash, added.hash, "its bytes stay");
        plan.omit(&transcript, 2, Reason::Ceiling);
        assert_eq!((plan.additions().count(), plan.tokens()), (0, sum(&plan)));
    }

    #[test]
    fn sums_by_role_follow_each_change() {
        let added_up = |plan: &Plan| {
            let mut sum = RoleTokens::default();
            plan.decisions().iter().for_each(|one| sum.add(sent_by_role(one)));
            sum
        };
        let (transcript, mut plan) = planned();
        let whole = plan.tokens_by_role();
        assert_eq!(whole, added_up(&plan));
        assert!(plan.reduce(&transcript, 1, Treatment::Stub, Reason::Settled, small(1)));
        assert!(plan.tokens_by_role().assistant < whole.assistant);
        assert_eq!(plan.tokens_by_role(), added_up(&plan));
        assert!(plan.omit(&transcript, 1, Reason::Ceiling));
        assert_eq!((plan.tokens_by_role().assistant, plan.tokens_by_role()), (0, added_up(&plan)));
        plan.reset();
        assert_eq!((plan.tokens_by_role(), added_up(&plan)), (whole, whole));
    }

    #[test]
    fn forms_stay_when_the_plan_grows() {
        let (mut transcript, mut plan) = planned();
        plan.reduce(&transcript, 1, Treatment::Stub, Reason::Settled, small(1));
        let before = plan.render();
        transcript.push(Message::text(Role::User, "more"));
        plan.extend(&transcript, 3);
        let after = plan.render();
        assert!(before.iter().zip(&after).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert_eq!(after.len(), 3);
        assert!(plan.changes().is_empty());
    }
}
