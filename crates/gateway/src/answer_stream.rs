//! A stream on its way to the client: every event goes on at once, but the end only when the answer is kept.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use plimsoll_wire::{Progress, error_event};

use crate::answer::RelayedAnswer;
use crate::metrics::Counter;
use crate::relay::{Incoming, Pieces, RelayError};
use crate::schedule::turn_of_others;

/// A stream.
#[derive(Debug)]
pub(crate) struct AnswerStream<T> {
    answer: RelayedAnswer,
    incoming: Incoming,
    ready: VecDeque<Result<Bytes, RelayError>>,
    /// The end of the stream, until the answer is kept.
    end: Option<BytesMut>,
    stage: Stage,
    _held: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model still writes.
    Open,
    /// The answer has ended and is kept.
    Kept,
    Closed,
}

impl<T: Send> AnswerStream<T> {
    /// Watches a stream; `held` is dropped with it.
    pub(crate) fn new(answer: RelayedAnswer, incoming: Incoming, held: T) -> Self {
        let (ready, end, stage) = (VecDeque::new(), None, Stage::Open);
        Self { answer, incoming, ready, end, stage, _held: held }
    }

    /// Takes in a chunk, and holds back the end of the answer.
    ///
    /// Errors: the limit that it passes. Nothing of an event goes on before its end, so one without an end takes memory only.
    fn take(&mut self, chunk: &[u8]) -> Result<(), RelayError> {
        let (answer_bytes, event_bytes) = {
            let limits = &self.answer.gateway.config.limits;
            (limits.answer_bytes, limits.event_bytes)
        };
        self.incoming.remember(chunk.len(), answer_bytes)?;
        let forward = self.answer.reply.push(chunk);
        self.put(Bytes::from(forward.now));
        if !forward.last.is_empty() {
            self.end.get_or_insert_default().extend_from_slice(&forward.last);
        }
        if self.answer.reply.pending() > event_bytes {
            return Err(RelayError::TooLarge(event_bytes));
        }
        Ok(())
    }

    fn put(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ready.push_back(Ok(bytes));
        }
    }

    /// Keeps the answer, then sends its end.
    async fn release(&mut self, end: Bytes) {
        if self.stage == Stage::Open {
            self.stage = Stage::Kept;
            if let Err(why) = self.answer.keep().await {
                self.tell(503, &format!("what was said could not be kept: {why}"));
                self.cut(RelayError::NotKept(why));
                return;
            }
        }
        self.put(end);
    }

    /// Sends a failure in the provider's shape, which does not end the answer.
    fn tell(&mut self, status: u16, message: &str) {
        let event = error_event(self.answer.wire, status, message, 0);
        self.put(Bytes::from(event));
    }

    fn cut(&mut self, cut: RelayError) {
        self.answer.gateway.metrics.add(Counter::Answers, "cut");
        self.ready.push_back(Err(cut));
        self.stage = Stage::Closed;
    }

    /// Handles the proper end of the upstream's stream.
    async fn close(&mut self) {
        let rest = Bytes::from(self.answer.reply.end().now);
        if self.stage == Stage::Kept {
            self.put(rest);
            self.stage = Stage::Closed;
            return;
        }
        match self.answer.reply.progress() {
            Progress::Asks => match self.answer.go_on().await {
                Ok(incoming) => self.incoming = incoming,
                Err(why) => {
                    self.tell(502, &why);
                    self.cut(RelayError::Upstream(why));
                }
            },
            Progress::Ended => {
                self.release(rest).await;
                self.stage = Stage::Closed;
            }
            Progress::Open | Progress::Failed => {
                self.put(rest);
                self.answer.gateway.metrics.add(Counter::Answers, "cut");
                self.stage = Stage::Closed;
            }
        }
    }
}

impl<T: Send> Pieces for AnswerStream<T> {
    async fn next(&mut self) -> Option<Result<Bytes, RelayError>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                if piece.is_err() {
                    // The bytes before an error are written only while there is nothing to read.
                    turn_of_others().await;
                }
                return Some(piece);
            }
            if let Some(end) = self.end.take() {
                // Boxed, as below: a stream has room for its end only when that comes.
                Box::pin(self.release(end.freeze())).await;
                continue;
            }
            if self.stage == Stage::Closed {
                return None;
            }
            match self.incoming.chunk().await {
                Some(Ok(chunk)) => {
                    if let Err(full) = self.take(&chunk) {
                        self.tell(503, &full.to_string());
                        self.cut(full);
                    }
                }
                None => Box::pin(self.close()).await,
                Some(Err(cut)) => {
                    let rest = self.answer.reply.end().now;
                    self.put(Bytes::from(rest));
                    if cut == RelayError::Stopping {
                        self.tell(503, "the gateway is shutting down");
                    }
                    self.cut(cut);
                }
            }
        }
    }
}
