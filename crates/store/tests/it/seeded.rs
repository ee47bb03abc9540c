//! Random numbers that are the same in every run.

/// Xorshift of 64 bits. Source: Marsaglia, Xorshift RNGs, 2003.
#[derive(Debug)]
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
