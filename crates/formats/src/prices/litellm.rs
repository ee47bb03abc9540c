//! `LiteLLM`: one flat object, a model with its provider in each entry; US dollars for one token.

use std::collections::BTreeMap;

use super::{ListedBand, ListedModel, Maker, OmitReason, PriceListBuilder, maker, tokens};
use crate::object::Object;

/// Keys of the file that are not models.
const NO_MODELS: [&str; 2] = ["sample_spec", "fallback_generalizations"];
/// The modes of models that return text, or embeddings of text.
const TEXT: [&str; 4] = ["chat", "responses", "completion", "embedding"];
/// The price of a cache write with the longer lifetime, in multiples of one with the shorter. By mistake the file has 0.4
/// and 24 for old models.
const LONGER: std::ops::RangeInclusive<f64> = 1.0..=4.0;

pub(super) fn read(entries: &BTreeMap<&str, &str>, builder: &mut PriceListBuilder) {
    // Names without a provider come first: of two entries of a model that one is the maker's own.
    let (bare, prefixed): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter(|(name, _)| !NO_MODELS.contains(name))
        .partition(|(name, _)| !name.contains('/'));
    for (name, raw) in bare.into_iter().chain(prefixed) {
        match model(name, raw) {
            Ok(model) => builder.add(name, model),
            Err(why) => builder.omit(name, why),
        }
    }
}

fn model(name: &str, raw: &str) -> Result<ListedModel, OmitReason> {
    let entry = Object::parse(raw).ok_or(OmitReason::Unreadable)?;
    let text = |key: &str| entry.get(key).map(|raw| raw.trim_matches('"'));
    let million = |key: &str| entry.number(key).map(|price| rounded(price * 1e6));
    let provider = text("litellm_provider").ok_or(OmitReason::Unreadable)?;
    let maker = maker(provider).ok_or(OmitReason::Reseller)?;
    // `openai/…/model` is a region or a setting with another price.
    let rest = name.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    if rest.contains('/') {
        return Err(OmitReason::Reseller);
    }
    let mode = text("mode").unwrap_or("chat");
    if !TEXT.contains(&mode) {
        return Err(OmitReason::NotText);
    }
    let input = million("input_cost_per_token").ok_or(OmitReason::NoPrice)?;
    let output = match million("output_cost_per_token") {
        Some(output) => output,
        None if mode == "embedding" => 0.0,
        None => return Err(OmitReason::NoPrice),
    };
    let write = million("cache_creation_input_token_cost");
    let long = million("cache_creation_input_token_cost_above_1hr");
    let long = long.filter(|long| {
        maker != Maker::Anthropic
            || write.is_some_and(|write| LONGER.contains(&(long / write.max(f64::MIN_POSITIVE))))
    });
    let tokens = |key: &str| tokens(&entry, key);
    Ok(ListedModel {
        name: rest.to_owned(),
        maker,
        input,
        output,
        cache_read: million("cache_read_input_token_cost")
            .or_else(|| million("input_cost_per_token_cache_hit")),
        cache_write: write,
        cache_write_long: long,
        cache_least: tokens("prompt_cache_min_tokens"),
        window: tokens("max_input_tokens").or_else(|| tokens("max_tokens")),
        bands: bands(&entry, &million, (input, output)),
    })
}

/// Reads the keys `input_cost_per_token_above_200k_tokens`, for any size.
fn bands(
    entry: &Object<'_>,
    million: &dyn Fn(&str) -> Option<f64>,
    (input, output): (f64, f64),
) -> Vec<ListedBand> {
    let band = |key: &str| {
        let size = key.strip_prefix("input_cost_per_token_above_")?.strip_suffix("k_tokens")?;
        let above = size.parse::<u32>().ok().map(|size| u64::from(size) * 1000)?;
        let other = million(&format!("output_cost_per_token_above_{size}k_tokens"));
        Some(ListedBand { above, input: million(key)?, output: other.unwrap_or(output) })
    };
    let changes = |band: &ListedBand| {
        (band.input - input).abs() > 1e-9 || (band.output - output).abs() > 1e-9
    };
    entry.fields().into_keys().filter_map(band).filter(changes).collect()
}

/// Removes the rounding error of a multiplication by a million.
fn rounded(price: f64) -> f64 {
    (price * 1e9).round() / 1e9
}
