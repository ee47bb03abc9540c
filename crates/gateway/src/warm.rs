//! Sessions that pause: the provider's cache entry is read once more before it ends, where that pays (`[gateway.keep_warm]`).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use plimsoll_core::cost::{Charge, Life};
use plimsoll_core::keep_warm::{Pause, is_worth_reading, seconds_until_read};
use plimsoll_core::{MillisSinceEpoch, Usage};
use plimsoll_engine::live::Read;
use plimsoll_engine::{Bill, ReceiptRecord, SelectionType, SessionId, StoreError};
use plimsoll_wire::{Answer, AnswerUsage, Limits, Request, Wire};
use serde_json::json;
use tokio::sync::oneshot;

use crate::gateway::Gateway;
use crate::handle::{ask, incoming};
use crate::relay::until;
use crate::sessions::{Held, Key};
use crate::turn::causes;
use crate::upstream::Upstream;

/// The strategy under which a read stands in the log of its session.
const KEEP_WARM: &str = "keep_warm";

/// Bytes of all requests that are held to be read again; one that has no room is not kept warm (chosen: two of the largest).
const MOST_BYTES: usize = 64 << 20;

/// Bytes of the answer to a read; it says nothing but its usage.
const MOST_ANSWER: usize = 64 << 10;

/// A request as it was sent, with the client's own credentials; in memory only, and never printed.
pub(crate) struct Sent {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// When it was sent.
    pub(crate) at: MillisSinceEpoch,
}

impl fmt::Debug for Sent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sent").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Where a read is accounted for.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) key: Key,
    pub(crate) held: Held,
    pub(crate) branch: usize,
    /// Of the branch.
    pub(crate) session: SessionId,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) life: Life,
}

/// The sessions that pause.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    all: HashMap<Key, One>,
    bytes: usize,
    begun: u64,
}

/// One pause; its reads end when this is dropped.
#[derive(Debug)]
struct One {
    number: u64,
    bytes: usize,
    _over: oneshot::Sender<()>,
}

impl Waiting {
    fn remove(&mut self, key: &Key) {
        if let Some(one) = self.all.remove(key) {
            self.bytes -= one.bytes;
        }
    }
}

impl Pauses {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that a client goes on with a session.
    pub(crate) fn end(&self, key: &Key) {
        self.waiting().remove(key);
    }

    /// Begins a pause; `None` where there is no room for one more.
    fn begin(&self, key: &Key, bytes: usize, most: usize) -> Option<(u64, oneshot::Receiver<()>)> {
        let mut waiting = self.waiting();
        waiting.remove(key);
        if waiting.all.len() >= most || waiting.bytes + bytes > MOST_BYTES {
            return None;
        }
        let (over, is_over) = oneshot::channel();
        waiting.begun += 1;
        waiting.bytes += bytes;
        let number = waiting.begun;
        waiting.all.insert(key.clone(), One { number, bytes, _over: over });
        Some((number, is_over))
    }

    /// Lets a pause go that has no further reads, unless the session pauses anew.
    fn done(&self, key: &Key, number: u64) {
        let mut waiting = self.waiting();
        if waiting.all.get(key).is_some_and(|one| one.number == number) {
            waiting.remove(key);
        }
    }
}

