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
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::LoadError;
use crate::conversation::AnswerDelivery;

/// What became of a request; times are from its intended start.
#[derive(Debug, Clone, Copy)]
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
        let mut outcome = RequestOutcome {
            status: 0,
            first: Duration::ZERO,
            total: Duration::ZERO,
            is_whole: false,
            events: 0,
        };
        let ended = self.exchange(asked, intended, &mut outcome).await;
        outcome.is_whole = ended.unwrap_or(false);
        outcome.total = intended.elapsed();
        outcome
    }

    async fn exchange(
        &self,
        asked: LoadRequest<'_>,
        intended: Instant,
        outcome: &mut RequestOutcome,
    ) -> Result<bool, LoadError> {
        let request = Request::post("/v1/messages")
            .header("host", &self.authority)
            .header("content-type", "application/json")
            .header("x-api-key", "none")
            .header("anthropic-version", "2023-06-01")
            .header("x-plimsoll-session", asked.session)
            .header(LABEL, asked.request)
            .body(Full::new(asked.body))?;
        let mut sender = self.connection().await?;
        let answer = sender.send_request(request).await?;
        outcome.status = answer.status().as_u16();
        let is_whole = read(answer.into_body(), asked.delivery, intended, outcome).await?;
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

/// Reads a body and tells whether it came to its own end: a stream has to say so itself.
async fn read(
    mut body: Incoming,
    delivery: AnswerDelivery,
    intended: Instant,
    outcome: &mut RequestOutcome,
) -> Result<bool, LoadError> {
    const END: &[u8] = b"message_stop";
    let mut tail: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if outcome.events == 0 {
            outcome.first = intended.elapsed();
        }
        outcome.events += 1;
        // The end may lie across two pieces.
        tail.extend_from_slice(&piece[piece.len().saturating_sub(2 * END.len())..]);
        tail.drain(..tail.len().saturating_sub(4 * END.len()));
    }
    let is_ended = tail.windows(END.len()).any(|window| window == END);
    Ok(delivery == AnswerDelivery::Whole || is_ended)
}
