//! Price lists that others publish: models.dev's `api.json` and `LiteLLM`'s `model_prices_and_context_window.json`.
//!
//! Both list every seller of a model. Only the maker's price is read: a name in our table stands for the model at every
//! provider, so a reseller's price would apply to all of them.

mod litellm;
mod merge;
mod models_dev;

pub use merge::{PriceChanges, merge};

use std::collections::BTreeMap;
use std::fmt;

use crate::json;
use crate::object::Object;

/// The highest possible price in dollars for a million tokens (chosen: the dearest model so far costs 600).
const MOST_DOLLARS: f64 = 100_000.0;

/// The publisher of a list.
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

/// The maker of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    Anthropic,
    OpenAi,
    Other,
}

/// Prices of requests with a prompt of more than `above` tokens, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListedBand {
    pub above: u64,
    pub input: f64,
    pub output: f64,
}

/// One model of a list. Prices are US dollars for a million tokens; `None` where the list has none.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// The name without the provider.
    pub name: String,
    pub maker: Maker,
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// The price of a cache write with the longer lifetime.
    pub cache_write_long: Option<f64>,
    pub cache_least: Option<u32>,
    pub window: Option<u32>,
    /// In ascending order.
    pub bands: Vec<ListedBand>,
}

/// The reason why a model of a list is omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OmitReason {
    /// The seller did not make it.
    Reseller,
    /// Its output is not text.
    NotText,
    NoPrice,
    /// A figure is negative, not a number or absurdly high.
    BadPrice,
    /// An earlier entry has the same name.
    Repeated,
    /// Its entry does not have the expected shape.
    Unreadable,
}

impl OmitReason {
    /// Returns the reason as words that follow a number of models.
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
    /// Sorted by name.
    pub models: Vec<ListedModel>,
    /// The names of omitted models, by reason.
    pub omitted: BTreeMap<OmitReason, Vec<String>>,
}

/// The reason why a file is not a price list.
#[derive(Debug, thiserror::Error)]
pub enum PriceListError {
    #[error("not JSON")]
    Syntax(#[source] serde_json::Error),
    #[error("neither a models.dev `api.json` nor a LiteLLM `model_prices_and_context_window.json`")]
    Unknown,
}

/// Reads a price list of either publisher and recognises it by its content.
///
/// Shape: never panics; omits an entry that cannot be read, and counts it.
pub fn read_prices(bytes: &[u8]) -> Result<PriceList, PriceListError> {
    let text = json::utf8_document(json::without_mark(bytes));
    let document = Object::read(&text).map_err(|error| match error.classify() {
        // Valid JSON, but not an object.
        serde_json::error::Category::Data => PriceListError::Unknown,
        _ => PriceListError::Syntax(error),
    })?;
    let entries = document.fields();
    let has = |key: &str| {
        let mut entries = entries.values().filter_map(|raw| Object::parse(raw));
        entries.any(|entry| entry.get(key).is_some())
    };
    let source = if has("litellm_provider") {
        PriceSource::LiteLlm
    } else if has("models") {
        PriceSource::ModelsDev
    } else {
        return Err(PriceListError::Unknown);
    };
    let mut builder = PriceListBuilder::default();
    match source {
        PriceSource::ModelsDev => models_dev::read(&entries, &mut builder),
        PriceSource::LiteLlm => litellm::read(&entries, &mut builder),
    }
    Ok(PriceList {
        source,
        models: builder.models.into_values().collect(),
        omitted: builder.omitted,
    })
}

/// A price list as it is read.
#[derive(Default)]
struct PriceListBuilder {
    models: BTreeMap<String, ListedModel>,
    omitted: BTreeMap<OmitReason, Vec<String>>,
}

impl PriceListBuilder {
    fn omit(&mut self, name: &str, why: OmitReason) {
        self.omitted.entry(why).or_default().push(name.to_owned());
    }

    /// Adds a model with possible prices; of two models with one name, the first.
    fn add(&mut self, listed_as: &str, mut model: ListedModel) {
        let bands = model.bands.iter().flat_map(|band| [band.input, band.output]);
        let caches = [model.cache_read, model.cache_write, model.cache_write_long];
        let mut all = [model.input, model.output]
            .into_iter()
            .chain(caches.into_iter().flatten())
            .chain(bands);
        if !all.all(|price| (0.0..=MOST_DOLLARS).contains(&price)) {
            return self.omit(listed_as, OmitReason::BadPrice);
        }
        // A price of zero is a trial or a gap in the list; the prices of the cache are multiples of it.
        if model.input <= 0.0 {
            return self.omit(listed_as, OmitReason::NoPrice);
        }
        if self.models.contains_key(&model.name) {
            return self.omit(listed_as, OmitReason::Repeated);
        }
        model.bands.sort_by_key(|band| band.above);
        self.models.insert(model.name.clone(), model);
    }
}

/// Returns the maker with this provider name; `None` for a reseller.
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

/// Returns a field as a number of tokens, if it is a possible one.
fn tokens(object: &Object<'_>, key: &str) -> Option<u32> {
    let number = object.number(key)?;
    (1.0..=f64::from(u32::MAX)).contains(&number).then_some(number as u32)
}

#[cfg(test)]
mod tests;
