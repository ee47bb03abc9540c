//! What the provider keeps of a request and its answer.

use std::io;
use std::path::Path;

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::binding::ThinkingBlocks;
use super::tariff::RequestPrice;
use super::usage::{Continuity, ReportedUsage};

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct RecordedExchange {
    /// Counted from 1 as requests come.
    pub number: u64,
    pub method: String,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub request: Bytes,
    pub status: u16,
    /// What was sent of the answer, until it ended or the client left.
    pub answer: Vec<u8>,
    /// The turn of the plan that was answered, and whether it called tools.
    pub turn: Option<(usize, bool)>,
    pub violations: Vec<String>,
    pub usage: ReportedUsage,
    pub continuity: Continuity,
    /// What an answered turn cost.
    pub bill: Option<RequestPrice>,
    pub thinking: ThinkingBlocks,
}

impl RecordedExchange {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let file = |what: &str| folder.join(format!("{:06}.{what}", self.number));
        std::fs::write(file("request"), &self.request)?;
        std::fs::write(file("answer"), &self.answer)?;
        std::fs::write(file("json"), format!("{:#}\n", self.description()))
    }

    fn description(&self) -> Value {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .filter(|(name, _)| !is_key(name.as_str()))
            .map(|(name, value)| {
                (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes())))
            })
            .collect();
        json!({
            "number": self.number,
            "method": self.method,
            "path": without_key(&self.path),
            "headers": headers,
            "status": self.status,
            "turn": self.turn.map(|(turn, _)| turn),
            "calls_tools": self.turn.is_some_and(|(_, calls)| calls),
            "violations": self.violations,
            "usage": {
                "input": self.usage.input,
                "cache_read": self.usage.cache_read,
                "cache_written": self.usage.cache_written,
                "cache_written_long": self.usage.cache_written_long,
                "output": self.usage.output,
            },
            "bill": self.bill.as_ref().map(RequestPrice::description),
            "thinking": {
                "sent": self.thinking.sent,
                "invalid": self.thinking.invalid,
                "dropped": self.thinking.dropped,
            },
            "segments": self.continuity.segments,
            "segments_before": self.continuity.before,
            "segments_alike": self.continuity.alike,
        })
    }
}

fn is_key(name: &str) -> bool {
    matches!(name, "authorization" | "x-api-key" | "api-key" | "x-goog-api-key" | "cookie")
        || name.ends_with("-key") && name.starts_with("x-")
}

/// Gemini's clients may give their key in the query.
fn without_key(path: &str) -> &str {
    path.split_once('?').filter(|(_, query)| query.contains("key=")).map_or(path, |(path, _)| path)
}
