//! Any bytes through recognition to the reader that they ask for; what is read is written back unchanged.
//!
//! `cargo +nightly fuzz run read`; seeds are the recorded sessions of `crates/formats/tests`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_formats::{Compaction, ReadOptions, read};

fuzz_target!(|bytes: &[u8]| {
    for compaction in [Compaction::PassOver, Compaction::Honour] {
        if let Ok(session) = read(bytes, &ReadOptions { compaction, ..ReadOptions::default() }) {
            assert_eq!(session.messages.len(), session.origins.len());
        }
    }
});
