//! Connections to one address, and one request with its times.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use plimsoll_testkit::provider::LABEL;
use plimsoll_wire::Wire;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::LoadError;
use crate::conversation::AnswerDelivery;
use crate::forms;

/// The outcome of a request; times are from its intended start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestOutcome {
    /// 0 if the connection failed before an answer.
    pub(crate) status: u16,
    /// Until the first byte of the body.
    pub(crate) first: Duration,
    pub(crate) total: Duration,
    /// Whether the answer came to its own end.
    pub(crate) is_whole: bool,
    /// Pieces that events came in.
    pub(crate) events: usize,
}

impl RequestOutcome {
    pub(crate) fn is_good(&self) -> bool {
        self.status == 200 && self.is_whole
    }
}

/// One request.
#[derive(Debug)]
pub(crate) struct LoadRequest<'a> {
    pub(crate) session: &'a str,
    pub(crate) wire: Wire,
    /// The number by which the plain answer is known.
    pub(crate) request: u64,
    pub(crate) body: Bytes,
    pub(crate) delivery: AnswerDelivery,
}

/// Keeps connections to an address open and lends them.
#[derive(Debug, Clone)]
pub(crate) struct LoadClient {
    authority: String,
    idle: Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

impl LoadClient {
    /// Takes `http://HOST:PORT`.
    pub(crate) fn new(address: &str) -> Self {
        let authority = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { authority, idle: Arc::default() }
    }

    /// Asks and reads the answer to its end.
    pub(crate) async fn ask(&self, asked: LoadRequest<'_>, intended: Instant) -> RequestOutcome {
        let mut outcome = RequestOutcome::default();
        let ended = self.exchange(asked, intended, &mut outcome, None).await;
        outcome.is_whole = ended.unwrap_or(false);
        outcome.total = intended.elapsed();
        outcome
    }

    /// Asks, and returns the body of the answer too.
    pub(crate) async fn ask_for(&self, asked: LoadRequest<'_>) -> (RequestOutcome, Vec<u8>) {
        let (mut outcome, mut body) = (RequestOutcome::default(), Vec::new());
        let ended = self.exchange(asked, Instant::now(), &mut outcome, Some(&mut body)).await;
        outcome.is_whole = ended.unwrap_or(false);
        (outcome, body)
    }

    async fn exchange(
        &self,
        asked: LoadRequest<'_>,
        intended: Instant,
        outcome: &mut RequestOutcome,
        kept: Option<&mut Vec<u8>>,
    ) -> Result<bool, LoadError> {
        let is_anthropic = asked.wire == Wire::AnthropicMessages;
        let key = if is_anthropic { "x-api-key" } else { "authorization" };
        let request = Request::post(forms::path(asked.wire, asked.delivery))
            .header("host", &self.authority)
            .header("content-type", "application/json")
            .header(key, "none")
            .header("x-plimsoll-session", asked.session)
            .header(LABEL, asked.request)
            .body(Full::new(asked.body))?;
        let asked_of = (asked.wire, asked.delivery);
        let mut sender = self.connection().await?;
        let answer = sender.send_request(request).await?;
        outcome.status = answer.status().as_u16();
        let is_whole = read(answer.into_body(), &asked_of, intended, outcome, kept).await?;
        if sender.ready().await.is_ok() {
            self.idle.lock().expect("nothing panics while it holds this").push(sender);
        }
        Ok(is_whole)
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, LoadError> {
        loop {
            let idle = self.idle.lock().expect("nothing panics while it holds this").pop();
            match idle {
                Some(sender) if sender.is_closed() => {}
                Some(sender) => return Ok(sender),
                None => break,
            }
        }
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Reads a body and returns whether it is complete; a stream has to end with its own last event.
async fn read(
    mut body: Incoming,
    (wire, delivery): &(Wire, AnswerDelivery),
    intended: Instant,
    outcome: &mut RequestOutcome,
    mut kept: Option<&mut Vec<u8>>,
) -> Result<bool, LoadError> {
    let end = forms::last_event(*wire);
    let mut tail: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if outcome.events == 0 {
            outcome.first = intended.elapsed();
        }
        outcome.events += 1;
        if let Some(kept) = &mut kept {
            kept.extend_from_slice(&piece);
        }
        // The end may lie across two pieces.
        tail.extend_from_slice(&piece[piece.len().saturating_sub(2 * end.len())..]);
        tail.drain(..tail.len().saturating_sub(4 * end.len()));
    }
    // Gemini's last event has its mark far before its end.
    let seen = kept.map_or(&*tail, |kept| kept);
    let is_ended = seen.windows(end.len()).any(|window| window == end);
    Ok(*delivery == AnswerDelivery::Whole || is_ended)
}
