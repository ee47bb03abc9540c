//! Metrics for Prometheus: counters and one histogram, with labels from closed lists only.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::Usage;
use plimsoll_engine::Bill;

/// A family of counters, one for each value of a label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counter {
    Requests,
    Outcomes,
    Answers,
    Refusals,
    Tokens,
    Dollars,
    Misses,
    Expansions,
    Spans,
    Store,
    Cached,
    Warmed,
}

/// The written form of a family of counters.
struct Family {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    /// The values of the label; the last one stands for all that are not in the list.
    words: &'static str,
}

/// The families in the order of [`Counter`].
const FAMILIES: [Family; 12] = [
    Family {
        name: "plimsoll_requests_total",
        help: "Requests by what they ask for.",
        label: "wire",
        words: "anthropic_messages chat_completions responses gemini count_tokens compact other",
    },
    Family {
        name: "plimsoll_outcomes_total",
        help: "What was done with requests.",
        label: "outcome",
        words: "bounded untouched observed bypassed passed cached failed_open late other",
    },
    Family {
        name: "plimsoll_answers_total",
        help: "Answers of upstreams by the class of their status.",
        label: "class",
        words: "2xx 3xx 4xx 5xx cut",
    },
    Family {
        name: "plimsoll_refusals_total",
        help: "Requests that the gateway itself refused.",
        label: "why",
        words: "busy too_large slow_body broken_body encoding too_deep malformed no_key foreign \
                framing operator unredacted not_allowed no_upstream path upgrade unreachable silent not_kept stopping other",
    },
    Family {
        name: "plimsoll_tokens_total",
        help: "Tokens: of the full history and as sent by our count, the cost of both in plain input tokens, saved of lazy tools, and as the provider billed; and blocks of thinking that it dropped and tool uses that it cleared.",
        label: "kind",
        words: "full sent cost full_cost tools_saved billed billed_cached billed_output \
                thinking_dropped tool_uses_cleared",
    },
    Family {
        name: "plimsoll_microdollars_total",
        help: "Millionths of a US dollar of input: as billed by the provider's usage, what the same requests would have been without Plimsoll, and what of the bill is of models whose price is not known.",
        label: "kind",
        words: "billed without billed_estimate",
    },
    Family {
        name: "plimsoll_cache_misses_total",
        help: "Requests whose prefix the provider's cache cannot have had, by cause.",
        label: "cause",
        words: "content pause model tools system expansion first",
    },
    Family {
        name: "plimsoll_expansions_total",
        help: "Calls of tools that the gateway answers itself.",
        label: "tool",
        words: "expand_ref search_context drop_from_context describe_tool other",
    },
    Family {
        name: "plimsoll_spans_total",
        help: "Spans of turns, by what became of them on the way to the collector of traces.",
        label: "result",
        words: "sent dropped failed",
    },
    Family {
        name: "plimsoll_store_appends_total",
        help: "Appends to the store by how they ended.",
        label: "result",
        words: "caught_up kept conflict failed",
    },
    Family {
        name: "plimsoll_answer_cache_total",
        help: "Questions that the answer cache was asked, and answers that it was given.",
        label: "result",
        words: "exact similar miss kept not_kept",
    },
    Family {
        name: "plimsoll_cache_reads_total",
        help: "Requests of our own that kept the provider's cache warm, by what it had.",
        label: "result",
        words: "read missed failed",
    },
];

/// The most words of a family.
const MOST_WORDS: usize = 21;

/// The bounds of the histogram in seconds; they bracket the goals of half a millisecond to 25.
const BUCKETS: [f64; 10] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0];

/// All metrics.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    counts: [[AtomicU64; MOST_WORDS]; FAMILIES.len()],
    buckets: [AtomicU64; BUCKETS.len()],
    overhead_count: AtomicU64,
    overhead_micros: AtomicU64,
    /// Answers that are on their way.
    pub(crate) streams: AtomicI64,
    /// Connections of clients.
    pub(crate) connections: AtomicI64,
}

