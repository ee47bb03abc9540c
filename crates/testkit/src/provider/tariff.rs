//! The prices that a request is charged by, and its bill.

use plimsoll_core::cost::{CacheKind, Charge, PriceMatch, Prices, Pricing};
use plimsoll_wire::Wire;
use serde_json::{Value, json};

use super::usage::ReportedUsage;

/// The shipped prices, and the model to use for those that are not listed.
#[derive(Debug)]
pub(crate) struct Tariff {
    pricing: Pricing,
    price_as: Option<String>,
}

/// The price of one request and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPrice {
    /// The model that the request named.
    pub model: String,
    /// The listed model whose prices were used.
    pub priced_as: String,
    /// As `core` charges: where the cache has steps, what is written costs as much as plain input.
    pub charge: Charge,
    /// US dollars for the input.
    pub input: f64,
    /// US dollars for the output.
    pub output: f64,
    /// Factors of input and output for the size of the prompt.
    pub band: (f64, f64),
}

impl Tariff {
    pub(crate) fn new(price_as: Option<String>) -> Self {
        Self { pricing: Pricing::shipped(), price_as }
    }

    /// Returns the prices of `model` on a wire, and the name of the model that they are of.
    ///
    /// A model that is not listed is priced as the option says. Without the option, its name decides, but only by a listed model
    /// whose cache is one of the wire: marks on Anthropic's, none elsewhere.
    pub(crate) fn prices(&self, wire: Wire, model: &str) -> (&str, Prices) {
        let mut priced = self.pricing.of(Some(model), None);
        if priced.found != PriceMatch::Listed {
            let has_marks = priced.prices.cache == CacheKind::Marks;
            let of_wire = match wire {
                Wire::AnthropicMessages => "claude-sonnet-4-5",
                Wire::ChatCompletions | Wire::Responses => "gpt-5",
                Wire::Gemini => "gemini-2.5-pro",
            };
            if let Some(other) = &self.price_as {
                priced = self.pricing.of(Some(other), None);
            } else if has_marks != (wire == Wire::AnthropicMessages) {
                priced = self.pricing.of(Some(of_wire), None);
            }
        }
        (priced.name, priced.prices)
    }
}

impl RequestPrice {
    pub(crate) fn of(
        model: &str,
        priced_as: &str,
        prices: &Prices,
        charge: Charge,
        usage: ReportedUsage,
    ) -> Self {
        let band = prices.band(charge.prompt());
        Self {
            model: model.to_owned(),
            priced_as: priced_as.to_owned(),
            charge,
            input: prices.dollars(prices.input_cost(&charge)),
            output: usage.output as f64 * prices.output / 1e6 * band.1,
            band,
        }
    }

    pub(crate) fn description(&self) -> Value {
        let charge = self.charge;
        json!({
            "model": self.model,
            "priced_as": self.priced_as,
            "charge": {
                "cached": charge.cached,
                "written": charge.written,
                "written_long": charge.written_long,
                "plain": charge.plain,
            },
            "dollars": {"input": self.input, "output": self.output},
            "band": {"input": self.band.0, "output": self.band.1},
        })
    }
}
