//! Traces: a span for each turn, sent to a collector as OTLP over HTTP, in JSON.
//!
//! Names are those of the conventions of OpenTelemetry for generative AI; other names begin with `plimsoll.`. A request never waits
//! for a collector: a span has a place in the queue or is dropped, and both are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderMap;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::Clock;
use plimsoll_wire::{AnswerUsage, Ending, ProviderAnswer, Wire};
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};

use crate::config::GatewayConfig;
use crate::metrics::{Counter, Metrics};
use crate::relay::until;
use crate::report::Report;

/// Spans that wait, and spans of one request: as OpenTelemetry's own batching has them (quoted: 2,048 and 512).
const QUEUE: usize = 2048;
const BATCH: usize = 512;
/// A collector's time for a request: as OpenTelemetry's exporters (quoted: 10 s).
const TIME: Duration = Duration::from_secs(10);
/// The variable that every exporter knows; the setting stands before it.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The configured address of a collector is invalid.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no http or https address of a collector")]
pub struct CollectorError(String);

/// All traces, or none where there is no collector.
#[derive(Debug)]
pub(crate) struct Traces(Option<Arc<Exporter>>);

#[derive(Debug)]
struct Exporter {
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    url: Url,
    client: Client,
    spans: mpsc::Sender<Value>,
    waiting: Mutex<mpsc::Receiver<Value>>,
    count: AtomicU64,
    closing: watch::Sender<bool>,
}

impl Traces {
    /// Reads where spans go; nothing is sent.
    pub(crate) fn new(
        config: &GatewayConfig,
        environment: &dyn Fn(&str) -> Option<String>,
        clock: &Arc<dyn Clock>,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, CollectorError> {
        let named = config.otlp_endpoint.clone().or_else(|| environment(ENDPOINT));
        let Some(named) = named.filter(|named| !named.is_empty()) else { return Ok(Self(None)) };
        let broken = || CollectorError(named.clone());
        let url = format!("{}/v1/traces", named.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|_| broken())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(broken());
        }
        let builder = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = builder.build().map_err(|_| broken())?;
        let (spans, waiting) = mpsc::channel(QUEUE);
        Ok(Self(Some(Arc::new(Exporter {
            clock: clock.clone(),
            metrics: metrics.clone(),
            url,
            client,
            spans,
            waiting: Mutex::new(waiting),
            count: AtomicU64::new(0),
            closing: watch::Sender::new(false),
        }))))
    }

    /// Begins the span of a turn, within the trace that its client names.
    pub(crate) fn begin(&self, wire: Wire, headers: &HeaderMap) -> Trace {
        let Some(exporter) = &self.0 else { return Trace(None) };
        let parent = headers.get("traceparent").and_then(|parent| parent.to_str().ok());
        Trace(Some(Box::new(Span {
            exporter: exporter.clone(),
            wire,
            number: exporter.count.fetch_add(1, Ordering::Relaxed),
            parent: parent.and_then(parent_in),
            begun: exporter.clock.now(),
            model: None,
            attributes: Vec::new(),
            error: Some("unanswered".to_owned()),
        })))
    }

