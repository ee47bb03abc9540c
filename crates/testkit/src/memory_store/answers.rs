//! Cached answers in memory.

use std::cmp::Reverse;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{Answer, AnswerQuota, Embedding, Hit};

use super::ranking::cosine;
use super::{Records, remove};

fn is_alive(answer: &Answer, now: MillisSinceEpoch) -> bool {
    answer.ttl_expires_at.is_none_or(|end| end > now)
}

impl Records {
    pub(super) fn read_answer(&mut self, key: &str, now: MillisSinceEpoch) -> Option<Answer> {
        let answer = self.answers.get_mut(key).filter(|answer| is_alive(answer, now))?;
        answer.hit_count += 1;
        answer.last_hit_at = Some(now);
        Some(answer.clone())
    }

    pub(super) fn similar_answers(
        &self,
        context_signature: &str,
        embedding: &Embedding,
        now: MillisSinceEpoch,
        limit: usize,
    ) -> Vec<Hit<Answer>> {
        let fits = |answer: &&Answer| {
            answer.context_signature == context_signature && is_alive(answer, now)
        };
        let hits = self.answers.values().filter(fits).filter_map(|answer| {
            let score = cosine(embedding, answer.query_embedding.as_ref()?)?;
            Some(Hit { item: answer.clone(), score })
        });
        let mut hits: Vec<_> = hits.collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(limit);
        hits
    }

    /// Returns answers, newest first.
    pub(super) fn list_answers(&self, limit: usize) -> Vec<Answer> {
        let mut answers: Vec<Answer> = self.answers.values().cloned().collect();
        answers.sort_by_key(|answer| Reverse(answer.created_at));
        answers.truncate(limit);
        answers
    }

    pub(super) fn trim_answers(&mut self, now: MillisSinceEpoch, most: AnswerQuota) -> u64 {
        let mut removed = remove(&mut self.answers, |answer| !is_alive(answer, now));
        let (mut entries, mut bytes) = (0, 0);
        for answer in self.list_answers(usize::MAX) {
            entries += 1;
            bytes += (answer.query_text.len() + answer.answer_text.len()) as u64;
            if entries > most.entries || bytes > most.bytes {
                self.answers.remove(&answer.cache_key);
                removed += 1;
            }
        }
        removed
    }
}
