//! Price lists that others publish: models.dev's `api.json` and `LiteLLM`'s `model_prices_and_context_window.json`.
//!
//! Both list every seller of a model. Only what a model's maker asks is taken: a name in our table stands for the model
//! wherever it is served, and a reseller's price would be taken for everybody's.

mod litellm;
mod merge;
mod models_dev;

pub use merge::{Merged, merge};

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json;

/// Dollars for a million tokens above which a figure is a mistake (chosen: the dearest model so far asks 600).
const MOST_DOLLARS: f64 = 100_000.0;

/// Who publishes a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceSource {
    ModelsDev,
    LiteLlm,
}

impl fmt::Display for PriceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelsDev => "models.dev",
            Self::LiteLlm => "LiteLLM",
        })
    }
}

/// Who makes a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    Anthropic,
    OpenAi,
    Other,
}

/// Prices of requests whose prompt is larger than a size, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListedBand {
    pub above: u64,
    pub input: f64,
    pub output: f64,
}

/// One model of a list. Prices are US dollars for a million tokens; `None` where the list does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// Without its provider.
    pub name: String,
    pub maker: Maker,
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// For the longer life.
    pub cache_write_long: Option<f64>,
    pub cache_least: Option<u32>,
    pub window: Option<u32>,
    /// In ascending order.
    pub bands: Vec<ListedBand>,
}

/// Why a model of a list is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Somebody sells it who did not make it.
    Reseller,
    /// It answers with something else than text.
    NotText,
    NoPrice,
    /// A figure is negative, no number or absurdly high.
    BadPrice,
    /// It is listed twice, and the first was taken.
    Repeated,
    /// Its entry is not of the expected shape.
    Unreadable,
}

impl Left {
    /// Returns the reason in words that follow a number of models.
    pub fn why(self) -> &'static str {
        match self {
            Self::Reseller => "sold by others than their maker",
            Self::NotText => "not for text",
            Self::NoPrice => "without a price",
            Self::BadPrice => "with a price that cannot be",
            Self::Repeated => "listed twice",
            Self::Unreadable => "not readable",
        }
    }
}

/// A list as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceList {
    pub source: PriceSource,
    /// By name.
    pub models: Vec<ListedModel>,
    /// The names that were not taken, by reason.
    pub left: BTreeMap<Left, Vec<String>>,
}

/// Why a file is no price list.
#[derive(Debug, thiserror::Error)]
pub enum PriceListError {
    #[error("not JSON")]
    Syntax(#[source] serde_json::Error),
    #[error("neither a models.dev `api.json` nor a LiteLLM `model_prices_and_context_window.json`")]
    Unknown,
}

/// An object whose values are read later, each by itself.
type Object<'a> = BTreeMap<String, &'a RawValue>;

/// Reads a price list; which one it is, is recognised by content.
///
/// Shape: never panics, whatever the bytes; an entry that cannot be read is left out and counted.
pub fn read_prices(bytes: &[u8]) -> Result<PriceList, PriceListError> {
    let text = json::utf8_document(json::without_mark(bytes));
    let entries: Object<'_> = serde_json::from_str(&text).map_err(|error| {
        match error.classify() {
            // JSON, but no object.
            serde_json::error::Category::Data => PriceListError::Unknown,
            _ => PriceListError::Syntax(error),
        }
    })?;
    let has = |key: &str| {
        entries.values().any(|entry| {
            serde_json::from_str::<Object<'_>>(entry.get())
                .is_ok_and(|entry| entry.contains_key(key))
        })
    };
    let source = if has("litellm_provider") {
        PriceSource::LiteLlm
    } else if has("models") {
        PriceSource::ModelsDev
    } else {
        return Err(PriceListError::Unknown);
    };
    let mut taken = Taken::default();
    match source {
        PriceSource::ModelsDev => models_dev::read(&entries, &mut taken),
        PriceSource::LiteLlm => litellm::read(&entries, &mut taken),
    }
    Ok(PriceList { source, models: taken.models.into_values().collect(), left: taken.left })
}

/// What was read so far.
#[derive(Default)]
struct Taken {
    models: BTreeMap<String, ListedModel>,
    left: BTreeMap<Left, Vec<String>>,
}

impl Taken {
    fn leave(&mut self, name: &str, why: Left) {
        self.left.entry(why).or_default().push(name.to_owned());
    }

    /// Takes a model whose figures can be; of two with one name, the first.
    fn take(&mut self, listed_as: &str, mut model: ListedModel) {
        let bands = model.bands.iter().flat_map(|band| [band.input, band.output]);
        let caches = [model.cache_read, model.cache_write, model.cache_write_long];
        let mut all = [model.input, model.output]
            .into_iter()
            .chain(caches.into_iter().flatten())
            .chain(bands);
        if !all.all(|price| (0.0..=MOST_DOLLARS).contains(&price)) {
            return self.leave(listed_as, Left::BadPrice);
        }
        // A price of nothing is a trial or a gap, and the prices of the cache are multiples of it.
        if model.input <= 0.0 {
            return self.leave(listed_as, Left::NoPrice);
        }
        if self.models.contains_key(&model.name) {
            return self.leave(listed_as, Left::Repeated);
        }
        model.bands.sort_by_key(|band| band.above);
        self.models.insert(model.name.clone(), model);
    }
}

/// Returns the maker that a provider's name stands for; `None` where it sells what others made.
fn maker(provider: &str) -> Option<Maker> {
    match provider {
        "anthropic" => Some(Maker::Anthropic),
        "openai" | "text-completion-openai" => Some(Maker::OpenAi),
        "google" | "gemini" | "deepseek" | "moonshotai" | "moonshot" | "zai" | "zhipuai"
        | "alibaba" | "dashscope" | "xai" | "mistral" | "cohere" | "cohere_chat" | "minimax"
        | "stepfun" | "perplexity" | "inception" => Some(Maker::Other),
        _ => None,
    }
}

/// A number, or nothing where something else stands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        Ok(Self(raw.parse().ok()))
    }
}

impl Number {
    /// Returns it as a whole number of tokens, where it can be one.
    fn tokens(self) -> Option<u32> {
        self.0
            .filter(|number| (1.0..=f64::from(u32::MAX)).contains(number))
            .map(|number| number as u32)
    }
}

#[cfg(test)]
mod tests;
