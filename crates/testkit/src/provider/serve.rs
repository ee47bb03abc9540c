//! Connections and requests of the scripted provider.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use plimsoll_core::MillisSinceEpoch;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::answer::ScriptedAnswer;
use super::binding::ThinkingBlocks;
use super::body::{self, AnswerBody, RecordCallback};
use super::endpoint::{AnswerDelivery, Endpoint};
use super::tariff::Tariff;
use super::turn;
use super::usage::{PromptCaches, ReportedUsage};
use super::{
    AnswerMode, Keep, LABEL, RecordedExchange, ScriptedProviderConfig, TIME, Wire, anthropic, chat,
    forward, gemini, responses,
};

/// What the connections share.
#[derive(Debug)]
pub(crate) struct ProviderState {
    config: ScriptedProviderConfig,
    count: AtomicU64,
    pub(crate) tariff: Tariff,
    pub(crate) caches: Mutex<PromptCaches>,
    pub(crate) now: Mutex<Option<MillisSinceEpoch>>,
    kept: Mutex<Vec<RecordedExchange>>,
    /// How many are in memory.
    pub(crate) ended: watch::Sender<usize>,
}

/// A request that was read.
pub(crate) struct ProviderRequest {
    pub(crate) number: u64,
    method: Method,
    path: String,
    headers: HeaderMap,
    /// As it came, perhaps compressed.
    bytes: Bytes,
}

impl ProviderState {
    pub(crate) fn new(config: ScriptedProviderConfig) -> Self {
        let price_as = match &config.answers {
            AnswerMode::Planned { rules, .. } => rules.price_as.clone(),
            AnswerMode::Plain { .. } | AnswerMode::Forwarded { .. } => None,
        };
        Self {
            config,
            count: AtomicU64::new(0),
            tariff: Tariff::new(price_as),
            caches: Mutex::default(),
            now: Mutex::default(),
            kept: Mutex::default(),
            ended: watch::Sender::new(0),
        }
    }

    pub(crate) fn kept(&self) -> Vec<RecordedExchange> {
        self.kept.lock().expect("nothing panics while it holds this").clone()
    }

    fn keep(&self, kept: RecordedExchange) {
        match &self.config.keep {
            Keep::Nothing => {}
            Keep::Memory => {
                self.kept.lock().expect("nothing panics while it holds this").push(kept);
                self.ended.send_modify(|ended| *ended += 1);
            }
            // A full disk shows as missing files, which whoever reads the folder counts.
            Keep::Folder(folder) => drop(kept.write(folder)),
        }
    }

    /// Prepares the record of an answer.
    pub(crate) fn record(self: &Arc<Self>, kept: RecordedExchange) -> Option<RecordCallback> {
        if matches!(self.config.keep, Keep::Nothing) {
            return None;
        }
        let shared = self.clone();
        Some(Box::new(move |answer| shared.keep(RecordedExchange { answer, ..kept })))
    }
}

