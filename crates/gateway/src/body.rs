//! Bodies: read within limits that count decoded bytes, alone and together.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body;
use http_body_util::BodyExt as _;
use plimsoll_engine::Clock;

use crate::refusal::RequestRefusal;

/// The memory that all bodies together may take.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    used: Arc<AtomicUsize>,
    most: usize,
}

/// A share of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct BodyShare {
    all: InFlight,
    bytes: usize,
}

impl InFlight {
    pub(crate) fn new(most: usize) -> Self {
        Self { used: Arc::default(), most }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn share(&self) -> BodyShare {
        BodyShare { all: self.clone(), bytes: 0 }
    }
}

impl BodyShare {
    /// Makes sure that the share has so many bytes; at once, for a queue would only hide that there is no room.
    fn reach(&mut self, bytes: usize) -> Result<(), RequestRefusal> {
        let more = bytes.saturating_sub(self.bytes);
        let most = self.all.most;
        let grown = self.all.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(more).filter(|sum| *sum <= most)
        });
        grown.map_err(|_| RequestRefusal::Busy)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.all.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A request's body.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    /// The bytes as they came.
    pub(crate) bytes: Bytes,
    /// The bytes without their encoding, where they had one.
    pub(crate) decoded: Option<Bytes>,
    /// Held as long as the body is.
    pub(crate) share: BodyShare,
}

impl ReceivedBody {
    /// Returns the body to read.
    pub(crate) fn plain(&self) -> &Bytes {
        self.decoded.as_ref().unwrap_or(&self.bytes)
    }
}

/// Reads a body of at most `most` bytes, decoded, with at most `idle` between two pieces.
pub(crate) async fn receive<B>(
    headers: &HeaderMap,
    mut body: B,
    most: usize,
    idle: Duration,
    in_flight: &InFlight,
    clock: &dyn Clock,
) -> Result<ReceivedBody, RequestRefusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut share = in_flight.share();
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > most) {
        return Err(RequestRefusal::TooLarge { most });
    }
    // Taken at once, so that a crowd is refused at its door and not in the middle of its bodies.
    share.reach(announced.unwrap_or(0))?;
    let bytes = collect(&mut body, announced, most, idle, &mut share, clock).await?;
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?"));
    let decoded = match encoding.map(str::trim) {
        None | Some("" | "identity") => None,
        // One encoding only: nobody sends two, and each level multiplies what a bomb can do.
        Some("gzip" | "x-gzip") => {
            Some(decode(flate2::read::MultiGzDecoder::new(&*bytes), most, &mut share)?)
        }
        Some("deflate") => Some(decode(flate2::read::ZlibDecoder::new(&*bytes), most, &mut share)?),
        Some("br") => {
            Some(decode(brotli_decompressor::Decompressor::new(&*bytes, 4096), most, &mut share)?)
        }
        Some("zstd") => {
            let decoder = zstd::stream::read::Decoder::new(&*bytes);
            Some(decode(decoder.map_err(|_| RequestRefusal::Encoding)?, most, &mut share)?)
        }
        Some(_) => return Err(RequestRefusal::Encoding),
    };
    Ok(ReceivedBody { bytes, decoded, share })
}

async fn collect<B>(
    body: &mut B,
    announced: Option<usize>,
    most: usize,
    idle: Duration,
    share: &mut BodyShare,
    clock: &dyn Clock,
) -> Result<Bytes, RequestRefusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = clock.sleep(idle) => return Err(RequestRefusal::SlowBody),
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| RequestRefusal::BrokenBody)?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(0, Bytes::len) + whole.len() + data.len();
        if length > most {
            return Err(RequestRefusal::TooLarge { most });
        }
        share.reach(length)?;
        if whole.is_empty() && first.is_none() {
            first = Some(data);
            continue;
        }
        if let Some(first) = first.take() {
            // The announced length is trusted only as far as one more piece of a body may cost.
            whole.reserve(announced.unwrap_or(0).clamp(length, length.max(4 << 20)));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&data);
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}

fn decode(
    mut from: impl Read,
    most: usize,
    share: &mut BodyShare,
) -> Result<Bytes, RequestRefusal> {
    let encoded = share.bytes;
    let mut whole = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = from.read(&mut piece).map_err(|_| RequestRefusal::Encoding)?;
        if read == 0 {
            return Ok(Bytes::from(whole));
        }
        if whole.len() + read > most {
            return Err(RequestRefusal::TooLarge { most });
        }
        share.reach(encoded + whole.len() + read)?;
        whole.extend_from_slice(&piece[..read]);
    }
}
