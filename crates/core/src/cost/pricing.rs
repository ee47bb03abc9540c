//! The table of prices: dated entries by name, and fallbacks for models that it does not list.

use std::cell::LazyCell;

use serde::{Deserialize, Serialize};

use super::name::{self, Rest};
use super::prices::{Band, CacheKind, Prices, WriteTier};
use crate::message::MillisSinceEpoch;
use crate::recall::written;

/// The table that ships with the binary.
pub const SHIPPED_PRICING: &str = include_str!("../../pricing.toml");

/// The highest valid price, in dollars for a million tokens or as a multiple (chosen: far above any).
const MOST_PRICE: f64 = 1e6;

/// The prices of one model from one day on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// The model's name without provider, dates and revisions.
    pub name: String,
    /// The first day on which it holds, `YYYY-MM-DD`; none for all earlier days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// US dollars for a million tokens.
    pub input: f64,
    pub output: f64,
    #[serde(default)]
    pub cache: CacheKind,
    /// Multiples of input.
    #[serde(default = "one")]
    pub cache_read: f64,
    /// By life, the shortest first; empty if nothing is cached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_writes: Vec<WriteTier>,
    /// The least length that is cached, in tokens.
    #[serde(default)]
    pub cache_least: u32,
    /// The step in which reads are counted, in tokens; the default is `OpenAI`'s.
    #[serde(default = "usual_step", skip_serializing_if = "is_usual_step")]
    pub cache_step: u32,
    /// The mean part of the cached tokens that a request reads, if the provider promises nothing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cache_hits: f64,
    /// The most tokens of prompt and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Prices above a size of the prompt, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<Band>,
    /// Whether thinking is bound to all messages before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_thinking: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
}

/// Hours with higher prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// The factor for all prices.
    pub times: f64,
    /// Hours of UTC, first and past the last, from Monday to Friday.
    pub hours: Vec<[u8; 2]>,
}

/// The model whose prices unlisted names with this beginning get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fallback {
    pub begins: String,
    pub like: String,
}

/// Prices by model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pricing {
    /// The day on which the figures were read, `YYYY-MM-DD`.
    pub date: String,
    /// The longest beginning that fits wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Fallback>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<PriceEntry>,
}

/// How a model was found in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceMatch {
    /// The table lists it.
    Listed,
    /// It is priced as another model, so its figures are estimates.
    Estimate,
    /// No model was named; its figures are estimates.
    Unnamed,
}

/// The prices of a model, and the entry that they come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice<'a> {
    /// The entry's name.
    pub name: &'a str,
    pub from: Option<&'a str>,
    pub prices: Prices,
    pub found: PriceMatch,
}

impl ModelPrice<'_> {
    /// Returns whether its figures are estimates.
    pub fn is_estimate(&self) -> bool {
        self.found != PriceMatch::Listed
    }
}

/// An error in a pricing file.
#[derive(Debug, thiserror::Error)]
pub enum PricingError {
    #[error("the pricing table cannot be read")]
    Syntax(#[source] Box<toml::de::Error>),
    #[error("the fallback `{0}` is not one of the table's models")]
    Fallback(String),
    #[error("a price of `{0}` is negative, no number or absurdly high")]
    Number(String),
    #[error("the date `{0}` is not of the form YYYY-MM-DD")]
    Date(String),
    #[error("`{0}` has more than two bands or write tiers, or they do not ascend")]
    Order(String),
}

impl Pricing {
    /// Returns the table that ships with the binary.
    pub fn shipped() -> Self {
        Self::parse(SHIPPED_PRICING).expect("the shipped table is checked by a test")
    }

    /// Reads a complete table.
    pub fn parse(text: &str) -> Result<Self, PricingError> {
        Self::read(text)?.with_listed_fallbacks()
    }

    /// Reads a table whose fallbacks may be models of another table.
    fn read(text: &str) -> Result<Self, PricingError> {
        let pricing: Self =
            toml::from_str(text).map_err(|error| PricingError::Syntax(Box::new(error)))?;
        pricing.check()?;
        Ok(pricing)
    }

