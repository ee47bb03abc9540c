//! Framing of requests, checked on the bytes before the HTTP library reads them.
//!
//! The library resolves a request with two lengths by itself, and drops one of them; a proxy in front may resolve it otherwise, and
//! then both see another end of the request. Such a request is refused, for only the bytes show it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// A head or a line beyond this is left to the library, which refuses it.
const LONGEST_HEAD: usize = 1 << 20;
const LONGEST_LINE: usize = 4096;

/// The time after its request in which a client may close its side and still get the answer (chosen: one that closes later has left).
/// One that left earlier is noticed by the next write.
const HALF_CLOSE_MILLIS: i64 = 1000;

/// The part of a request that comes next.
#[derive(Debug)]
enum RequestPart {
    Head,
    Bytes(u64),
    ChunkSize,
    /// With the line end behind it.
    Chunk(u64),
    Trailers,
    /// Nothing is known any more, and the library decides.
    Lost,
}

/// Follows the requests of a connection.
#[derive(Debug)]
struct Framing {
    part: RequestPart,
    gathered: Vec<u8>,
}

impl Framing {
    fn new() -> Self {
        Self { part: RequestPart::Head, gathered: Vec::new() }
    }

    /// Takes in bytes; returns whether a head among them has more than one length.
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match &mut self.part {
                RequestPart::Lost => return false,
                RequestPart::Bytes(bytes_to_come) | RequestPart::Chunk(bytes_to_come) => {
                    let taken = (bytes.len() as u64).min(*bytes_to_come);
                    *bytes_to_come -= taken;
                    bytes = &bytes[usize::try_from(taken).unwrap_or(bytes.len())..];
                    if *bytes_to_come == 0 {
                        let is_chunk = matches!(self.part, RequestPart::Chunk(_));
                        self.part =
                            if is_chunk { RequestPart::ChunkSize } else { RequestPart::Head };
                    }
                }
                RequestPart::Head => {
                    if self.gathered.is_empty() && matches!(bytes[0], b'\r' | b'\n') {
                        bytes = &bytes[1..];
                        continue;
                    }
                    let Some(rest) = self.line(bytes) else { return false };
                    bytes = rest;
                    if is_ended(&self.gathered) {
                        let head = std::mem::take(&mut self.gathered);
                        if let Some(part) = body_of(&head) {
                            self.part = part;
                        } else {
                            self.part = RequestPart::Lost;
                            return true;
                        }
                    } else if self.gathered.len() > LONGEST_HEAD {
                        self.part = RequestPart::Lost;
                    }
                }
                RequestPart::ChunkSize | RequestPart::Trailers => {
                    let Some(rest) = self.line(bytes) else { return false };
                    bytes = rest;
                    let line = std::mem::take(&mut self.gathered);
                    let line = line.trim_ascii();
                    self.part = match self.part {
                        RequestPart::Trailers if line.is_empty() => RequestPart::Head,
                        RequestPart::Trailers => RequestPart::Trailers,
                        _ => chunk(line),
                    };
                }
            }
        }
        false
    }

    /// Gathers a line; returns the bytes behind it, `None` while its end has not come.
    fn line<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (taken, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        self.gathered.extend_from_slice(taken);
        if end.is_none() {
            let most =
                if matches!(self.part, RequestPart::Head) { LONGEST_HEAD } else { LONGEST_LINE };
            if self.gathered.len() > most {
                self.part = RequestPart::Lost;
            }
            return None;
        }
        Some(rest)
    }

    fn is_between_requests(&self) -> bool {
        matches!(self.part, RequestPart::Head) && self.gathered.is_empty()
    }
}

fn is_ended(head: &[u8]) -> bool {
    head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n")
}

fn chunk(line: &[u8]) -> RequestPart {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let size = str::from_utf8(size).ok().map(str::trim);
    match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
        Some(0) => RequestPart::Trailers,
        Some(size) => size.checked_add(2).map_or(RequestPart::Lost, RequestPart::Chunk),
        None => RequestPart::Lost,
    }
}

/// Returns what follows a head; `None` where it has more than one length, or an encoding of the transfer other than `chunked`.
fn body_of(head: &[u8]) -> Option<RequestPart> {
    let (mut length, mut is_chunked) = (None, false);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
            let value = str::from_utf8(value).ok()?;
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            if length.is_some() || !digits {
                return None;
            }
            length = Some(value.parse().ok()?);
        } else if name.trim_ascii().eq_ignore_ascii_case(b"transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            is_chunked = true;
        }
    }
    match (length, is_chunked) {
        (Some(_), true) => None,
        (_, true) => Some(RequestPart::ChunkSize),
        (None | Some(0), false) => Some(RequestPart::Head),
        (Some(length), false) => Some(RequestPart::Bytes(length)),
    }
}

/// A connection whose framing is followed.
#[derive(Debug)]
pub(crate) struct Framed<S> {
    stream: S,
    clock: Arc<dyn Clock>,
    framing: Framing,
    is_ambiguous: Arc<AtomicBool>,
    /// The time of the last byte of a request.
    asked: Option<MillisSinceEpoch>,
    is_half_closed: bool,
    half_closed: Arc<Notify>,
}

impl<S> Framed<S> {
    pub(crate) fn new(stream: S, clock: Arc<dyn Clock>) -> Self {
        Self {
            stream,
            clock,
            framing: Framing::new(),
            is_ambiguous: Arc::default(),
            asked: None,
            is_half_closed: false,
            half_closed: Arc::default(),
        }
    }

    /// Returns the flag that is set when a request has more than one length.
    pub(crate) fn is_ambiguous(&self) -> Arc<AtomicBool> {
        self.is_ambiguous.clone()
    }

    /// Returns the signal that no further request comes, and that the one under way is to be answered.
    pub(crate) fn half_closed(&self) -> Arc<Notify> {
        self.half_closed.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_half_closed {
            // The client hears its answer; then whoever heard the signal ends the connection.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &read {
            let new = &buffer.filled()[before..];
            if new.is_empty() && buffer.remaining() > 0 {
                let since = this.asked.map(|asked| this.clock.now().0 - asked.0);
                if since.is_some_and(|millis| millis <= HALF_CLOSE_MILLIS) {
                    this.is_half_closed = true;
                    this.half_closed.notify_one();
                    return Poll::Pending;
                }
            } else if this.framing.take(new) {
                this.is_ambiguous.store(true, Ordering::Release);
            }
            if this.framing.is_between_requests() && !new.is_empty() {
                this.asked = Some(this.clock.now());
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ambiguous(text: &str) -> Vec<bool> {
        // Each split of the bytes gives the same answer.
        [1, 3, 1000]
            .map(|size| {
                let mut framing = Framing::new();
                let mut pieces = text.as_bytes().chunks(size);
                pieces.any(|piece| framing.take(piece))
            })
            .into()
    }

    #[test]
    fn requests_with_two_lengths_are_found() {
        for bad in [
            "POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\ncontent-length: 1\r\n\r\nxPOST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        ] {
            assert_eq!(is_ambiguous(bad), [true; 3], "{bad}");
        }
        for good in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 46\r\n\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nabcdefg",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\na: b\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(is_ambiguous(good), [false; 3], "{good}");
        }
    }
}
