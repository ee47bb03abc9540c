//! Names, runs and error lines of any text: every name stands in the text, every run begins and ends at a character.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::names;
use plimsoll_core::text::is_error_line;

fuzz_target!(|text: &str| {
    names::each_name(text, |name| assert!(text.contains(name)));
    names::each_run(text, |_, start, end| assert!(!text[start..end].is_empty()));
    for line in text.lines() {
        let _ = is_error_line(line);
    }
});
