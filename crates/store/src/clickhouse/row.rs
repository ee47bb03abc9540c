//! Rows as they are inserted, and the words that texts are found by.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{digest, words};
use serde::{Serialize, Serializer, ser};

/// Bytes of the longest word that is kept as it is; a longer one is known by its digest, so that the index and the
/// parameters of a query stay small (chosen: longer than words of any language, and than most identifiers).
const LONGEST: usize = 64;

/// A row of `unified_logs`: what a kind of row has no use for stays empty.
#[derive(Debug, Default, Serialize)]
pub(super) struct LogInsert<'a> {
    pub(super) tenant: &'a str,
    pub(super) session_id: &'a str,
    pub(super) node_type: &'static str,
    pub(super) number: u32,
    pub(super) strategy: &'a str,
    pub(super) batch: &'a str,
    pub(super) at: Time,
    pub(super) text: String,
    pub(super) metadata: String,
    pub(super) content_hash: String,
    pub(super) content_digest: String,
    pub(super) role: &'static str,
    pub(super) phase_name: Option<&'a str>,
    pub(super) tokens: u32,
    pub(super) turn_number: u32,
    pub(super) content_json: String,
    pub(super) circumstance_json: String,
    pub(super) words: Vec<String>,
    pub(super) word_counts: Vec<u32>,
    pub(super) cascade_id: Option<&'a str>,
    pub(super) trace_id: &'a str,
    pub(super) selection_type: &'static str,
    pub(super) full_history_size: u32,
    pub(super) context_size: u32,
    pub(super) masked_count: u32,
    pub(super) anchor_hashes: &'a [String],
    pub(super) selected_hashes: &'a [String],
    pub(super) tokens_saved: i64,
    pub(super) receipt_json: &'a str,
    pub(super) billed: Option<f64>,
    pub(super) billed_without: Option<f64>,
    pub(super) billed_estimate: bool,
}

/// A time as `DateTime64(3)` reads it: a number would be seconds to one version of the server and ticks to another.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Time(pub(super) MillisSinceEpoch);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = Timestamp::from_millisecond(self.0.0).map_err(ser::Error::custom)?;
        serializer.collect_str(&time.strftime("%Y-%m-%d %H:%M:%S.%3f"))
    }
}

/// The words of a text, each once, and how often each occurs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WordCounts {
    pub(super) words: Vec<String>,
    pub(super) counts: Vec<u32>,
}

impl WordCounts {
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for word in texts.into_iter().flat_map(words) {
            let word = if word.len() > LONGEST { digest(word.as_bytes()) } else { word };
            *counts.entry(word).or_default() += 1;
        }
        let (words, counts) = counts.into_iter().unzip();
        Self { words, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_and_long_ones_are_short() {
        let terms = WordCounts::of(["b a", "a"]);
        assert_eq!((terms.words, terms.counts), (vec!["a".into(), "b".into()], vec![2, 1]));
        assert_eq!(WordCounts::of(["x".repeat(1 << 20).as_str()]).words[0].len(), 64);
    }
}
