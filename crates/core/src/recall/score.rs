//! Scores: the relevance of each message to a question, with its parts.

use serde::Serialize;

use super::index::{IndexEntry, RecallIndex};
use super::postings::{MessageId, WordId};
use super::question::{Question, Term};

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecalledMessage {
    /// The message's number in the index.
    pub message: usize,
    /// Above 0; only scores for the same question are comparable.
    pub score: f32,
    pub why: ScoreParts,
}

/// The parts of a score: `(text + vector + neighbours + passage + date) × speaker × question`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreParts {
    /// The question's words in the message, and words like them.
    pub text: f32,
    /// The likeness of both vectors.
    pub vector: f32,
    /// The share of its neighbours' scores.
    pub neighbours: f32,
    /// The share of the best score of its passage.
    pub passage: f32,
    /// The weight of its day.
    pub date: f32,
    /// Above 1 if the question names its speaker.
    pub speaker: f32,
    /// Below 1 if it ends as a question itself.
    pub question: f32,
}

impl ScoreParts {
    fn score(&self) -> f32 {
        (self.text + self.vector + self.neighbours + self.passage + self.date)
            * self.speaker
            * self.question
    }
}

/// A word of a message that matches a word of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    pub asked: String,
    pub said: String,
}

/// The scores of a question that the parts of a message's score come from.
struct QuestionScores {
    text: Vec<f32>,
    /// Text and vector.
    own: Vec<f32>,
    /// The best of each passage.
    passages: Vec<f32>,
    named: Option<Vec<bool>>,
    question: Question,
}

impl RecallIndex {
    /// Returns the best messages for a question, best first, within the limit of the settings.
    ///
    /// Shape: only scores above 0; of equal scores the message that was added first comes first.
    pub fn search(&self, question: &str) -> Vec<RecalledMessage> {
        let asked = self.ask(question);
        let mut found: Vec<(f32, usize)> = (0..self.len())
            .map(|message| (self.why(&asked, message).score(), message))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        let best_first =
            |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if found.len() > self.settings.limit {
            found.select_nth_unstable_by(self.settings.limit, best_first);
            found.truncate(self.settings.limit);
        }
        found.sort_unstable_by(best_first);
        let recalled =
            |(score, message)| RecalledMessage { message, score, why: self.why(&asked, message) };
        found.into_iter().map(recalled).collect()
    }

    /// Returns the words of a message that match a question, in the order of the question's words.
    pub fn matches(&self, question: &str, message: usize) -> Vec<Match> {
        let mut matches = Vec::new();
        if message >= self.len() {
            return matches;
        }
        for term in Question::read(question, self).terms {
            let like: Vec<WordId> =
                self.words_like(&term).into_iter().map(|(word, _)| word).collect();
            for (word, _) in self.postings.counts(message) {
                let known = &self.postings.words[*word as usize];
                if Some(known.stem) == term.stem || like.contains(word) {
                    matches.push(Match { asked: term.text.clone(), said: known.text.to_string() });
                }
            }
        }
        matches
    }

    fn ask(&self, question: &str) -> QuestionScores {
        let question = Question::read(question, self);
        let text = self.text(&question);
        let mut own = text.clone();
        if let Some(space) = self.space.as_ref().filter(|_| self.settings.vector != 0.0) {
            let words = question.terms.iter().map(|term| (term.text.as_str(), term.word));
            let vector = self.vectors.of_question(words, space);
            for (own, cosine) in own.iter_mut().zip(self.vectors.cosines(&vector)) {
                *own += self.settings.vector * cosine;
            }
        }
        let mut passages = vec![0.0_f32; self.passages];
        for (entry, own) in self.entries.iter().zip(&own) {
            let best = &mut passages[entry.passage as usize];
            *best = best.max(*own);
        }
        let named = question.named(self);
        QuestionScores { text, own, passages, named, question }
    }

