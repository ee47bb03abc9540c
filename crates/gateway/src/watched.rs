//! A stream that is watched: every event goes on at once, but its end only when what was said is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use plimsoll_formats::provider::{Answer, Ending, Events, Moment, Watch, Wire, error_event};
use tokio::task::JoinHandle;

use crate::gateway::Gateway;
use crate::prepare::{Open, Prepared};
use crate::relay::{Cut, Incoming, Pieces};
use crate::turn::Turn;

/// The turn that an answer ends, where it has one.
#[derive(Debug)]
pub(crate) enum Ender {
    Now(Turn),
    /// It was not ready when the request had to go.
    Later(JoinHandle<Result<Prepared, Open>>),
    None,
}

impl Ender {
    /// Ends the turn, as soon as there is one.
    pub(crate) async fn end(&mut self, answer: Option<&Answer>) -> Result<(), String> {
        match std::mem::replace(self, Self::None) {
            Self::Now(mut turn) => turn.end(answer).await,
            Self::Later(task) => match task.await {
                Ok(Ok(mut prepared)) => prepared.turn.end(answer).await,
                _ => Ok(()),
            },
            Self::None => Ok(()),
        }
    }
}

/// A stream on its way to the client.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    gateway: Arc<Gateway>,
    wire: Wire,
    incoming: Incoming,
    events: Events,
    watch: Watch,
    ender: Ender,
    ready: VecDeque<Result<Bytes, Cut>>,
    /// The end, held back.
    end: Option<Bytes>,
    stage: Stage,
    _held: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model speaks.
    Open,
    /// It has ended; what still comes is passed on.
    Ended,
    Closed,
}

impl<T: Send> Watched<T> {
    /// Watches a stream; `held` is dropped with it.
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        wire: Wire,
        incoming: Incoming,
        ender: Ender,
        held: T,
    ) -> Self {
        Self {
            gateway,
            wire,
            incoming,
            events: Events::default(),
            watch: Watch::new(wire),
            ender,
            ready: VecDeque::new(),
            end: None,
            stage: Stage::Open,
            _held: held,
        }
    }

    /// Takes in a piece: what may go on, and what is held back.
    fn take(&mut self, chunk: &Bytes) {
        let mut out = BytesMut::new();
        self.events.push(chunk);
        while let Some(event) = self.events.next_event() {
            let held = match (&mut self.end, self.stage) {
                (Some(_), _) => true,
                (None, Stage::Open) => match self.watch.see(&event) {
                    Moment::Middle => false,
                    Moment::End | Moment::Failure => {
                        self.stage = Stage::Ended;
                        true
                    }
                },
                _ => false,
            };
            if held {
                let mut end = self.end.take().map_or_else(BytesMut::new, BytesMut::from);
                end.extend_from_slice(&event.raw);
                self.end = Some(end.freeze());
            } else {
                out.extend_from_slice(&event.raw);
            }
        }
        if !out.is_empty() {
            self.ready.push_back(Ok(out.freeze()));
        }
    }

    /// Keeps what was said, then lets the end go.
    async fn release(&mut self, end: Bytes) {
        let answer = self.watch.answer();
        match self.ender.end(Some(&answer)).await {
            Ok(()) => self.ready.push_back(Ok(end)),
            Err(why) => {
                self.tell(503, &format!("what was said could not be kept: {why}"));
                self.ready.push_back(Err(Cut::NotKept(why)));
                self.stage = Stage::Closed;
            }
        }
    }

    /// Tells the client of a failure in the provider's shape; it is no end of an answer.
    fn tell(&mut self, status: u16, message: &str) {
        self.ready.push_back(Ok(Bytes::from(error_event(self.wire, status, message, 0))));
    }

    /// The upstream has closed the stream in order; whether the answer is whole, its events say.
    async fn close(&mut self) {
        self.stage = Stage::Closed;
        let rest = self.events.rest();
        let answer = self.watch.answer();
        let whole = answer.ending == Ending::Complete;
        let rest = Bytes::from(rest);
        if whole {
            self.release(rest).await;
        } else if !rest.is_empty() {
            self.ready.push_back(Ok(rest));
        }
        if !whole {
            self.gateway.metrics.cut();
        }
    }
}

impl<T: Send> Pieces for Watched<T> {
    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            match self.ready.pop_front() {
                Some(Ok(bytes)) if bytes.is_empty() => continue,
                Some(piece) => return Some(piece),
                None => {}
            }
            if let Some(end) = self.end.take() {
                self.release(end).await;
                continue;
            }
            if self.stage == Stage::Closed {
                return None;
            }
            match self.incoming.chunk().await {
                Some(Ok(chunk)) => self.take(&chunk),
                None if self.stage == Stage::Open => self.close().await,
                None => {
                    let rest = Bytes::from(self.events.rest());
                    self.ready.push_back(Ok(rest));
                    self.stage = Stage::Closed;
                }
                Some(Err(cut)) => {
                    self.gateway.metrics.cut();
                    let rest = Bytes::from(self.events.rest());
                    self.ready.push_back(Ok(rest));
                    if cut == Cut::Stopping {
                        self.tell(503, "the gateway is shutting down");
                    }
                    self.ready.push_back(Err(cut));
                    self.stage = Stage::Closed;
                }
            }
        }
    }
}
