//! Token counts against another implementation of the same vocabularies.

use plimsoll_core::Tokenizer;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Texts of mixed content: words, code, numbers, white space, scripts, emoji, control characters, any character.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-zA-Z]{1,12}",
        2 => "[ \\t\\n\\r]{1,6}",
        2 => "[0-9]{1,9}",
        2 => "[{}()\\[\\];:,.=+*/<>|&^%$#@!?\"'`~_-]{1,6}",
        1 => "'(s|t|re|ve|m|ll|d|S|RE|LL)",
        1 => "[à-öø-ÿА-я]{1,8}",
        1 => "[ぁ-ん一-龥가-힣]{1,8}",
        1 => "[🀀-🫿]{1,3}",
        1 => "\\PC{1,6}",
        1 => any::<String>(),
        1 => "<\\|(endoftext|im_start|fim_prefix)\\|>",
        1 => "(ab|  |\\n\\n|=){10,60}",
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

#[test]
fn counts_are_those_of_another_implementation() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let (o200k, cl100k) = (bpe_openai::o200k_base(), bpe_openai::cl100k_base());
    TestRunner::new(config)
        .run(&text(), |text| {
            let counted = Tokenizer::O200k { factor: 1.0 }.count(&text);
            prop_assert_eq!(counted as usize, o200k.count(&text), "o200k: {:?}", text);
            prop_assert_eq!(
                Tokenizer::Cl100k.count(&text) as usize,
                cl100k.count(&text),
                "cl100k: {:?}",
                text
            );
            Ok(())
        })
        .unwrap();
}