    /// Sends spans until [`Traces::close`], and then those that still wait.
    pub(crate) async fn run(&self) {
        let Some(exporter) = &self.0 else { return };
        let mut waiting = exporter.waiting.lock().await;
        let mut closing = exporter.closing.subscribe();
        let mut batch = Vec::new();
        loop {
            let count = tokio::select! {
                biased;
                count = waiting.recv_many(&mut batch, BATCH) => count,
                () = until(&mut closing), if !waiting.is_closed() => {
                    waiting.close();
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            let sent = exporter.send(std::mem::take(&mut batch)).await;
            let result = if sent { "sent" } else { "failed" };
            exporter.metrics.add_amount(Counter::Spans, result, count as u64);
        }
    }

    /// Lets [`Traces::run`] come to its end.
    pub(crate) fn close(&self) {
        if let Some(exporter) = &self.0 {
            exporter.closing.send_replace(true);
        }
    }
}

impl Exporter {
    /// Takes a span where there is room for it.
    fn offer(&self, span: Value) {
        if self.spans.try_send(span).is_err() {
            self.metrics.add(Counter::Spans, "dropped");
        }
    }

    async fn send(&self, spans: Vec<Value>) -> bool {
        let service = [
            attribute("service.name", json!("plimsoll")),
            attribute("service.version", json!(env!("CARGO_PKG_VERSION"))),
        ];
        let body = json!({"resourceSpans": [{
            "resource": {"attributes": service},
            "scopeSpans": [{"scope": {"name": "plimsoll.gateway"}, "spans": spans}],
        }]});
        let request = self.client.post(self.url.clone());
        let request = request.header("content-type", "application/json").body(body.to_string());
        tokio::select! {
            biased;
            answer = request.send() => answer.is_ok_and(|answer| answer.status().is_success()),
            () = self.clock.sleep(TIME) => false,
        }
    }
}

/// The span of a turn, sent when it is dropped; nothing where there is no collector.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Box<Span>>);

#[derive(Debug)]
struct Span {
    exporter: Arc<Exporter>,
    wire: Wire,
    number: u64,
    /// The ids of the trace and of the span in which the client asks.
    parent: Option<(String, String)>,
    begun: MillisSinceEpoch,
    model: Option<String>,
    attributes: Vec<Value>,
    error: Option<String>,
}

impl Trace {
    /// Records the outcome of the request.
    pub(crate) fn decided(
        &mut self,
        outcome: &'static str,
        model: Option<&str>,
        report: Option<&Report>,
    ) {
        let Some(span) = &mut self.0 else { return };
        span.model = model.map(str::to_owned);
        span.add("plimsoll.outcome", json!(outcome));
        let Some(report) = report else { return };
        let saved = report.full_tokens.cast_signed() - report.tokens.cast_signed();
        let misses: Vec<&str> = report.misses.iter().map(|miss| miss.as_str()).collect();
        span.add("gen_ai.conversation.id", json!(report.session.to_string()));
        span.add("plimsoll.session", json!(report.session.to_string()));
        span.add("plimsoll.policy", json!(report.strategy));
        span.add("plimsoll.tokens.full", json!(report.full_tokens));
        span.add("plimsoll.tokens.sent", json!(report.tokens));
        span.add("plimsoll.tokens.saved", json!(saved));
        span.add("plimsoll.cache_misses", json!(misses.join(",")));
    }

    /// Records the upstream's status.
    pub(crate) fn answered(&mut self, status: u16) {
        let Some(span) = &mut self.0 else { return };
        span.add("http.response.status_code", json!(status));
        span.error = Some(if status < 400 { "cut".to_owned() } else { status.to_string() });
    }

    /// Records the whole answer.
    pub(crate) fn ended(&mut self, answer: &ProviderAnswer, usage: Option<AnswerUsage>) {
        let Some(span) = &mut self.0 else { return };
        span.error = match &answer.ending {
            Ending::Complete => None,
            Ending::Failed(_) => Some("provider".to_owned()),
            Ending::Cut => Some("cut".to_owned()),
        };
        if let Some(model) = &answer.model {
            span.add("gen_ai.response.model", json!(model));
        }
        let Some(usage) = usage else { return };
        span.add("gen_ai.usage.input_tokens", json!(usage.tokens.prompt_tokens));
        span.add("gen_ai.usage.output_tokens", json!(usage.tokens.output_tokens));
        span.add("gen_ai.usage.cache_read.input_tokens", json!(usage.tokens.cached_tokens));
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let Some(span) = self.0.take() else { return };
        let exporter = span.exporter.clone();
        exporter.offer(span.written());
    }
}

impl Span {
    fn add(&mut self, key: &str, value: Value) {
        self.attributes.push(attribute(key, value));
    }

    /// Writes the span; its ids are digests of its content, so that they need no random numbers.
    fn written(mut self) -> Value {
        let (operation, provider) = match self.wire {
            Wire::AnthropicMessages => ("chat", "anthropic"),
            Wire::ChatCompletions | Wire::Responses => ("chat", "openai"),
            Wire::Gemini => ("generate_content", "gcp.gemini"),
        };
        let model = self.model.take().unwrap_or_default();
        self.add("gen_ai.operation.name", json!(operation));
        self.add("gen_ai.provider.name", json!(provider));
        // An older name of the attribute, which many backends still read.
        self.add("gen_ai.system", json!(provider));
        if !model.is_empty() {
            self.add("gen_ai.request.model", json!(model));
        }
        let status = match &self.error {
            None => json!({"code": 1}),
            Some(kind) => {
                let kind = kind.clone();
                self.add("error.type", json!(kind));
                json!({"code": 2, "message": kind})
            }
        };
        let ended = self.exporter.clock.now();
        let what = format!("{}:{}:{:?}", self.begun.0, self.number, self.attributes);
        let digest = plimsoll_engine::digest(what.as_bytes());
        let (trace, parent) =
            self.parent.take().unwrap_or_else(|| (digest[16..48].to_owned(), String::new()));
        let nanos = |at: MillisSinceEpoch| format!("{}000000", at.0.max(0));
        let mut span = json!({
            "traceId": trace, "spanId": digest[..16], "name": format!("{operation} {model}").trim(),
            // A client's: the call of a model.
            "kind": 3,
            "startTimeUnixNano": nanos(self.begun), "endTimeUnixNano": nanos(ended),
            "attributes": self.attributes, "status": status,
        });
        if !parent.is_empty() {
            span["parentSpanId"] = json!(parent);
        }
        span
    }
}

fn attribute(key: &str, value: Value) -> Value {
    let value = match value {
        // OTLP's JSON has 64 bits as text.
        Value::Number(number) => json!({"intValue": number.to_string()}),
        other => json!({"stringValue": other}),
    };
    json!({"key": key, "value": value})
}

/// Reads the ids of a `traceparent`: version, trace, span, flags.
fn parent_in(header: &str) -> Option<(String, String)> {
    let mut parts = header.trim().split('-').skip(1);
    let mut id = |length: usize| {
        let hex = |part: &&str| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
        let is_set = |part: &&str| part.bytes().any(|byte| byte != b'0');
        parts.next().filter(hex).filter(is_set).map(str::to_lowercase)
    };
    Some((id(32)?, id(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_testkit::ManualClock;

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Arc::new(Metrics::default());
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(MillisSinceEpoch(0), Duration::ZERO));
        let config = GatewayConfig::default();
        let environment = |name: &str| (name == ENDPOINT).then(|| "http://127.0.0.1:4318/".into());
        let traces = Traces::new(&config, &environment, &clock, &metrics).expect("an address");
        let exporter = traces.0.expect("the variable names a collector");
        assert_eq!(exporter.url.as_str(), "http://127.0.0.1:4318/v1/traces");
        for _ in 0..QUEUE + 3 {
            exporter.offer(Value::Null);
        }
        let figures = metrics.write(0, 0, 0);
        assert!(figures.contains("plimsoll_spans_total{result=\"dropped\"} 3"), "{figures}");
        let otlp_endpoint = Some("collector:4318".to_owned());
        let broken = GatewayConfig { otlp_endpoint, ..GatewayConfig::default() };
        assert!(Traces::new(&broken, &environment, &clock, &metrics).is_err());
    }

    #[test]
    fn a_parent_is_read_or_there_is_none() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let header = format!("00-{trace}-{span}-01");
        assert_eq!(parent_in(&header), Some((trace.to_owned(), span.to_owned())));
        for bad in ["", "00", "00-1-2-3", &header.replace(span, "0000000000000000")] {
            assert_eq!(parent_in(bad), None, "{bad}");
        }
    }
}
