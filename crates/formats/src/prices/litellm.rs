//! `LiteLLM`: one flat object, a model with its provider in each entry; US dollars for one token.

use serde_json::value::RawValue;

use super::{Left, ListedBand, ListedModel, Maker, Number, Object, Taken, maker};

/// Keys of the file that are no models.
const NO_MODELS: [&str; 2] = ["sample_spec", "fallback_generalizations"];
/// What the file calls models that answer with text, or with vectors of it.
const TEXT: [&str; 4] = ["chat", "responses", "completion", "embedding"];
/// A write for the longer life costs between these multiples of one for the shorter; the file has 0.4 and 24 for old
/// models by mistake.
const LONGER: std::ops::RangeInclusive<f64> = 1.0..=4.0;

pub(super) fn read(entries: &Object<'_>, taken: &mut Taken) {
    // Names without a provider first: of two entries of a model they are the maker's own.
    let (bare, prefixed): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter(|(name, _)| !NO_MODELS.contains(&name.as_str()))
        .partition(|(name, _)| !name.contains('/'));
    for (name, raw) in bare.into_iter().chain(prefixed) {
        match model(name, raw) {
            Ok(model) => taken.take(name, model),
            Err(why) => taken.leave(name, why),
        }
    }
}

fn model(name: &str, raw: &RawValue) -> Result<ListedModel, Left> {
    let entry: Object<'_> = serde_json::from_str(raw.get()).map_err(|_| Left::Unreadable)?;
    let text = |key: &str| entry.get(key).map(|raw| raw.get().trim_matches('"'));
    let number = |key: &str| {
        entry.get(key).and_then(|raw| serde_json::from_str::<Number>(raw.get()).ok()?.0)
    };
    let million = |key: &str| number(key).map(|price| rounded(price * 1e6));
    let provider = text("litellm_provider").ok_or(Left::Unreadable)?;
    let maker = maker(provider).ok_or(Left::Reseller)?;
    // `openai/…/model` is a region or a setting at another price.
    let rest = name.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    if rest.contains('/') {
        return Err(Left::Reseller);
    }
    let mode = text("mode").unwrap_or("chat");
    if !TEXT.contains(&mode) {
        return Err(Left::NotText);
    }
    let input = million("input_cost_per_token").ok_or(Left::NoPrice)?;
    let output = match million("output_cost_per_token") {
        Some(output) => output,
        None if mode == "embedding" => 0.0,
        None => return Err(Left::NoPrice),
    };
    let write = million("cache_creation_input_token_cost");
    let long = million("cache_creation_input_token_cost_above_1hr");
    let long = long.filter(|long| {
        maker != Maker::Anthropic
            || write.is_some_and(|write| LONGER.contains(&(long / write.max(f64::MIN_POSITIVE))))
    });
    let tokens = |key: &str| Number(number(key)).tokens();
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

/// Finds `input_cost_per_token_above_200k_tokens` and the like, for any size.
fn bands(
    entry: &Object<'_>,
    million: &dyn Fn(&str) -> Option<f64>,
    (input, output): (f64, f64),
) -> Vec<ListedBand> {
    let band = |key: &String| {
        let size = key.strip_prefix("input_cost_per_token_above_")?.strip_suffix("k_tokens")?;
        let above = size.parse::<u32>().ok().map(|size| u64::from(size) * 1000)?;
        let other = million(&format!("output_cost_per_token_above_{size}k_tokens"));
        Some(ListedBand { above, input: million(key)?, output: other.unwrap_or(output) })
    };
    let changes = |band: &ListedBand| {
        (band.input - input).abs() > 1e-9 || (band.output - output).abs() > 1e-9
    };
    entry.keys().filter_map(band).filter(changes).collect()
}

/// Rounds what a multiplication by a million made of a decimal fraction.
fn rounded(price: f64) -> f64 {
    (price * 1e9).round() / 1e9
}