    fn with_listed_fallbacks(self) -> Result<Self, PricingError> {
        let is_listed = |like: &String| self.model.iter().any(|one| one.name == *like);
        match self.fallback.iter().find(|fallback| !is_listed(&fallback.like)) {
            Some(unknown) => Err(PricingError::Fallback(unknown.like.clone())),
            None => Ok(self),
        }
    }

    /// Adds another table: its models and fallbacks replace those of the same name.
    pub fn overlaid(mut self, text: &str) -> Result<Self, PricingError> {
        let mut over = Self::read(text)?;
        for entry in &mut over.model {
            entry.name = name::normal(&entry.name);
        }
        self.model.retain(|one| over.model.iter().all(|new| new.name != one.name));
        self.model.extend(over.model);
        self.fallback.retain(|one| over.fallback.iter().all(|new| new.begins != one.begins));
        self.fallback.extend(over.fallback);
        Self { date: over.date, ..self }.with_listed_fallbacks()
    }

    fn check(&self) -> Result<(), PricingError> {
        let dates = self.model.iter().filter_map(|entry| entry.from.as_ref());
        for date in std::iter::once(&self.date).chain(dates) {
            if !is_date(date) {
                return Err(PricingError::Date(date.clone()));
            }
        }
        for entry in &self.model {
            let bands = entry.bands.iter().flat_map(|band| [band.input, band.output]);
            let writes = entry.cache_writes.iter().map(|tier| tier.price);
            let peak = entry.peak.iter().map(|peak| peak.times);
            let mut all = [entry.input, entry.output, entry.cache_read, entry.cache_hits]
                .into_iter()
                .chain(bands)
                .chain(writes)
                .chain(peak);
            if all.any(|price| !(0.0..=MOST_PRICE).contains(&price)) {
                return Err(PricingError::Number(entry.name.clone()));
            }
            let ascend = entry.bands.is_sorted_by(|one, next| one.above < next.above)
                && entry.cache_writes.is_sorted_by(|one, next| one.seconds < next.seconds);
            if !ascend || entry.bands.len() > 2 || entry.cache_writes.len() > 2 {
                return Err(PricingError::Order(entry.name.clone()));
            }
        }
        Ok(())
    }

    /// Returns the prices of `model`, as recorded or as `provider/model`, at a time; without a time, those of the table's date.
    ///
    /// A model that is not listed gets the prices of the listed one whose name is its longest beginning, else those of a fallback.
    pub fn of(&self, model: Option<&str>, at: Option<MillisSinceEpoch>) -> ModelPrice<'_> {
        let Some(model) = model.filter(|model| !model.is_empty()) else {
            return self.fallback("", at, PriceMatch::Unnamed);
        };
        let name = name::normal(model);
        let fitting = self.model.iter().filter_map(|entry| {
            let rest = name::rest(name.strip_prefix(entry.name.as_str())?)?;
            Some((entry, rest))
        });
        let Some((entry, rest)) = fitting.max_by_key(|(entry, _)| entry.name.len()) else {
            return self.fallback(&name, at, PriceMatch::Estimate);
        };
        let found = if rest == Rest::Same { PriceMatch::Listed } else { PriceMatch::Estimate };
        self.priced(&entry.name, &name, at, found)
    }

