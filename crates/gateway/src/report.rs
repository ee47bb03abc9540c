//! The report of a turn, for the client, the log and the metrics.

use http::{HeaderMap, HeaderValue};
use plimsoll_core::context::Preview;
use plimsoll_engine::live::Miss;
use plimsoll_engine::{Bills, SessionId};

use crate::headers;
use crate::metrics::{Counter, Metrics};

/// The report of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) session: SessionId,
    pub(crate) strategy: String,
    pub(crate) full_tokens: u64,
    pub(crate) tokens: u64,
    /// Tokens that the policy would have sent, of a request that goes out as it came.
    pub(crate) observed: Option<u64>,
    /// Tokens by which what is new alone exceeds the budget.
    pub(crate) over_budget: u64,
    /// The used part of the context window, in percent.
    pub(crate) pressure: u32,
    pub(crate) cost: f64,
    pub(crate) full_cost: f64,
    pub(crate) changes: usize,
    pub(crate) misses: Vec<Miss>,
    /// The large change that was not made, since the request goes out as it came.
    pub(crate) preview: Option<Preview>,
    /// The bills of the session before this request, whose own usage is not known when its answer begins.
    pub(crate) bills: Bills,
}

impl Report {
    /// Returns the report of a turn that sent nothing and costs nothing.
    pub(crate) fn unsent(self) -> Self {
        Self { tokens: 0, over_budget: 0, cost: 0.0, changes: 0, misses: Vec::new(), ..self }
    }

    /// Adds the report to the metrics.
    pub(crate) fn count(&self, metrics: &Metrics) {
        for (kind, tokens) in [
            ("full", self.full_tokens),
            ("sent", self.tokens),
            ("cost", self.cost.round() as u64),
            ("full_cost", self.full_cost.round() as u64),
        ] {
            metrics.add_amount(Counter::Tokens, kind, tokens);
        }
        for miss in &self.misses {
            metrics.add(Counter::Misses, miss.as_str());
        }
    }

    /// Logs the report.
    pub(crate) fn log(&self, outcome: &str) {
        let misses: Vec<&str> = self.misses.iter().map(|miss| miss.as_str()).collect();
        tracing::info!(
            session = %self.session,
            outcome,
            policy = self.strategy,
            full_tokens = self.full_tokens,
            tokens = self.tokens,
            cost = self.cost,
            full_cost = self.full_cost,
            changes = self.changes,
            cache_misses = misses.join(","),
            over_budget = self.over_budget,
            pressure = self.pressure,
            "turn"
        );
    }

    /// Writes the report into the headers of a response.
    pub(crate) fn show(&self, answer: &mut HeaderMap) {
        let saved = self.full_tokens.cast_signed() - self.tokens.cast_signed();
        let pairs = [
            (headers::SESSION, self.session.to_string()),
            (headers::POLICY, self.strategy.clone()),
            (headers::TOKENS_BEFORE, self.full_tokens.to_string()),
            (headers::TOKENS_AFTER, self.tokens.to_string()),
            (headers::TOKENS_SAVED, saved.to_string()),
            (headers::PRESSURE, self.pressure.to_string()),
        ];
        let bills = self.bills.saved().map(|saved| {
            [
                (headers::BILLED, format!("{:.6}", self.bills.dollars_billed)),
                (headers::SAVED, format!("{saved:.6}")),
            ]
        });
        let over =
            (self.over_budget > 0).then(|| (headers::OVER_BUDGET, self.over_budget.to_string()));
        let observed = self.observed.map(|tokens| (headers::TOKENS_OBSERVED, tokens.to_string()));
        let preview = self.preview.iter().map(|preview| (headers::PREVIEW, preview.to_string()));
        let estimate =
            (self.bills.bills_estimated > 0).then(|| (headers::BILL_ESTIMATE, "true".to_owned()));
        let bills = bills.into_iter().flatten().chain(estimate);
        for (name, value) in
            pairs.into_iter().chain(bills).chain(preview).chain(over).chain(observed)
        {
            // A policy's name came from a header, and an id has plain characters.
            if let Ok(value) = HeaderValue::try_from(value) {
                answer.insert(name, value);
            }
        }
    }
}
