//! Entropy: separates keys from words.

/// Returns the Shannon entropy of the bytes of `text`, in bits a byte.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let all = text.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / all;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_more_than_a_word() {
        assert!(entropy(b"aaaaaaaa").abs() < 1e-9);
        assert!((entropy(b"abcdefgh") - 3.0).abs() < 1e-9);
        assert!(entropy(b"zT9qLm2Xw8RvB4nKj7Yp") > 4.0);
        assert!(entropy(b"").abs() < 1e-9);
    }
}
