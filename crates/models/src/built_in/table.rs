//! The table as it stands in the binary, read in place; `scripts/make-embedder.py` tells its form.

/// Numbers of a vector.
pub(super) const DIMENSIONS: usize = 128;
/// Numbers that share a scale.
const GROUP: usize = 32;
const GROUPS: usize = DIMENSIONS / GROUP;
const PIECES: usize = 32_000;
const SLOTS: usize = 65_536;
/// The piece of byte 0; those of the others follow.
const FIRST_BYTE: u16 = 3;
/// A slot without a piece.
const NONE: u16 = u16::MAX;

const FILE: &[u8] = include_bytes!("../../data/word_vectors.bin");
const HEADER: usize = 20;
const PARTS: [usize; 4] = [
    PIECES * DIMENSIONS / GROUP * size_of::<u16>(),
    PIECES * DIMENSIONS / 2,
    SLOTS * size_of::<u16>(),
    (PIECES + 1) * size_of::<u32>(),
];

// The parts are cut while compiling, so a file of another form does not compile.
const AFTER_HEADER: &[u8] = FILE.split_at(HEADER).1;
const SCALES: &[u8] = AFTER_HEADER.split_at(PARTS[0]).0;
const AFTER_SCALES: &[u8] = AFTER_HEADER.split_at(PARTS[0]).1;
const CODES: &[u8] = AFTER_SCALES.split_at(PARTS[1]).0;
const AFTER_CODES: &[u8] = AFTER_SCALES.split_at(PARTS[1]).1;
const TABLE: &[u8] = AFTER_CODES.split_at(PARTS[2]).0;
const AFTER_TABLE: &[u8] = AFTER_CODES.split_at(PARTS[2]).1;
const STARTS: &[u8] = AFTER_TABLE.split_at(PARTS[3]).0;
const TEXT: &[u8] = AFTER_TABLE.split_at(PARTS[3]).1;

const _: () = {
    assert!(FILE[0] == b'P' && FILE[7] == b'1');
    assert!(number(FILE, 2) == PIECES && number(FILE, 3) == DIMENSIONS);
    assert!(number(FILE, 4) == SLOTS && number(STARTS, PIECES) == TEXT.len());
};

/// Reads the `index`th number of 32 bits.
const fn number(bytes: &[u8], index: usize) -> usize {
    let at = index * 4;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

fn short(bytes: &[u8], index: usize) -> u16 {
    u16::from_le_bytes([bytes[index * 2], bytes[index * 2 + 1]])
}

fn piece(id: u16) -> &'static [u8] {
    let id = usize::from(id);
    &TEXT[number(STARTS, id)..number(STARTS, id + 1)]
}

/// Returns the piece that is exactly these bytes.
pub(super) fn find(bytes: &[u8]) -> Option<u16> {
    // FNV-1a, as the script that filled the table.
    let mut hash = 0x811C_9DC5_u32;
    for byte in bytes {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    let mut slot = hash as usize % SLOTS;
    // Half of the slots are free, so a search ends after a few.
    loop {
        match short(TABLE, slot) {
            NONE => return None,
            id if piece(id) == bytes => return Some(id),
            _ => slot = (slot + 1) % SLOTS,
        }
    }
}

/// Returns the piece that stands for a byte of a character without a piece of its own.
pub(super) fn of_byte(byte: u8) -> u16 {
    FIRST_BYTE + u16::from(byte)
}

/// Adds the vector of a piece.
pub(super) fn add(id: u16, into: &mut [f32]) {
    let id = usize::from(id);
    let codes = &CODES[id * DIMENSIONS / 2..(id + 1) * DIMENSIONS / 2];
    let pairs = codes.chunks_exact(GROUP / 2).zip(into.chunks_exact_mut(GROUP));
    for (group, (codes, into)) in pairs.enumerate() {
        let scale = half(short(SCALES, id * GROUPS + group));
        for (code, two) in codes.iter().zip(into.chunks_exact_mut(2)) {
            two[0] += (f32::from(code & 15) - 7.0) * scale;
            two[1] += (f32::from(code >> 4) - 7.0) * scale;
        }
    }
}

/// Reads a half float that is neither negative nor infinite: scales are sizes.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10) & 31, u32::from(bits) & 1023);
    if exponent == 0 {
        // 2^-24 a step: too small for the table, and right all the same.
        return fraction as f32 / 16_777_216.0;
    }
    // The exponents' biases are 15 and 127, the fractions' widths 10 and 23.
    f32::from_bits((exponent + 127 - 15) << 23 | fraction << 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_read() {
        let cases = [
            (0x3C00, 1.0),
            (0x3555, 0.333_251_95),
            (0x7BFF, 65504.0),
            (0, 0.0),
            (1, 5.960_464_5e-8),
        ];
        for (bits, expected) in cases {
            assert!((half(bits) - expected).abs() <= f32::EPSILON * expected, "{bits:x}");
        }
    }

    /// Pieces before this one are marks and single bytes.
    const FIRST_TEXT: u16 = 259;

    #[test]
    fn every_piece_is_found() {
        for id in FIRST_TEXT..PIECES as u16 {
            assert_eq!(find(piece(id)), Some(id));
        }
        assert_eq!(find(b"no such piece"), None);
        assert_eq!(find(b""), None);
    }
}
