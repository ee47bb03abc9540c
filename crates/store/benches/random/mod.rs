//! Texts and vectors to measure with.

use plimsoll_engine::Embedding;

/// Different words; the n-th is about n times rarer than the first, as words of a language are.
const WORDS: usize = 20_000;

/// Numbers that are the same at every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn text(&mut self, words: usize) -> String {
        let mut word = || format!("w{} ", (WORDS as f64).powf(self.unit()) as usize);
        (0..words).map(|_| word()).collect()
    }

    pub(crate) fn vector(&mut self, dimensions: usize) -> Embedding {
        let mut vector: Vec<f32> =
            (0..dimensions).map(|_| (0..4).map(|_| self.unit() as f32 - 0.5).sum()).collect();
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        for part in &mut vector {
            *part /= length;
        }
        Embedding { model: "m".to_owned(), vector }
    }
}
