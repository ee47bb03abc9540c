use proptest::prelude::*;

use super::*;

const MODELS_DEV: &str = r#"{
"anthropic":{"id":"anthropic","name":"Anthropic","models":{
  "claude-opus-5-5":{"id":"claude-opus-5-5","limit":{"context":1000000,"output":128000},"cost":{"input":4,"output":20,"cache_read":0.2,"cache_write":5}},
  "claude-free":{"cost":{"input":0,"output":0}},
  "claude-unpriced":{"limit":{"context":1}}}},
"openai":{"id":"openai","models":{
  "gpt-6-astra":{"limit":{"context":1050000},"cost":{"input":10,"output":50,"cache_read":1,"cache_write":12.5,"context_over_200k":{"input":20,"output":75},"tiers":[{"input":20,"output":75,"tier":{"type":"context","size":272000}}]}},
  "gpt-image":{"modalities":{"input":["text"],"output":["image"]},"cost":{"input":1,"output":1}},
  "gpt-odd":{"cost":{"input":-1,"output":1}},
  "gpt-absurd":{"cost":{"input":1e300,"output":1}}}},
"openrouter":{"models":{"anthropic/claude-opus-5-5":{"cost":{"input":9,"output":9}}}},
"broken":[]
}"#;

const LITELLM: &str = r#"{
"sample_spec":{"litellm_provider":"one of","input_cost_per_token":0},
"claude-opus-5-5":{"litellm_provider":"anthropic","mode":"chat","max_input_tokens":1000000,"input_cost_per_token":4e-06,"output_cost_per_token":2e-05,"cache_read_input_token_cost":2e-07,"cache_creation_input_token_cost":5e-06,"cache_creation_input_token_cost_above_1hr":8e-06,"prompt_cache_min_tokens":512},
"claude-3-haiku-20240307":{"litellm_provider":"anthropic","mode":"chat","input_cost_per_token":2.5e-07,"output_cost_per_token":1.25e-06,"cache_creation_input_token_cost":3e-07,"cache_creation_input_token_cost_above_1hr":6e-06},
"claude-haiku-5-5":{"litellm_provider":"anthropic","mode":"chat","input_cost_per_token":1e-07,"output_cost_per_token":5e-07,"input_cost_per_token_above_100k_tokens":5e-07,"output_cost_per_token_above_100k_tokens":2.5e-06},
"deepseek/deepseek-flash":{"litellm_provider":"deepseek","mode":"chat","input_cost_per_token":1.5e-07,"output_cost_per_token":6e-07,"input_cost_per_token_cache_hit":3e-09},
"openai/eu/gpt-6.1-sol":{"litellm_provider":"openai","mode":"responses","input_cost_per_token":9e-06,"output_cost_per_token":9e-06},
"text-embedding-3-small":{"litellm_provider":"openai","mode":"embedding","input_cost_per_token":2e-08},
"dall-e-3":{"litellm_provider":"openai","mode":"image_generation"},
"bedrock/claude-opus-5-5":{"litellm_provider":"bedrock","mode":"chat","input_cost_per_token":1,"output_cost_per_token":1},
"anthropic/claude-opus-5-5":{"litellm_provider":"anthropic","mode":"chat","input_cost_per_token":7e-06,"output_cost_per_token":2e-05},
"odd":{"litellm_provider":"openai","mode":"chat","input_cost_per_token":"free","output_cost_per_token":1e-6}
}"#;

fn find<'a>(list: &'a PriceList, name: &str) -> &'a ListedModel {
    list.models.iter().find(|model| model.name == name).expect("taken")
}

fn omitted(list: &PriceList) -> Vec<(OmitReason, Vec<&str>)> {
    list.omitted
        .iter()
        .map(|(why, names)| (*why, names.iter().map(|name| &**name).collect()))
        .collect()
}

#[test]
fn models_dev_is_read() {
    let list = read_prices(MODELS_DEV.as_bytes()).expect("a list");
    assert_eq!(list.source, PriceSource::ModelsDev);
    let opus = find(&list, "claude-opus-5-5");
    assert_eq!((opus.input, opus.cache_read, opus.window), (4.0, Some(0.2), Some(1_000_000)));
    assert_eq!(opus.maker, Maker::Anthropic);
    let astra = find(&list, "gpt-6-astra");
    assert_eq!(astra.bands, [ListedBand { above: 272_000, input: 20.0, output: 75.0 }]);
    assert_eq!(list.models.len(), 2);
    assert_eq!(
        omitted(&list),
        [
            (OmitReason::Reseller, vec!["openrouter/anthropic/claude-opus-5-5"]),
            (OmitReason::NotText, vec!["openai/gpt-image"]),
            (OmitReason::NoPrice, vec!["anthropic/claude-free", "anthropic/claude-unpriced"]),
            (OmitReason::BadPrice, vec!["openai/gpt-absurd", "openai/gpt-odd"]),
            (OmitReason::Unreadable, vec!["broken"]),
        ]
    );
}

#[test]
fn litellm_is_read() {
    let list = read_prices(LITELLM.as_bytes()).expect("a list");
    assert_eq!(list.source, PriceSource::LiteLlm);
    let opus = find(&list, "claude-opus-5-5");
    assert_eq!((opus.input, opus.output, opus.cache_read), (4.0, 20.0, Some(0.2)));
    assert_eq!((opus.cache_write, opus.cache_write_long), (Some(5.0), Some(8.0)));
    assert_eq!((opus.cache_least, opus.window), (Some(512), Some(1_000_000)));
    assert_eq!(find(&list, "claude-3-haiku-20240307").cache_write_long, None, "24 times is wrong");
    let haiku = find(&list, "claude-haiku-5-5");
    assert_eq!(haiku.bands, [ListedBand { above: 100_000, input: 0.5, output: 2.5 }]);
    assert_eq!(find(&list, "deepseek-flash").cache_read, Some(0.003));
    assert_eq!(find(&list, "text-embedding-3-small").output.to_bits(), 0);
    assert_eq!(
        omitted(&list),
        [
            (OmitReason::Reseller, vec!["bedrock/claude-opus-5-5", "openai/eu/gpt-6.1-sol"]),
            (OmitReason::NotText, vec!["dall-e-3"]),
            (OmitReason::NoPrice, vec!["odd"]),
            (OmitReason::Repeated, vec!["anthropic/claude-opus-5-5"]),
        ]
    );
}

#[test]
fn other_files_are_refused() {
    for text in ["[]", "{}", "1", "{\"a\":{\"b\":1}}", "null"] {
        assert!(matches!(read_prices(text.as_bytes()), Err(PriceListError::Unknown)), "{text}");
    }
    for text in ["", "{", "no", "{\"a\":"] {
        assert!(matches!(read_prices(text.as_bytes()), Err(PriceListError::Syntax(_))), "{text}");
    }
}

proptest! {
    /// Damaged bytes never make it panic, and every price that it accepts is possible.
    #[test]
    fn nothing_panics(
        list in prop::sample::select(vec![MODELS_DEV, LITELLM]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        odd in prop::sample::select(vec!["4", "1e999", "-1", "null", "\"x\"", "[]", "{}", "true"]),
    ) {
        let mut bytes = list.replace("20", odd).into_bytes();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(list) = read_prices(&bytes) {
            for model in list.models {
                prop_assert!(model.input > 0.0 && model.input <= MOST_DOLLARS);
            }
        }
    }
}