    /// As [`Pricing::of`]; `None` if the table does not list the model.
    pub fn known(&self, model: &str, at: Option<MillisSinceEpoch>) -> Option<ModelPrice<'_>> {
        Some(self.of(Some(model), at)).filter(|priced| !priced.is_estimate())
    }

    fn fallback(
        &self,
        name: &str,
        at: Option<MillisSinceEpoch>,
        found: PriceMatch,
    ) -> ModelPrice<'_> {
        let fitting = self.fallback.iter().filter(|one| name.starts_with(one.begins.as_str()));
        match fitting.max_by_key(|one| one.begins.len()) {
            Some(fallback) => self.priced(&fallback.like, name, at, found),
            None => ModelPrice { name: "", from: None, prices: Prices::PLAIN, found },
        }
    }

    /// Returns the prices of a listed model on a day, for a model that is called `name`.
    fn priced(
        &self,
        listed: &str,
        name: &str,
        at: Option<MillisSinceEpoch>,
        found: PriceMatch,
    ) -> ModelPrice<'_> {
        // Most entries hold for all days, and to write a day takes longer than all else here.
        let on = LazyCell::new(|| at.map(day));
        let has_begun = |from: &str| from <= on.as_deref().unwrap_or(&self.date);
        let entries = self.model.iter().filter(|entry| entry.name == listed);
        // The newest that holds already; of a time before all of them, the oldest.
        let held = entries
            .clone()
            .filter(|entry| entry.from.as_deref().is_none_or(has_begun))
            .max_by_key(|entry| &entry.from);
        let Some(entry) = held.or_else(|| entries.min_by_key(|entry| &entry.from)) else {
            return ModelPrice { name: "", from: None, prices: Prices::PLAIN, found };
        };
        let mut prices = entry.prices(at);
        if entry.bound_thinking.is_none() || found != PriceMatch::Listed {
            prices.bound_thinking = name::binds_thinking(name).unwrap_or(false);
        }
        ModelPrice { name: &entry.name, from: entry.from.as_deref(), prices, found }
    }
}

impl PriceEntry {
    fn prices(&self, at: Option<MillisSinceEpoch>) -> Prices {
        let mut bands = Prices::PLAIN.bands;
        for (band, own) in bands.iter_mut().zip(&self.bands) {
            *band = *own;
        }
        let peak = self.peak.as_ref().filter(|peak| at.is_some_and(|at| peak.holds(at)));
        let times = peak.map_or(1.0, |peak| peak.times);
        let short = self.cache_writes.first();
        Prices {
            input: self.input * times,
            output: self.output * times,
            cache_read: self.cache_read,
            cache_write: short.map_or(1.0, |tier| tier.price),
            cache_seconds: short.map_or(0, |tier| tier.seconds),
            longer: self.cache_writes.get(1).copied(),
            cache_least: self.cache_least,
            cache_step: self.cache_step,
            cache_hits: self.cache_hits.min(1.0),
            cache: self.cache,
            bands,
            window: self.window.unwrap_or(0),
            bound_thinking: self.bound_thinking.unwrap_or(false),
        }
    }
}

