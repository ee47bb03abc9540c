//! Scores: the relevance of each message to a question, with its parts.

use serde::Serialize;

use super::index::{IndexEntry, MessageId, RecallIndex};
use super::postings::{PartId, WordId};
use super::question::{Question, Term};
use crate::message::Role;

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecalledMessage {
    /// The message's number in the index.
    pub message: usize,
    /// Above 0; only scores for the same question are comparable.
    pub score: f32,
    /// The place of its best part among its parts; 0 for a short message.
    pub part: usize,
    pub why: ScoreParts,
}

/// The parts of a score: `(text + vector + neighbours + passage + date) × speaker × question × role × size`.
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
    /// Above 1 if the question asks for the words of its author.
    pub role: f32,
    /// Below 1, the lower the longer it is.
    pub size: f32,
}

impl ScoreParts {
    fn score(&self) -> f32 {
        (self.text + self.vector + self.neighbours + self.passage + self.date)
            * self.speaker
            * self.question
            * self.role
            * self.size
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
    /// Of the best part of each message.
    text: Vec<f32>,
    /// Text and vector of the best part of each message.
    own: Vec<f32>,
    /// The place of that part.
    best: Vec<u32>,
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
        let recalled = |(score, message): (f32, usize)| {
            let part = asked.best[message] as usize;
            RecalledMessage { message, score, part, why: self.why(&asked, message) }
        };
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
            for part in self.entries[message].parts.clone() {
                for (word, _) in self.postings.counts(part as usize) {
                    let known = &self.postings.words[*word as usize];
                    let said = || known.text.to_string();
                    if Some(known.stem) == term.stem || like.contains(word) {
                        let found = Match { asked: term.text.clone(), said: said() };
                        if !matches.contains(&found) {
                            matches.push(found);
                        }
                    }
                }
            }
        }
        matches
    }

    fn ask(&self, question: &str) -> QuestionScores {
        let question = Question::read(question, self);
        let part_texts = self.text(&question);
        let mut parts = part_texts.clone();
        if let Some(space) = self.space.as_ref().filter(|_| self.settings.vector != 0.0) {
            let words = question.terms.iter().map(|term| (term.text.as_str(), term.word));
            let vector = self.vectors.of_question(words, space);
            for (own, cosine) in parts.iter_mut().zip(self.vectors.cosines(&vector)) {
                *own += self.settings.vector * cosine;
            }
        }
        let (mut text, mut own) = (vec![0.0; self.len()], vec![0.0; self.len()]);
        let mut best = vec![0_u32; self.len()];
        for (message, entry) in self.entries.iter().enumerate() {
            // Of equal parts the first.
            let better = |a: &PartId, b: &PartId| {
                parts[*a as usize].total_cmp(&parts[*b as usize]).then(b.cmp(a))
            };
            let Some(part) = entry.parts.clone().max_by(better) else { continue };
            text[message] = part_texts[part as usize];
            own[message] = parts[part as usize];
            best[message] = part - entry.parts.start;
        }
        let mut passages = vec![0.0_f32; self.passages];
        for (entry, own) in self.entries.iter().zip(&own) {
            let best = &mut passages[entry.passage as usize];
            *best = best.max(*own);
        }
        let named = question.named(self);
        QuestionScores { text, own, best, passages, named, question }
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
            // Whoever asks an assistant for help says in the same breath what is the matter.
            question: 1.0 - if entry.asks && !self.has_roles { settings.question } else { 0.0 },
            role: match (asked.question.asks_about, entry.role) {
                _ if !self.has_roles => 1.0,
                (Some(Role::User), Role::User) => 1.0 + settings.asker,
                (Some(Role::Assistant), Role::Assistant) => 1.0 + settings.answerer,
                _ => 1.0,
            },
            size: (1.0 + entry.size as f32 / settings.size_from.max(1.0)).powf(-settings.size),
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

    /// Returns each part's score by the words of the question.
    ///
    /// Each term counts once: as itself, or as the most similar word, whichever scores more.
    fn text(&self, question: &Question) -> Vec<f32> {
        let mut text = vec![0.0_f32; self.postings.parts()];
        let mut term_scores = vec![0.0_f32; self.postings.parts()];
        let mut counts = vec![0_u32; self.postings.parts()];
        let mut touched: Vec<PartId> = Vec::new();
        for term in &question.terms {
            self.own_forms(term, &mut counts, &mut term_scores, &mut touched);
            self.like_words(term, &mut term_scores, &mut touched);
            for part in touched.drain(..) {
                // A part may stand here twice; the second time its score is 0.
                text[part as usize] += std::mem::take(&mut term_scores[part as usize]);
            }
        }
        text
    }

    /// Scores the parts that hold a form of the term: BM25 of its stem.
    fn own_forms(
        &self,
        term: &Term,
        counts: &mut [u32],
        scores: &mut [f32],
        touched: &mut Vec<PartId>,
    ) {
        let Some(stem) = term.stem.map(|stem| &self.postings.stems[stem as usize]) else { return };
        let forms =
            || stem.words.iter().flat_map(|word| &self.postings.words[*word as usize].postings);
        for posting in forms() {
            counts[posting.part as usize] += posting.count;
        }
        let rarity = self.postings.rarity(stem.parts as usize);
        for posting in forms() {
            let count = std::mem::take(&mut counts[posting.part as usize]);
            if count > 0 {
                scores[posting.part as usize] = rarity * self.saturated(posting.part, count);
                touched.push(posting.part);
            }
        }
    }

    /// Scores the parts that hold words similar to the term, with the lower rarity of both words.
    fn like_words(&self, term: &Term, scores: &mut [f32], touched: &mut Vec<PartId>) {
        let holding = |word: WordId| self.postings.words[word as usize].postings.len();
        let asked = self.postings.rarity(term.word.map_or(0, holding));
        for (word, likeness) in self.words_like(term) {
            let rarity = self.postings.rarity(holding(word)).min(asked);
            let weight = self.settings.likeness * likeness * rarity;
            for posting in &self.postings.words[word as usize].postings {
                let score = &mut scores[posting.part as usize];
                *score = score.max(weight * self.saturated(posting.part, posting.count));
                touched.push(posting.part);
            }
        }
    }

    /// Returns the weight of `count` occurrences, from 0 to 1: less in a long part.
    fn saturated(&self, part: PartId, count: u32) -> f32 {
        let (settings, count) = (&self.settings, count as f32);
        let length = self.postings.lengths[part as usize] as f32 / self.postings.mean_length();
        count / (count + settings.saturation * (1.0 - settings.length + settings.length * length))
    }
}
