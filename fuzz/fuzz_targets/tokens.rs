//! Token counts of any text are those of another implementation of the same vocabularies.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::Tokenizer;

fuzz_target!(|text: &str| {
    let (o200k, cl100k) = (bpe_openai::o200k_base(), bpe_openai::cl100k_base());
    assert_eq!(Tokenizer::O200k { factor: 1.0 }.count(text) as usize, o200k.count(text));
    assert_eq!(Tokenizer::Cl100k.count(text) as usize, cl100k.count(text));
});
