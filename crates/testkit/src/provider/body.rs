//! Bodies of answers: whole, or events one by one, with a copy for the record.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::Pace;

/// The body of every answer.
pub(crate) type AnswerBody = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// Called once, with what was sent, when the answer ends or the client leaves.
pub(crate) type RecordCallback = Box<dyn FnOnce(Vec<u8>) + Send>;

struct BodyRecord {
    sent: Option<Vec<u8>>,
    done: Option<RecordCallback>,
}

impl Drop for BodyRecord {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(self.sent.take().unwrap_or_default());
        }
    }
}

/// Sends events as `pace` says.
pub(crate) fn events(events: Vec<Bytes>, pace: Pace, done: Option<RecordCallback>) -> AnswerBody {
    let paced = stream::iter(events.into_iter().enumerate()).then(move |(at, event)| async move {
        match pace {
            _ if at == 0 => {}
            // Lets the event before leave by itself.
            Pace::Together if at == 1 => tokio::task::yield_now().await,
            Pace::Together => {}
            Pace::Apart(Duration::ZERO) => tokio::task::yield_now().await,
            Pace::Apart(time) => tokio::time::sleep(time).await,
        }
        event
    });
    recorded(paced.boxed(), done)
}

/// Sends what comes.
pub(crate) fn recorded(
    pieces: BoxStream<'static, Bytes>,
    done: Option<RecordCallback>,
) -> AnswerBody {
    let mut record = BodyRecord { sent: done.is_some().then(Vec::new), done };
    let pieces = pieces.map(move |piece| {
        if let Some(sent) = &mut record.sent {
            sent.extend_from_slice(&piece);
        }
        Ok(Frame::data(piece))
    });
    StreamBody::new(pieces.boxed())
}

/// Sends one piece.
pub(crate) fn whole(bytes: Bytes, done: Option<RecordCallback>) -> AnswerBody {
    recorded(stream::iter([bytes]).boxed(), done)
}