impl Peak {
    fn holds(&self, at: MillisSinceEpoch) -> bool {
        let hours = at.0.div_euclid(3_600_000);
        // 1970-01-01 was a Thursday.
        let weekday = (hours.div_euclid(24) + 3).rem_euclid(7);
        let hour = hours.rem_euclid(24);
        weekday < 5
            && self
                .hours
                .iter()
                .any(|[first, end]| (i64::from(*first)..i64::from(*end)).contains(&hour))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_one(part: &f64) -> bool {
    (*part - 1.0).abs() < f64::EPSILON
}

fn usual_step() -> u32 {
    Prices::PLAIN.cache_step
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_usual_step(step: &u32) -> bool {
    *step == usual_step()
}

fn one() -> f64 {
    1.0
}

fn is_date(text: &str) -> bool {
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    shape && text.len() == 10
}

/// Returns the day of a time as `YYYY-MM-DD`, which sorts by itself.
pub fn day(at: MillisSinceEpoch) -> String {
    written(at).split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "figures of the table are taken as they are")]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "a time may be unknown")]
    fn at(date: &str) -> Option<MillisSinceEpoch> {
        let parts: Vec<i64> = date.split('-').map(|part| part.parse().expect("digits")).collect();
        let days = crate::recall::days_of(parts[0], parts[1], parts[2]);
        Some(MillisSinceEpoch(days * 86_400_000))
    }

    #[test]
    fn the_shipped_table_is_sound() {
        let pricing = Pricing::parse(SHIPPED_PRICING).expect("sound");
        for (model, name, found) in [
            ("anthropic/claude-opus-4-5-20251101", "claude-opus-4-5", PriceMatch::Listed),
            ("claude-opus-5-5", "claude-opus-5-5", PriceMatch::Listed),
            ("claude-opus-5-7", "claude-opus-5", PriceMatch::Estimate),
            ("gpt-6.2-sol", "gpt-6.2-sol", PriceMatch::Listed),
            ("openai/gpt-5.1-codex", "gpt-5.1-codex", PriceMatch::Listed),
            ("gpt-5-2025-08-07", "gpt-5", PriceMatch::Listed),
            ("gpt-9", "gpt-6.2-sol", PriceMatch::Estimate),
            ("claude-novel-7", "claude-sonnet-5-5", PriceMatch::Estimate),
            ("nobody-knows", "claude-sonnet-5-5", PriceMatch::Estimate),
        ] {
            let priced = pricing.of(Some(model), None);
            assert_eq!((priced.name, priced.found), (name, found), "{model}");
        }
        assert_eq!(pricing.of(None, None).found, PriceMatch::Unnamed);
        assert!(pricing.known("nobody-knows", None).is_none());
    }

    #[test]
    fn figures_are_those_of_the_day() {
        let pricing = Pricing::shipped();
        let read = |day| pricing.of(Some("claude-sonnet-5-5"), at(day)).prices.cache_read;
        assert_eq!((read("2026-10-06"), read("2026-10-07")), (0.1, 0.05));
        let input = |day| pricing.of(Some("gemini-4-argon"), at(day)).prices.input;
        assert_eq!((input("2026-11-30"), input("2026-12-01")), (2.0, 4.0));
        assert_eq!(pricing.of(Some("claude-opus-5-5"), None).prices.input, 4.0);
    }

    #[test]
    fn hours_of_the_peak_cost_more() {
        let pricing = Pricing::shipped();
        // A Monday.
        let monday = at("2026-11-23").expect("a time").0;
        let input = |millis| {
            pricing.of(Some("deepseek-v4.1-flash"), Some(MillisSinceEpoch(millis))).prices.input
        };
        let hour = 3_600_000;
        assert_eq!(input(monday + 2 * hour), 2.0 * input(monday + 5 * hour));
        assert_eq!(input(monday + 4 * hour), input(monday - 22 * hour));
    }

    #[test]
    fn newer_and_unknown_claude_models_bind_their_thinking() {
        let pricing = Pricing::shipped();
        for (model, bound) in [
            ("claude-opus-5-5", true),
            ("claude-fable-5-1", true),
            ("claude-fable-5", false),
            ("claude-opus-4-8", false),
            ("claude-sonnet-7", true),
            ("claude-novel", true),
            ("gpt-6.2-sol", false),
            ("nobody-knows", false),
        ] {
            assert_eq!(pricing.of(Some(model), None).prices.bound_thinking, bound, "{model}");
        }
    }

    #[test]
    fn a_table_of_ones_own_goes_over_the_shipped_one() {
        let own = "date = \"2026-12-24\"\n[[model]]\nname = \"House-Model\"\ninput = 7.0\noutput = 9.0\n[[fallback]]\nbegins = \"house\"\nlike = \"house-model\"\n";
        let pricing = Pricing::shipped().overlaid(own).expect("sound");
        assert_eq!(pricing.of(Some("house-of-cards"), None).prices.input, 7.0);
        assert_eq!(pricing.of(Some("claude-opus-5-5"), None).prices.input, 4.0);
        assert_eq!(pricing.date, "2026-12-24");
    }

    #[test]
    fn bad_tables_are_refused() {
        assert!(matches!(Pricing::parse("date = 1"), Err(PricingError::Syntax(_))));
        for sign in ["-", "1e300 # ", "nan # "] {
            let odd = SHIPPED_PRICING.replacen("input = ", &format!("input = {sign}"), 1);
            assert!(matches!(Pricing::parse(&odd), Err(PricingError::Number(_))), "{sign}");
        }
        assert!(matches!(Pricing::parse("date = \"soon\""), Err(PricingError::Date(_))));
        let lost = "date = \"2026-01-01\"\nfallback = [{ begins = \"\", like = \"x\" }]";
        assert!(matches!(Pricing::parse(lost), Err(PricingError::Fallback(_))));
    }
}