pub(crate) async fn accept(listener: TcpListener, shared: Arc<ProviderState>) {
    loop {
        // Too many open files: those that end make room.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(shared.clone(), request));
            // A client that leaves is what some tests are about.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    shared: Arc<ProviderState>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let number = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let asked = ProviderRequest { number, method: head.method, path, headers: head.headers, bytes };
    let answer = match &shared.config.answers {
        AnswerMode::Planned { plan, check, rules } => {
            turn::planned(&shared, &asked, plan, check.as_ref(), rules)
        }
        AnswerMode::Plain { words } => plain(&shared, &asked, *words),
        AnswerMode::Forwarded { to } => {
            let kept = asked.kept(StatusCode::OK);
            let record = |status: StatusCode| {
                shared.record(RecordedExchange { status: status.as_u16(), ..kept.clone() })
            };
            forward::forward(
                to,
                &asked.method,
                &asked.path,
                &asked.headers,
                asked.bytes.clone(),
                record,
            )
            .await
        }
    };
    Ok(answer)
}

impl ProviderRequest {
    pub(crate) fn kept(&self, status: StatusCode) -> RecordedExchange {
        RecordedExchange {
            number: self.number,
            method: self.method.to_string(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            request: self.bytes.clone(),
            status: status.as_u16(),
            answer: Vec::new(),
            turn: None,
            violations: Vec::new(),
            usage: ReportedUsage::default(),
            continuity: super::Continuity::default(),
            bill: None,
            thinking: ThinkingBlocks::default(),
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::of(&self.method, self.path.split('?').next().unwrap_or_default())
    }

    /// The body without its compression.
    pub(crate) fn decoded(&self) -> Result<Bytes, String> {
        match self.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Ok(self.bytes.clone()),
            Some(b"zstd") => zstd::stream::decode_all(&*self.bytes)
                .map(Bytes::from)
                .map_err(|error| format!("the body is not zstd: {error}")),
            Some(_) => Err("unknown content-encoding".to_owned()),
        }
    }

    /// The model that the request names: in its body, or in Gemini's path.
    pub(crate) fn model<'a>(&'a self, body: &'a Value) -> &'a str {
        let of_path = || {
            let (_, rest) = self.path.split_once("/models/")?;
            Some(rest.split(':').next().unwrap_or_default())
        };
        body["model"].as_str().or_else(of_path).unwrap_or("scripted")
    }

    /// The features under test that the request asks for.
    pub(crate) fn betas(&self) -> Vec<&str> {
        let headers = self.headers.get_all("anthropic-beta").iter();
        let values = headers.filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim).collect()
    }

    /// The time that the request gives itself.
    pub(crate) fn time(&self) -> Option<MillisSinceEpoch> {
        self.headers.get(TIME)?.to_str().ok()?.parse().ok().map(MillisSinceEpoch)
    }
}

/// Answers what is not about a model's turn.
pub(crate) fn beside(asked: &ProviderRequest, endpoint: Endpoint) -> (StatusCode, Value) {
    match endpoint {
        Endpoint::Presence => (StatusCode::OK, Value::Null),
        Endpoint::Models => (StatusCode::OK, models()),
        _ if asked.headers.contains_key("upgrade") => {
            (StatusCode::UPGRADE_REQUIRED, chat::error(426, "this server has no WebSockets"))
        }
        _ => (StatusCode::NOT_FOUND, chat::error(404, &format!("nothing at {}", asked.path))),
    }
}

fn models() -> Value {
    let model = |id: &str| {
        json!({"id": id, "type": "model", "object": "model", "display_name": id,
            "created_at": "2026-01-01T00:00:00Z", "created": super::CREATED, "owned_by": "scripted"})
    };
    let models: Vec<_> = ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro"].map(model).into();
    json!({"object": "list", "data": models, "has_more": false})
}

fn plain(
    shared: &Arc<ProviderState>,
    asked: &ProviderRequest,
    words: usize,
) -> Response<AnswerBody> {
    // The label is the number of the load tool's request, so it knows what it was answered.
    let label = asked.headers.get(LABEL).and_then(|label| label.to_str().ok()?.parse().ok());
    let Endpoint::Turn(wire, delivery) = asked.endpoint() else {
        let (status, body) = beside(asked, asked.endpoint());
        return json_answer(status, &body, shared.record(asked.kept(status)));
    };
    let answer = ScriptedAnswer::plain(label, words, asked.bytes.len());
    // The load tool writes its own bodies, with this at the beginning.
    let beginning = &asked.bytes[..asked.bytes.len().min(256)];
    let streams = delivery.map_or_else(
        || beginning.windows(13).any(|window| window == b"\"stream\":true"),
        |delivery| delivery == AnswerDelivery::Streamed,
    );
    write(shared, wire, &answer, streams, true, shared.record(asked.kept(StatusCode::OK)))
}

pub(crate) fn write(
    shared: &ProviderState,
    wire: Wire,
    answer: &ScriptedAnswer,
    streams: bool,
    reports_usage: bool,
    done: Option<RecordCallback>,
) -> Response<AnswerBody> {
    if !streams {
        let body = match wire {
            Wire::AnthropicMessages => anthropic::whole(answer),
            Wire::ChatCompletions => chat::whole(answer),
            Wire::Responses => responses::whole(answer),
            Wire::Gemini => gemini::whole(answer),
        };
        return json_answer(StatusCode::OK, &body, done);
    }
    let events = match wire {
        Wire::AnthropicMessages => anthropic::events(answer),
        Wire::ChatCompletions => chat::events(answer, reports_usage),
        Wire::Responses => responses::events(answer),
        Wire::Gemini => gemini::events(answer),
    };
    let body = body::events(events, shared.config.pace, done);
    response(StatusCode::OK, "text/event-stream; charset=utf-8", body)
}

pub(crate) fn error(wire: Wire, status: StatusCode, message: &str) -> Value {
    match wire {
        Wire::AnthropicMessages => anthropic::error(status.as_u16(), message),
        Wire::ChatCompletions | Wire::Responses => chat::error(status.as_u16(), message),
        Wire::Gemini => gemini::error(status.as_u16(), message),
    }
}

pub(crate) fn json_answer(
    status: StatusCode,
    body: &Value,
    done: Option<RecordCallback>,
) -> Response<AnswerBody> {
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let length = bytes.len();
    let mut answer = response(status, "application/json", body::whole(bytes, done));
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

pub(super) fn response(
    status: StatusCode,
    kind: &'static str,
    body: AnswerBody,
) -> Response<AnswerBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