    fn why(&self, asked: &QuestionScores, message: usize) -> ScoreParts {
        let (entry, settings) = (&self.entries[message], &self.settings);
        let named =
            |named: &Vec<bool>| entry.speaker.is_some_and(|speaker| named[speaker as usize]);
        let speaker =
            1.0 + if asked.named.as_ref().is_some_and(named) { settings.speaker } else { 0.0 };
        let day = |day| {
            let periods = asked.question.periods.iter();
            periods.map(|period| period.nearness(day, settings.date_days)).fold(0.0, f32::max)
        };
        ScoreParts {
            text: asked.text[message],
            vector: asked.own[message] - asked.text[message],
            neighbours: self.neighbours(asked, entry),
            passage: settings.passage * asked.passages[entry.passage as usize],
            date: match entry.day {
                Some(at) if !asked.question.periods.is_empty() => settings.date * day(at),
                _ => 0.0,
            },
            speaker,
            question: 1.0 - if entry.asks { settings.question } else { 0.0 },
        }
    }

    /// Returns the best share of the scores of the two messages on either side.
    fn neighbours(&self, asked: &QuestionScores, entry: &IndexEntry) -> f32 {
        let own = |id: Option<MessageId>| id.map_or(0.0, |id| asked.own[id as usize]);
        let entry_of = |id: Option<MessageId>| id.map(|id| &self.entries[id as usize]);
        let next = own(entry.before).max(own(entry.behind));
        let second = own(entry_of(entry.before).and_then(|entry| entry.before))
            .max(own(entry_of(entry.behind).and_then(|entry| entry.behind)));
        (self.settings.neighbour * next).max(self.settings.second_neighbour * second).max(0.0)
    }

    /// Returns each message's score by the words of the question.
    ///
    /// Each term counts once: as itself, or as the most similar word, whichever scores more.
    fn text(&self, question: &Question) -> Vec<f32> {
        let mut text = vec![0.0_f32; self.len()];
        let mut term_scores = vec![0.0_f32; self.len()];
        let mut counts = vec![0_u32; self.len()];
        let mut touched: Vec<MessageId> = Vec::new();
        for term in &question.terms {
            self.own_forms(term, &mut counts, &mut term_scores, &mut touched);
            self.like_words(term, &mut term_scores, &mut touched);
            for message in touched.drain(..) {
                // A message may stand here twice; the second time its score is 0.
                text[message as usize] += std::mem::take(&mut term_scores[message as usize]);
            }
        }
        text
    }

    /// Scores the messages that hold a form of the term: BM25 of its stem.
    fn own_forms(
        &self,
        term: &Term,
        counts: &mut [u32],
        scores: &mut [f32],
        touched: &mut Vec<MessageId>,
    ) {
        let Some(stem) = term.stem.map(|stem| &self.postings.stems[stem as usize]) else { return };
        let forms =
            || stem.words.iter().flat_map(|word| &self.postings.words[*word as usize].postings);
        for posting in forms() {
            counts[posting.message as usize] += posting.count;
        }
        let rarity = self.postings.rarity(stem.messages as usize);
        for posting in forms() {
            let count = std::mem::take(&mut counts[posting.message as usize]);
            if count > 0 {
                scores[posting.message as usize] = rarity * self.saturated(posting.message, count);
                touched.push(posting.message);
            }
        }
    }

    /// Scores the messages that hold words similar to the term, with the lower rarity of both words.
    fn like_words(&self, term: &Term, scores: &mut [f32], touched: &mut Vec<MessageId>) {
        let holding = |word: WordId| self.postings.words[word as usize].postings.len();
        let asked = self.postings.rarity(term.word.map_or(0, holding));
        for (word, likeness) in self.words_like(term) {
            let rarity = self.postings.rarity(holding(word)).min(asked);
            let weight = self.settings.likeness * likeness * rarity;
            for posting in &self.postings.words[word as usize].postings {
                let score = &mut scores[posting.message as usize];
                *score = score.max(weight * self.saturated(posting.message, posting.count));
                touched.push(posting.message);
            }
        }
    }

    /// Returns the weight of `count` occurrences, from 0 to 1: less in a long message.
    fn saturated(&self, message: MessageId, count: u32) -> f32 {
        let (settings, count) = (&self.settings, count as f32);
        let length = self.postings.lengths[message as usize] as f32 / self.postings.mean_length();
        count / (count + settings.saturation * (1.0 - settings.length + settings.length * length))
    }
}