fn gauge(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Counts something in a gauge as long as it exists.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Arc<Metrics>, fn(&Metrics) -> &AtomicI64);

impl GaugeGuard {
    pub(crate) fn new(metrics: &Arc<Metrics>, gauge: fn(&Metrics) -> &AtomicI64) -> Self {
        gauge(metrics).fetch_add(1, Ordering::Relaxed);
        Self(metrics.clone(), gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Adds 1 to the counter of a word.
    pub(crate) fn add(&self, counter: Counter, word: &str) {
        self.add_amount(counter, word, 1);
    }

    /// Adds to the counter of a word; the last word stands for all that are not in the list.
    pub(crate) fn add_amount(&self, counter: Counter, word: &str, amount: u64) {
        let family = counter as usize;
        let mut words = FAMILIES[family].words.split(' ');
        let last = words.clone().count() - 1;
        let place = words.position(|known| known == word).unwrap_or(last);
        self.counts[family][place].fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds US dollars.
    fn dollars(&self, kind: &str, dollars: f64) {
        self.add_amount(Counter::Dollars, kind, (dollars * 1e6).round().max(0.0) as u64);
    }

    /// Adds the usage that a provider reported of a request, and its bill.
    pub(crate) fn billed(&self, usage: &Usage, bill: Option<&Bill>) {
        for (kind, tokens) in [
            ("billed", usage.prompt_tokens),
            ("billed_cached", usage.cached_tokens),
            ("billed_output", usage.output_tokens),
        ] {
            self.add_amount(Counter::Tokens, kind, tokens);
        }
        let Some(bill) = bill else { return };
        self.dollars("billed", bill.billed);
        self.dollars("without", bill.without);
        if bill.estimate {
            self.dollars("billed_estimate", bill.billed);
        }
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

    /// Writes all metrics in Prometheus' text format.
    pub(crate) fn write(&self, in_flight: usize, sessions: usize, session_bytes: usize) -> String {
        let mut out = String::with_capacity(4096);
        for (Family { name, help, label, words }, counts) in FAMILIES.iter().zip(&self.counts) {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (word, count) in words.split(' ').zip(counts) {
                let count = count.load(Ordering::Relaxed);
                let _ = writeln!(out, "{name}{{{label}=\"{word}\"}} {count}");
            }
        }
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
        let streams = self.streams.load(Ordering::Relaxed);
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
        metrics.add(Counter::Requests, "a wire that nobody knows\"}");
        metrics.add(Counter::Refusals, "busy");
        metrics.overhead(Duration::from_millis(3));
        metrics.add_amount(Counter::Tokens, "tool_uses_cleared", 2);
        let text = metrics.write(7, 1, 2);
        assert_eq!(text.lines().count(), lines);
        assert!(text.contains("plimsoll_requests_total{wire=\"other\"} 1"));
        assert!(text.contains("plimsoll_refusals_total{why=\"busy\"} 1"));
        assert!(text.contains("plimsoll_overhead_seconds_bucket{le=\"0.002\"} 0"));
        assert!(text.contains("plimsoll_overhead_seconds_bucket{le=\"0.005\"} 1"));
        assert!(text.contains("plimsoll_in_flight_bytes 7"));
        assert!(text.contains("plimsoll_tokens_total{kind=\"tool_uses_cleared\"} 2"));
        assert!(text.contains("plimsoll_tokens_total{kind=\"thinking_dropped\"} 0"));
    }

    #[test]
    fn every_word_has_a_counter_and_every_counter_its_family() {
        let metrics = Metrics::default();
        for family in &FAMILIES {
            assert!(family.words.split(' ').count() <= MOST_WORDS, "{}", family.name);
        }
        metrics.add(Counter::Requests, "gemini");
        metrics.add(Counter::Warmed, "read");
        let text = metrics.write(0, 0, 0);
        assert!(text.contains("plimsoll_requests_total{wire=\"gemini\"} 1"));
        assert!(text.contains("plimsoll_cache_reads_total{result=\"read\"} 1"));
    }
}
