//! Likeness: words of similar meaning match each other with a lower weight.

use super::index::RecallIndex;
use super::postings::WordId;
use super::question::Term;

impl RecallIndex {
    /// Returns the words that are similar to a term and no form of it, with their similarity: above 0, at most 1.
    pub(super) fn words_like(&self, term: &Term) -> Vec<(WordId, f32)> {
        let from = self.settings.like_from;
        let Some(space) =
            self.space.as_ref().filter(|_| self.settings.likeness > 0.0 && from < 1.0)
        else {
            return Vec::new();
        };
        let mut vector = vec![0.0; space.dimension];
        space.look_up(&term.text, &mut vector);
        let mut like = space.like(&vector, from);
        like.retain(|(word, _)| Some(self.postings.words[*word as usize].stem) != term.stem);
        for (_, cosine) in &mut like {
            *cosine = ((*cosine - from) / (1.0 - from)).min(1.0);
        }
        like
    }
}
