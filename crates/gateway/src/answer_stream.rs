//! A stream on its way to the client: every event goes on at once, but its end only when what was said is kept.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use plimsoll_wire::{Progress, error_event};

use crate::answer::RelayedAnswer;
use crate::relay::{Cut, Incoming, Pieces};

/// A stream.
#[derive(Debug)]
pub(crate) struct AnswerStream<T> {
    answering: RelayedAnswer,
    incoming: Incoming,
    ready: VecDeque<Result<Bytes, Cut>>,
    /// The end, held back.
    end: Option<BytesMut>,
    stage: Stage,
    _held: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model speaks.
    Open,
    /// It has ended, and what was said is kept.
    Kept,
    Closed,
}

impl<T: Send> AnswerStream<T> {
    /// Watches a stream; `held` is dropped with it.
    pub(crate) fn new(answering: RelayedAnswer, incoming: Incoming, held: T) -> Self {
        let (ready, end, stage) = (VecDeque::new(), None, Stage::Open);
        Self { answering, incoming, ready, end, stage, _held: held }
    }

    /// Takes in a piece: what may go on, and what is held back.
    fn take(&mut self, chunk: &[u8]) {
        let forward = self.answering.reply.push(chunk);
        self.put(Bytes::from(forward.now));
        if !forward.last.is_empty() {
            self.end.get_or_insert_default().extend_from_slice(&forward.last);
        }
    }

    fn put(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ready.push_back(Ok(bytes));
        }
    }

    /// Keeps what was said, then lets the end go.
    async fn release(&mut self, end: Bytes) {
        if self.stage == Stage::Open {
            self.stage = Stage::Kept;
            if let Err(why) = self.answering.keep().await {
                self.tell(503, &format!("what was said could not be kept: {why}"));
                self.cut(Cut::NotKept(why));
                return;
            }
        }
        self.put(end);
    }

    /// Tells the client of a failure in the provider's shape; it is no end of an answer.
    fn tell(&mut self, status: u16, message: &str) {
        let event = error_event(self.answering.wire, status, message, 0);
        self.put(Bytes::from(event));
    }

    fn cut(&mut self, cut: Cut) {
        self.answering.gateway.metrics.cut();
        self.ready.push_back(Err(cut));
        self.stage = Stage::Closed;
    }

    /// The upstream has closed its stream in order; what that means, its events say.
    async fn close(&mut self) {
        let rest = Bytes::from(self.answering.reply.end().now);
        if self.stage == Stage::Kept {
            self.put(rest);
            self.stage = Stage::Closed;
            return;
        }
        match self.answering.reply.progress() {
            Progress::Asks => match self.answering.go_on().await {
                Ok(incoming) => self.incoming = incoming,
                Err(why) => {
                    self.tell(502, &why);
                    self.cut(Cut::Upstream(why));
                }
            },
            Progress::Ended => {
                self.release(rest).await;
                self.stage = Stage::Closed;
            }
            Progress::Open | Progress::Failed => {
                self.put(rest);
                self.answering.gateway.metrics.cut();
                self.stage = Stage::Closed;
            }
        }
    }
}

impl<T: Send> Pieces for AnswerStream<T> {
    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                if piece.is_err() {
                    // What stands before a cut is written only while there is nothing to read.
                    tokio::task::yield_now().await;
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
                Some(Ok(chunk)) => self.take(&chunk),
                None => Box::pin(self.close()).await,
                Some(Err(cut)) => {
                    let rest = self.answering.reply.end().now;
                    self.put(Bytes::from(rest));
                    if cut == Cut::Stopping {
                        self.tell(503, "the gateway is shutting down");
                    }
                    self.cut(cut);
                }
            }
        }
    }
}
