//! Responses on their way back: each piece goes on as it comes, and an error stays an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use plimsoll_engine::Clock;
use tokio::sync::watch;

use crate::causes::causes;
use crate::in_flight::BodyShare;
use crate::schedule::turn_of_others;

/// Why an answer ends before it is complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    #[error("the upstream broke off: {0}")]
    Upstream(String),
    #[error("the upstream sent nothing for {seconds} s")]
    Silent { seconds: u64 },
    #[error("the gateway is shutting down")]
    Stopping,
    #[error("the answer could not be kept: {0}")]
    NotKept(String),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the gateway has no room for this answer now")]
    Busy,
}

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, RelayError>;

/// Makes a body of bytes that are there already.
pub(crate) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// The source of the pieces of a body.
pub(crate) trait Pieces: Send {
    /// Returns the next piece, `None` at the proper end; nobody asks for more after an error.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, RelayError>>> + Send;
}

/// Makes a body of pieces, each asked for when the client has taken the one before.
pub(crate) fn body(pieces: impl Pieces + 'static) -> Body {
    let frames = stream::unfold(Some(pieces), async |pieces| {
        let mut pieces = pieces?;
        match pieces.next().await? {
            Ok(bytes) => Some((Ok(Frame::data(bytes)), Some(pieces))),
            Err(cut) => Some((Err(cut), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The bytes that go out in one write, if they are there together; chosen: an answer of two hundred words.
const WRITE: usize = 16 << 10;

/// An answer that is coming in.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Without its head, whose headers keep the buffer of eight kilobytes in which they came.
    body: reqwest::Body,
    is_begun: bool,
    /// The end that was read behind the last pieces: the proper one, or an error.
    last: Option<Result<(), RelayError>>,
    clock: Arc<dyn Clock>,
    idle: Duration,
    ending: watch::Receiver<bool>,
    /// The memory that remembered bytes of it take.
    share: BodyShare,
    remembered: usize,
}

impl Incoming {
    pub(crate) fn new(
        response: reqwest::Response,
        clock: Arc<dyn Clock>,
        idle: Duration,
        ending: watch::Receiver<bool>,
        share: BodyShare,
    ) -> Self {
        let body = http::Response::from(response).into_body();
        Self { body, is_begun: false, last: None, clock, idle, ending, share, remembered: 0 }
    }

    /// Counts bytes that are remembered, of at most `most` of this answer.
    ///
    /// Errors: [`RelayError::TooLarge`], and [`RelayError::Busy`] where all answers together have no room.
    pub(crate) fn remember(&mut self, bytes: usize, most: usize) -> Result<(), RelayError> {
        self.remembered += bytes;
        if self.remembered > most {
            return Err(RelayError::TooLarge(most));
        }
        self.share.reach(self.remembered).map_err(|_| RelayError::Busy)
    }

    /// Returns the next piece with those that are there behind it, `None` at the proper end.
    ///
    /// Providers send each event as a piece of its own, and each write to a client costs more than all else that is done with
    /// an event. The first piece goes out by itself: how soon it comes is what people notice.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, RelayError>> {
        if matches!(self.last, Some(Err(_))) {
            // hyper writes the bytes before an error only while there is nothing to read.
            turn_of_others().await;
        }
        if let Some(last) = self.last.take() {
            return last.err().map(Err);
        }
        let first = tokio::select! {
            biased;
            piece = piece(&mut self.body) => piece,
            () = self.clock.sleep(self.idle) => {
                return Some(Err(RelayError::Silent { seconds: self.idle.as_secs() }));
            }
            () = until(&mut self.ending) => return Some(Err(RelayError::Stopping)),
        };
        let first = match first {
            Some(Ok(bytes)) => bytes,
            None => return None,
            Some(Err(error)) => return Some(Err(broke_off(error))),
        };
        if !std::mem::replace(&mut self.is_begun, true) {
            return Some(Ok(first));
        }
        let mut more = BytesMut::new();
        while first.len().max(more.len()) < WRITE && self.last.is_none() {
            let piece = tokio::select! {
                biased;
                piece = piece(&mut self.body) => piece,
                // The connection's task has its turn, and what it has read already comes before this.
                () = turn_of_others() => break,
            };
            match piece {
                Some(Ok(bytes)) if more.is_empty() => {
                    more.reserve(WRITE);
                    more.extend_from_slice(&first);
                    more.extend_from_slice(&bytes);
                }
                Some(Ok(bytes)) => more.extend_from_slice(&bytes),
                None => self.last = Some(Ok(())),
                Some(Err(error)) => self.last = Some(Err(broke_off(error))),
            }
        }
        Some(Ok(if more.is_empty() { first } else { more.freeze() }))
    }

    /// Returns the whole of an answer of at most `most` bytes.
    pub(crate) async fn whole(&mut self, most: usize) -> Result<Bytes, RelayError> {
        let Some(first) = self.chunk().await else { return Ok(Bytes::new()) };
        let first = first?;
        self.remember(first.len(), most)?;
        let Some(second) = self.chunk().await else { return Ok(first) };
        let mut all = first.to_vec();
        let mut piece = Some(second);
        while let Some(bytes) = piece {
            let bytes = bytes?;
            self.remember(bytes.len(), most)?;
            all.extend_from_slice(&bytes);
            piece = self.chunk().await;
        }
        Ok(Bytes::from(all))
    }

    /// Passes everything on as it comes; `held` is dropped with the body.
    pub(crate) fn pass_on<T: Send + 'static>(self, held: T) -> Body {
        body(Through { incoming: self, _held: held })
    }
}

/// Returns the next bytes of a body; trailers are passed over.
async fn piece(body: &mut reqwest::Body) -> Option<Result<Bytes, reqwest::Error>> {
    loop {
        match body.frame().await? {
            Ok(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    return Some(Ok(bytes));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

fn broke_off(error: reqwest::Error) -> RelayError {
    RelayError::Upstream(causes(&error.without_url()))
}

/// Returns when the flag is set.
pub(crate) async fn until(word: &mut watch::Receiver<bool>) {
    // The sender lives as long as the gateway, which every caller holds.
    let _ = word.wait_for(|given| *given).await;
}

/// An answer that passes unread.
struct Through<T> {
    incoming: Incoming,
    _held: T,
}

impl<T: Send> Pieces for Through<T> {
    async fn next(&mut self) -> Option<Result<Bytes, RelayError>> {
        self.incoming.chunk().await
    }
}
