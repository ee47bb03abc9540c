//! Bodies: read within limits that count decoded bytes, alone and together.

use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body;
use http_body_util::BodyExt as _;
use plimsoll_engine::{Clock, TenantId};

use crate::config::{Limits, Timeouts};
use crate::refusal::RequestRefusal;

/// The memory that all bodies together may take.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    used: Arc<AtomicUsize>,
    most: usize,
    /// The bytes of each tenant that has any.
    tenants: Arc<Mutex<HashMap<TenantId, usize>>>,
    most_of_tenant: usize,
}

/// A share of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct BodyShare {
    all: InFlight,
    tenant: TenantId,
    bytes: usize,
}

impl InFlight {
    /// Makes the memory; a tenant has a part of it where there are several `keys`.
    pub(crate) fn new(limits: &Limits, keys: usize) -> Self {
        let most = limits.in_flight_bytes;
        let most_of_tenant = if keys > 1 { limits.tenant_bytes } else { most };
        Self { used: Arc::default(), most, tenants: Arc::default(), most_of_tenant }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes the memory for so many bytes of everybody.
    pub(crate) fn of(most: usize) -> Self {
        Self { used: Arc::default(), most, tenants: Arc::default(), most_of_tenant: most }
    }

    /// Returns an empty share of a tenant.
    pub(crate) fn share(&self, tenant: &TenantId) -> BodyShare {
        BodyShare { all: self.clone(), tenant: tenant.clone(), bytes: 0 }
    }

    /// Adds bytes of a tenant; false where that is more than it may have.
    fn add(&self, tenant: &TenantId, more: usize) -> bool {
        if self.most_of_tenant >= self.most {
            return true;
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let used = tenants.get(tenant).copied().unwrap_or(0);
        let Some(sum) = used.checked_add(more).filter(|sum| *sum <= self.most_of_tenant) else {
            return false;
        };
        tenants.insert(tenant.clone(), sum);
        true
    }

    fn give_back(&self, tenant: &TenantId, bytes: usize) {
        if self.most_of_tenant >= self.most {
            return;
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = tenants.get_mut(tenant) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                tenants.remove(tenant);
            }
        }
    }
}

impl BodyShare {
    /// Makes sure that the share has so many bytes; at once, for a queue would only hide that there is no room.
    pub(crate) fn reach(&mut self, bytes: usize) -> Result<(), RequestRefusal> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        if !self.all.add(&self.tenant, more) {
            return Err(RequestRefusal::Busy);
        }
        let most = self.all.most;
        let grown = self.all.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(more).filter(|sum| *sum <= most)
        });
        if grown.is_err() {
            self.all.give_back(&self.tenant, more);
            return Err(RequestRefusal::Busy);
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.all.used.fetch_sub(self.bytes, Ordering::AcqRel);
        self.all.give_back(&self.tenant, self.bytes);
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

/// The pace that a body must keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The most time between two pieces, and before the rate counts.
    pub(crate) idle: Duration,
    /// The most time for all of it.
    pub(crate) whole: Duration,
    /// The fewest bytes a second.
    pub(crate) rate: usize,
}

impl Pace {
    pub(crate) fn of(timeouts: &Timeouts, limits: &Limits) -> Self {
        Self {
            idle: Timeouts::of(timeouts.body),
            whole: Timeouts::of(timeouts.whole_body),
            rate: limits.body_rate,
        }
    }

    /// Returns how long the next piece may take, for a body of which so many bytes came in the time that passed.
    fn left(self, bytes: usize, passed: Duration) -> Duration {
        let by_rate = Duration::from_secs_f64(bytes as f64 / self.rate.max(1) as f64) + self.idle;
        let by_rate = if self.rate == 0 { self.whole } else { by_rate };
        self.idle.min(self.whole.min(by_rate).saturating_sub(passed))
    }
}

/// Reads a body of at most `most` bytes, decoded, that keeps its pace.
///
/// Its bytes are counted as they come: an announced length alone takes no room from others.
pub(crate) async fn receive<B>(
    headers: &HeaderMap,
    mut body: B,
    most: usize,
    pace: Pace,
    (in_flight, tenant): (&InFlight, &TenantId),
    clock: &dyn Clock,
) -> Result<ReceivedBody, RequestRefusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut share = in_flight.share(tenant);
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > most) {
        return Err(RequestRefusal::TooLarge { most });
    }
    let bytes = collect(&mut body, announced, most, pace, &mut share, clock).await?;
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
    pace: Pace,
    share: &mut BodyShare,
    clock: &dyn Clock,
) -> Result<Bytes, RequestRefusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let begun = clock.now();
    loop {
        let received = first.as_ref().map_or(0, Bytes::len) + whole.len();
        let passed = Duration::from_millis((clock.now().0 - begun.0).max(0).unsigned_abs());
        let left = pace.left(received, passed);
        // A piece that is there already would be taken first, however late it is.
        if left.is_zero() {
            return Err(RequestRefusal::SlowBody);
        }
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = clock.sleep(left) => return Err(RequestRefusal::SlowBody),
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
