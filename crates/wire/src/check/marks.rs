//! MarkCounter of Anthropic's cache: how many, where, in which order.

use super::Violations;
use super::tree::Tree;

/// Counts marks in the order in which the provider reads a request.
#[derive(Debug, Default)]
pub(super) struct MarkCounter {
    count: usize,
    short_seen: bool,
}

/// The most marks in a request (Anthropic, prompt caching).
const MOST: usize = 4;

impl MarkCounter {
    /// Looks at the mark of a tool or block.
    pub(super) fn see(&mut self, bearer: &Tree<'_>, place: &str, report: &mut Violations) {
        let mark = bearer.at("cache_control");
        if mark.is_null() {
            return;
        }
        self.count += 1;
        report.require(mark.kind() == "ephemeral", place, "a mark of the cache is ephemeral");
        let life = mark.at("ttl");
        report.require(
            life.is_null() || matches!(life.text(), "5m" | "1h"),
            place,
            "a mark lives 5m or 1h",
        );
        if life.text() == "1h" {
            report.require(
                !self.short_seen,
                place,
                "marks of an hour stand before those of 5 minutes",
            );
        } else {
            self.short_seen = true;
        }
        let thinking = bearer.kind().ends_with("thinking");
        report.require(!thinking, place, "thinking bears no mark");
        let empty = bearer.kind() == "text" && bearer.at("text").text().is_empty();
        report.require(!empty, place, "an empty text bears no mark");
    }

    pub(super) fn end(self, report: &mut Violations) {
        report.require(self.count <= MOST, "the body", "it has at most 4 marks");
    }
}
