//! When outlines pay: their saving at each request against the cost of questions about tools.

use crate::cost::{CacheKind, Prices};

/// A session, as far as its price depends on outlines. Tokens are means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LookupCost {
    /// Requests without those that answer a question.
    pub(super) requests: f64,
    /// Tokens of a request beside what outlines save.
    pub(super) rest: f64,
    /// Tokens that a question puts into the conversation: the call, and the tool's description and schema.
    pub(super) described: f64,
    /// Tokens of output that a question takes.
    pub(super) asked: f64,
}

impl LookupCost {
    /// A session of four turns that uses four more tools. The means are those of Codex, opencode and Gemini CLI with up to seven
    /// servers of tools (`e2e/tools`, plan `short`, four uses).
    pub(super) const SHORT: Self =
        Self { requests: 9.0, rest: 10_000.0, described: 650.0, asked: 30.0 };

    /// Returns how many questions a session may ask before outlines that save `saved` tokens of a request make it dearer.
    ///
    /// The saved tokens would be written once and read at every further request. A question is one more request, which reads the
    /// rest; its answer is written, and half of the requests read it. A cache with steps loses half a step at each request.
    pub(super) fn questions_paid(&self, saved: u64, prices: &Prices) -> f64 {
        let write = prices.cache_write;
        let read = prices.cache_read * prices.cache_hits + (1.0 - prices.cache_hits);
        let is_stepped = prices.cache == CacheKind::Steps;
        let step = if is_stepped { f64::from(prices.cache_step) } else { 0.0 };
        let saving = saved as f64 * (write + read * (self.requests - 1.0).max(0.0));
        let answer = self.described * (write + read * self.requests / 2.0);
        let prefix = read * self.rest + (1.0 - read) * step / 2.0;
        let question = prefix + answer + prices.output_ratio() * self.asked;
        if question > 0.0 { saving / question } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::cost::Pricing;
    use crate::lazy_tools::LazySettings;

    fn prices(model: &str) -> Prices {
        Pricing::shipped().of(Some(model), None).prices
    }

    #[test]
    fn it_says_which_measured_sessions_were_dearer() {
        // Tokens saved of the list, mean tokens of a request, questions, dollars with outlines (without = 1): `e2e/tools`, plan
        // `short` with four uses; opencode, Codex, opencode, Codex, Gemini CLI twice.
        let measured = [
            ("gpt-5.4", 5945, 7300.0, 7.0, 1.081),
            ("gpt-5.4", 5031, 9600.0, 5.0, 1.024),
            ("gpt-5.4", 8677, 8700.0, 7.0, 0.933),
            ("gpt-5.4", 7269, 11_200.0, 5.0, 0.939),
            ("gemini-2.5-pro", 7011, 10_400.0, 7.0, 1.233),
            ("gemini-2.5-pro", 11_439, 11_800.0, 7.0, 1.047),
        ];
        for (model, saved, rest, questions, ratio) in measured {
            let session = LookupCost { rest, ..LookupCost::SHORT };
            let paid = session.questions_paid(saved, &prices(model));
            assert_eq!(paid < questions, ratio > 1.0, "{saved}: {paid:.1} of {questions}");
        }
    }

    #[test]
    fn what_the_default_asks_to_be_saved_pays_seven_questions() {
        let least = LazySettings::default().least_saved;
        for model in ["gpt-5.4", "claude-sonnet-4-6", "claude-opus-5-5", "gemini-2.5-pro"] {
            let paid = LookupCost::SHORT.questions_paid(least, &prices(model));
            assert!(paid > 7.0, "{model}: {paid:.1}");
        }
        let less = LookupCost::SHORT.questions_paid(least * 3 / 4, &prices("gemini-2.5-pro"));
        assert!(less < 7.0, "it is not more than that takes: {less:.1}");
    }

    #[test]
    fn free_questions_always_pay() {
        let free = LookupCost { rest: 0.0, described: 0.0, asked: 0.0, ..LookupCost::SHORT };
        let prices = Prices { cache: CacheKind::Marks, ..Prices::PLAIN };
        assert_eq!(free.questions_paid(1, &prices).total_cmp(&f64::INFINITY), Ordering::Equal);
    }
}