/// Begins the pause of a session whose last request was answered with `usage`.
pub(crate) fn begin(gateway: &Arc<Gateway>, account: Account, sent: Sent, usage: &Usage) {
    let charge = Charge::of(usage);
    let mut pause = Pause {
        life: account.life,
        cached: charge.cached + charge.written,
        behind: charge.plain,
        reads: 0,
        spent: 0.0,
    };
    if !is_worth(gateway, &account, &pause) {
        return;
    }
    let limits = Limits { depth: gateway.config.limits.depth };
    let request = Request::parse(Wire::AnthropicMessages, &sent.body, &sent.path, limits);
    let Some(body) = request.ok().and_then(|request| request.unanswered()).map(Bytes::from) else {
        return;
    };
    let most = gateway.config.keep_warm.most_sessions;
    let Some((number, mut is_over)) = gateway.pauses.begin(&account.key, body.len(), most) else {
        return;
    };
    let gateway = gateway.clone();
    tokio::spawn(async move {
        let sent = Sent { body, ..sent };
        let mut since = sent.at;
        loop {
            let prices = gateway.pricing.of(account.model.as_deref(), Some(since)).prices;
            let wait = i64::from(seconds_until_read(&prices, account.life)) * 1000;
            let passed = gateway.clock.now().0 - since.0;
            let mut stopping = gateway.stopping();
            tokio::select! {
                biased;
                _ = &mut is_over => break,
                () = until(&mut stopping) => break,
                () = gateway.clock.sleep(Duration::from_millis((wait - passed).max(0).unsigned_abs())) => {}
            }
            since = gateway.clock.now();
            if !is_worth(&gateway, &account, &pause) {
                break;
            }
            let Some(usage) = read(&gateway, &sent).await else {
                gateway.metrics.warmed("failed");
                break;
            };
            let bill = charged(&gateway, &account, &usage, since).await;
            pause.reads += 1;
            pause.spent += bill.billed;
            // Nothing was left to keep warm.
            if usage.cached_tokens == 0 {
                gateway.metrics.warmed("missed");
                break;
            }
            gateway.metrics.warmed("read");
            if !is_worth(&gateway, &account, &pause) {
                break;
            }
        }
        gateway.pauses.done(&account.key, number);
    });
}

fn is_worth(gateway: &Gateway, account: &Account, pause: &Pause) -> bool {
    let priced = gateway.pricing.of(account.model.as_deref(), Some(gateway.clock.now()));
    is_worth_reading(&priced.prices, pause, &gateway.config.keep_warm)
}

/// Sends the request; `None` where the provider did not read it.
async fn read(gateway: &Gateway, sent: &Sent) -> Option<Usage> {
    let Sent { upstream, path, headers, body, .. } = sent;
    let asked = ask(gateway, upstream, Method::POST, path, headers.clone(), body.clone()).await;
    let response = match asked {
        Ok(response) if response.status().is_success() => response,
        Ok(response) => {
            let status = response.status().as_u16();
            tracing::warn!(status, "the cache of a session that pauses could not be read");
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "the cache of a session that pauses could not be read");
            return None;
        }
    };
    let answer = incoming(gateway, response).whole(MOST_ANSWER).await.ok()?;
    Answer::of_body(Wire::AnthropicMessages, &answer).usage.map(usage_of)
}

/// Returns what a provider reported as the engine knows it.
pub(crate) fn usage_of(usage: AnswerUsage) -> Usage {
    Usage {
        prompt_tokens: usage.input,
        cached_tokens: usage.cached,
        written_tokens: usage.written,
        written_long_tokens: usage.written_long,
        output_tokens: usage.output,
    }
}

/// Takes the bill of a read into the figures, the session and its log.
async fn charged(
    gateway: &Gateway,
    account: &Account,
    usage: &Usage,
    at: MillisSinceEpoch,
) -> Bill {
    let priced = gateway.pricing.of(account.model.as_deref(), Some(at));
    // Without us, nothing would have been read.
    let billed = priced.prices.dollars(priced.prices.input_cost(&Charge::of(usage)));
    let bill = Bill { billed, without: 0.0, estimate: priced.is_estimate() };
    gateway.metrics.billed(usage, Some(&bill));
    tracing::info!(session = %account.session, dollars = billed, "cache kept warm");
    let read = {
        let mut guard = account.held.lock().await;
        let conversation = guard.as_mut();
        conversation.and_then(|all| all.read_again(account.branch, &gateway.pricing, at, &bill))
    };
    // A conversation that was forgotten meanwhile is read anew from the store.
    let Some(read) = read else { return bill };
    if let Err(error) = keep(gateway, account, usage, bill, read).await {
        tracing::error!(error = %causes(&error), "a read of the cache could not be kept");
    }
    bill
}

/// Appends a read to its session's log; a session is numbered by its reads.
async fn keep(
    gateway: &Gateway,
    account: &Account,
    usage: &Usage,
    bill: Bill,
    read: Read,
) -> Result<(), StoreError> {
    let (tenant, session) = (&account.key.0, &account.session);
    let receipt = json!({"kept_warm": read, "usage": usage, "bill": bill});
    let (kind, now) = (SelectionType::IntraPhase, gateway.clock.now());
    let mut record = ReceiptRecord::new(session, 0, kind, KEEP_WARM, &receipt, now);
    record.bill = Some(bill);
    record.append_next(&*gateway.history, tenant).await
}
