//! Figures for Prometheus: counters and one histogram, with labels from closed lists only.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::Usage;
use plimsoll_engine::Bill;

/// A counter for each word of a closed list.
#[derive(Debug)]
struct Family<const N: usize> {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    words: [&'static str; N],
    counts: [AtomicU64; N],
}

impl<const N: usize> Family<N> {
    fn new(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        words: [&'static str; N],
    ) -> Self {
        Self { name, help, label, words, counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Adds to a word's counter; the last word stands for all that are not in the list.
    fn add(&self, word: &str, amount: u64) {
        let place = self.words.iter().position(|known| *known == word).unwrap_or(N - 1);
        self.counts[place].fetch_add(amount, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String) {
        let Self { name, help, label, .. } = self;
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
        for (word, count) in self.words.iter().zip(&self.counts) {
            let _ = writeln!(out, "{name}{{{label}=\"{word}\"}} {}", count.load(Ordering::Relaxed));
        }
    }
}

/// Seconds of our own work on a request; the bounds bracket the goals of half a millisecond to 25.
const BUCKETS: [f64; 10] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0];

/// What requests ask for.
const REQUESTS: [&str; 7] = [
    "anthropic_messages",
    "chat_completions",
    "responses",
    "gemini",
    "count_tokens",
    "compact",
    "other",
];

/// What tokens are counted of.
const TOKENS: [&str; 9] = [
    "full",
    "sent",
    "cost",
    "full_cost",
    "tools_saved",
    "billed",
    "billed_cached",
    "billed_output",
    "thinking_dropped",
];

/// All figures.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<7>,
    outcomes: Family<9>,
    answers: Family<5>,
    refusals: Family<17>,
    tokens: Family<9>,
    dollars: Family<3>,
    misses: Family<7>,
    spans: Family<3>,
    expansions: Family<4>,
    store: Family<3>,
    cached: Family<5>,
    warmed: Family<3>,
    buckets: [AtomicU64; BUCKETS.len()],
    overhead_count: AtomicU64,
    overhead_micros: AtomicU64,
    open_streams: AtomicI64,
    connections: AtomicI64,
}

fn dollars() -> Family<3> {
    Family::new(
        "plimsoll_microdollars_total",
        "Millionths of a US dollar of input: as billed by the provider's usage, what the same requests would have been without Plimsoll, and what of the bill is of models whose price is not known.",
        "kind",
        ["billed", "without", "billed_estimate"],
    )
}

fn warmed() -> Family<3> {
    Family::new(
        "plimsoll_cache_reads_total",
        "Requests of our own that kept the provider's cache warm, by what it had.",
        "result",
        ["read", "missed", "failed"],
    )
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::new(
                "plimsoll_requests_total",
                "Requests by what they ask for.",
                "wire",
                REQUESTS,
            ),
            outcomes: Family::new(
                "plimsoll_outcomes_total",
                "What was done with requests.",
                "outcome",
                [
                    "bounded",
                    "untouched",
                    "observed",
                    "bypassed",
                    "passed",
                    "cached",
                    "failed_open",
                    "late",
                    "other",
                ],
            ),
            answers: Family::new(
                "plimsoll_answers_total",
                "Answers of upstreams by the class of their status.",
                "class",
                ["2xx", "3xx", "4xx", "5xx", "cut"],
            ),
            refusals: Family::new(
                "plimsoll_refusals_total",
                "Requests that the gateway itself refused.",
                "why",
                [
                    "busy",
                    "too_large",
                    "slow_body",
                    "broken_body",
                    "encoding",
                    "too_deep",
                    "malformed",
                    "no_key",
                    "foreign",
                    "no_upstream",
                    "path",
                    "upgrade",
                    "unreachable",
                    "silent",
                    "not_kept",
                    "stopping",
                    "other",
                ],
            ),
            tokens: Family::new(
                "plimsoll_tokens_total",
                "Tokens: of the full history and as sent by our count, the cost of both in plain input tokens, saved of lazy tools, and as the provider billed; and blocks of thinking that it dropped and tool uses that it cleared.",
                "kind",
                TOKENS,
            ),
            dollars: dollars(),
            misses: Family::new(
                "plimsoll_cache_misses_total",
                "Requests whose prefix the provider's cache cannot have had, by cause.",
                "cause",
                ["content", "pause", "model", "tools", "system", "expansion", "first"],
            ),
            spans: Family::new(
                "plimsoll_spans_total",
                "Spans of turns, by what became of them on the way to the collector of traces.",
                "result",
                ["sent", "dropped", "failed"],
            ),
            expansions: Family::new(
                "plimsoll_expansions_total",
                "Calls of tools that the gateway answers itself.",
                "tool",
                ["expand_ref", "search_context", "describe_tool", "other"],
            ),
            store: Family::new(
                "plimsoll_store_appends_total",
                "Appends to the store by how they ended.",
                "result",
                ["kept", "conflict", "failed"],
            ),
            cached: Family::new(
                "plimsoll_answer_cache_total",
                "Questions that the answer cache was asked, and answers that it was given.",
                "result",
                ["exact", "similar", "miss", "kept", "not_kept"],
            ),
            warmed: warmed(),
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            overhead_count: AtomicU64::new(0),
            overhead_micros: AtomicU64::new(0),
            open_streams: AtomicI64::new(0),
            connections: AtomicI64::new(0),
        }
    }
}

fn gauge(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Counts something as long as it is there.
#[derive(Debug)]
pub(crate) struct Counted<F: Fn(i64)>(F);

impl<F: Fn(i64)> Counted<F> {
    pub(crate) fn new(count: F) -> Self {
        count(1);
        Self(count)
    }
}

impl<F: Fn(i64)> Drop for Counted<F> {
    fn drop(&mut self) {
        (self.0)(-1);
    }
}

impl Metrics {
    pub(crate) fn request(&self, wire: &str) {
        self.requests.add(wire, 1);
    }

    pub(crate) fn outcome(&self, outcome: &str) {
        self.outcomes.add(outcome, 1);
    }

    pub(crate) fn answer(&self, status: u16) {
        self.answers
            .add(["2xx", "3xx", "4xx", "5xx"][usize::from(status / 100).clamp(2, 5) - 2], 1);
    }

    pub(crate) fn cut(&self) {
        self.answers.add("cut", 1);
    }

    pub(crate) fn refusal(&self, word: &str) {
        self.refusals.add(word, 1);
    }

    pub(crate) fn tokens(&self, kind: &str, tokens: u64) {
        self.tokens.add(kind, tokens);
    }

    /// Adds US dollars.
    fn dollars(&self, kind: &str, dollars: f64) {
        self.dollars.add(kind, (dollars * 1e6).round().max(0.0) as u64);
    }

    pub(crate) fn miss(&self, cause: &str) {
        self.misses.add(cause, 1);
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn spans(&self, result: &str, count: u64) {
        self.spans.add(result, count);
    }

    pub(crate) fn expansion(&self, tool: &str) {
        self.expansions.add(tool, 1);
    }

    pub(crate) fn store(&self, result: &str) {
        self.store.add(result, 1);
    }

    pub(crate) fn cached(&self, result: &str) {
        self.cached.add(result, 1);
    }

    pub(crate) fn warmed(&self, result: &str) {
        self.warmed.add(result, 1);
    }

    /// Adds what a provider reported of a request, and what it comes to.
    pub(crate) fn billed(&self, usage: &Usage, bill: Option<&Bill>) {
        self.tokens("billed", usage.prompt_tokens);
        self.tokens("billed_cached", usage.cached_tokens);
        self.tokens("billed_output", usage.output_tokens);
        let Some(bill) = bill else { return };
        self.dollars("billed", bill.billed);
        self.dollars("without", bill.without);
        if bill.estimate {
            self.dollars("billed_estimate", bill.billed);
        }
    }

    pub(crate) fn streams(&self, change: i64) {
        self.open_streams.fetch_add(change, Ordering::Relaxed);
    }

    pub(crate) fn connections(&self, change: i64) {
        self.connections.fetch_add(change, Ordering::Relaxed);
    }

    /// Records our own work on one request: from its acceptance to its sending, without the wait for its body.
    pub(crate) fn overhead(&self, spent: Duration) {
        let seconds = spent.as_secs_f64();
        if let Some(place) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[place].fetch_add(1, Ordering::Relaxed);
        }
        self.overhead_count.fetch_add(1, Ordering::Relaxed);
        self.overhead_micros.fetch_add(spent.as_micros() as u64, Ordering::Relaxed);
    }

    /// Writes all figures in Prometheus' text format.
    pub(crate) fn write(&self, in_flight: usize, sessions: usize, session_bytes: usize) -> String {
        let mut out = String::with_capacity(4096);
        self.requests.write(&mut out);
        self.outcomes.write(&mut out);
        self.answers.write(&mut out);
        self.refusals.write(&mut out);
        self.tokens.write(&mut out);
        self.dollars.write(&mut out);
        self.misses.write(&mut out);
        self.expansions.write(&mut out);
        self.spans.write(&mut out);
        self.store.write(&mut out);
        self.cached.write(&mut out);
        self.warmed.write(&mut out);
        let name = "plimsoll_overhead_seconds";
        let _ = writeln!(
            out,
            "# HELP {name} Our own work on a request before it is sent.\n# TYPE {name} histogram"
        );
        let mut sum = 0;
        for (bound, count) in BUCKETS.iter().zip(&self.buckets) {
            sum += count.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let count = self.overhead_count.load(Ordering::Relaxed);
        let seconds = self.overhead_micros.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {seconds}\n{name}_count {count}"
        );
        let streams = self.open_streams.load(Ordering::Relaxed);
        let connections = self.connections.load(Ordering::Relaxed);
        for (name, help, value) in [
            (
                "plimsoll_in_flight_bytes",
                "Bytes of bodies that are being worked on.",
                gauge(in_flight),
            ),
            ("plimsoll_open_answers", "Answers that are on their way.", streams),
            ("plimsoll_connections", "Connections of clients.", connections),
            ("plimsoll_sessions", "Sessions in memory.", gauge(sessions)),
            ("plimsoll_session_bytes", "Bytes of sessions in memory, about.", gauge(session_bytes)),
        ] {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_a_closed_list() {
        let metrics = Metrics::default();
        let lines = metrics.write(0, 0, 0).lines().count();
        metrics.request("a wire that nobody knows\"}");
        metrics.refusal("busy");
        metrics.overhead(Duration::from_millis(3));
        let text = metrics.write(7, 1, 2);
        assert_eq!(text.lines().count(), lines);
        assert!(text.contains("plimsoll_requests_total{wire=\"other\"} 1"));
        assert!(text.contains("plimsoll_refusals_total{why=\"busy\"} 1"));
        assert!(text.contains("plimsoll_overhead_seconds_bucket{le=\"0.002\"} 0"));
        assert!(text.contains("plimsoll_overhead_seconds_bucket{le=\"0.005\"} 1"));
        assert!(text.contains("plimsoll_in_flight_bytes 7"));
    }
}
