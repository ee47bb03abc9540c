//! A recorded session, counted: its stretches between compactions, calibrated on the usage that it reports.

use std::collections::HashSet;
use std::sync::Arc;

use crate::calibrate::{RequestOverhead, reported, unshown};
use crate::message::Message;
use crate::replay::Stretch;
use crate::tokens::{self, Calibration, Tokenizer};
use crate::transcript::Transcript;

/// The messages of a stretch, of which the first `known` stood in an earlier one or summarise it.
#[derive(Debug, Clone, Copy)]
pub struct MessageStretch<'a> {
    pub messages: &'a [Arc<Message>],
    pub known: usize,
}

/// A recorded session, counted.
#[derive(Debug)]
pub struct CountedSession {
    /// Stretches that ended with a compaction, oldest first.
    earlier: Vec<(Transcript, usize)>,
    /// The last stretch.
    pub transcript: Transcript,
    known: usize,
    /// What the reported usage says of the tokenizer; `None` where that was named or is exact.
    pub calibration: Option<Calibration>,
    /// What requests hold beside the messages.
    pub overhead: RequestOverhead,
}

impl CountedSession {
    /// Counts a session by the tokenizer that is named, else by that of its model.
    ///
    /// `usual` tells the tokens before the messages where too little usage was reported.
    pub fn count(
        earlier: &[MessageStretch<'_>],
        last: MessageStretch<'_>,
        named: Option<Tokenizer>,
        model: Option<&str>,
        usual: impl FnOnce(Tokenizer) -> f64,
    ) -> Self {
        let by_model = model.map_or(Tokenizer::O200k { factor: 1.0 }, Tokenizer::for_model);
        let is_exact = model.is_some_and(|model| model.contains("gpt") || model.contains("/o"));
        // A factor is measured anew on the session's own reports.
        let measured = match (named, by_model) {
            (None, Tokenizer::O200k { factor }) if !is_exact => Some(factor),
            _ => None,
        };
        let tokenizer =
            measured.map_or(named.unwrap_or(by_model), |_| Tokenizer::O200k { factor: 1.0 });
        let filled = |stretch: &MessageStretch<'_>| {
            let mut transcript = Transcript::new(tokenizer);
            for message in stretch.messages {
                transcript.push(Arc::clone(message));
            }
            (transcript, stretch.known)
        };
        let (transcript, known) = filled(&last);
        let mut session = Self {
            earlier: earlier.iter().map(filled).collect(),
            transcript,
            known,
            calibration: None,
            overhead: unshown(&[], 0.0),
        };
        if let Some(usual_factor) = measured {
            let prompts: Vec<(u32, u64)> = reported(session.stretches())
                .iter()
                .map(|one| (one.counted as u32, one.usage.prompt_tokens))
                .collect();
            session.calibration = tokens::calibrate(&prompts);
            session.scale(session.calibration.map_or(usual_factor, |found| found.factor));
        }
        let usual = usual(session.transcript.tokenizer());
        session.overhead = unshown(&reported(session.stretches()), usual);
        if let (Some(found), true) = (session.calibration, session.overhead.scale < 1.0) {
            session.scale((f64::from(found.factor) * session.overhead.scale) as f32);
            session.overhead = unshown(&reported(session.stretches()), usual);
        }
        session
    }

    fn scale(&mut self, factor: f32) {
        for transcript in
            self.earlier.iter_mut().map(|one| &mut one.0).chain([&mut self.transcript])
        {
            *transcript = transcript.clone().calibrated(factor);
        }
    }

    /// Returns the stretches between compactions, oldest first.
    pub fn stretches(&self) -> impl Iterator<Item = Stretch<'_>> {
        let earlier =
            self.earlier.iter().map(|(transcript, known)| Stretch { transcript, known: *known });
        earlier.chain([Stretch { transcript: &self.transcript, known: self.known }])
    }

    /// Returns how often the agent compacted.
    pub fn compactions(&self) -> usize {
        self.earlier.len()
    }

    /// Returns the transcript that holds a turn, counted from 0 over all stretches.
    pub fn transcript_of(&self, turn: u32) -> &Transcript {
        let mut turns = 0;
        let mut stretches = self.stretches();
        let found = stretches.find(|stretch| {
            turns += requests(stretch);
            (turn as usize) < turns
        });
        found.map_or(&self.transcript, |stretch| stretch.transcript)
    }

    /// Returns all turns of all stretches.
    pub fn turns(&self) -> u64 {
        self.stretches().map(|stretch| requests(&stretch) as u64).sum()
    }

    /// Returns the number of all messages, each counted once.
    pub fn messages(&self) -> usize {
        let fresh = |one: Stretch<'_>| one.transcript.entries().len().saturating_sub(one.known);
        self.stretches().map(fresh).sum()
    }

    /// Returns the tokens of all messages, each counted once.
    pub fn tokens(&self) -> u64 {
        let fresh = |one: Stretch<'_>| -> u64 {
            let entries = one.transcript.entries().iter().skip(one.known);
            entries.map(|entry| u64::from(entry.tokens)).sum()
        };
        self.stretches().map(fresh).sum()
    }

    /// Returns all messages in the order of the file, those that compactions left out too.
    pub fn history(&self) -> Transcript {
        let mut history = Transcript::new(self.transcript.tokenizer());
        let mut seen = HashSet::new();
        for stretch in self.stretches() {
            for (position, entry) in stretch.transcript.entries().iter().enumerate() {
                // A message that a compaction kept is there already; its summary is not.
                if seen.insert(entry.hash) || position >= stretch.known {
                    history.push_known(entry.message.clone(), entry.hash, entry.tokens);
                }
            }
        }
        history
    }
}

fn requests(stretch: &Stretch<'_>) -> usize {
    stretch.transcript.requests().filter(|at| *at >= stretch.known).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    fn messages(texts: &[(Role, &str)]) -> Vec<Arc<Message>> {
        texts.iter().map(|(role, text)| Arc::new(Message::text(*role, *text))).collect()
    }

    #[test]
    fn messages_of_several_stretches_count_once() {
        use Role::{Assistant, User};
        let first = messages(&[(User, "go"), (Assistant, "one"), (User, "on"), (Assistant, "two")]);
        let second =
            messages(&[(User, "summary"), (Assistant, "two"), (User, "x"), (Assistant, "three")]);
        let counted = CountedSession::count(
            &[MessageStretch { messages: &first, known: 0 }],
            MessageStretch { messages: &second, known: 2 },
            Some(Tokenizer::Estimate),
            None,
            |_| 70.0,
        );
        assert_eq!((counted.turns(), counted.messages(), counted.compactions()), (3, 6, 1));
        assert_eq!(counted.history().entries().len(), 7, "the summary is there too");
        assert_eq!(counted.transcript_of(1).entries().len(), 4);
        let last = |turn| {
            let entries = counted.transcript_of(turn).entries();
            entries.last().map(|entry| entry.message.shown())
        };
        assert_eq!((last(1), last(2)), (Some("two".into()), Some("three".into())));
        assert_eq!((counted.overhead.before, counted.calibration), (70.0, None));
    }
}
