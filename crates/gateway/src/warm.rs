//! Sessions that pause: the provider's cache entry is read again before it ends, where that pays (`[gateway.keep_warm]`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use plimsoll_core::cost::{Charge, Life};
use plimsoll_core::keep_warm::{Pause, is_worth_reading, seconds_until_read};
use plimsoll_core::{MillisSinceEpoch, Usage};
use plimsoll_engine::live::Read;
use plimsoll_engine::{Bill, ReceiptRecord, SelectionType, SessionId, StoreError};
use plimsoll_wire::{ProviderAnswer, ProviderRequest, Wire};
use serde_json::json;

use crate::causes::causes;
use crate::gateway::Gateway;
use crate::metrics::Counter;
use crate::relay::until;
use crate::sessions::SessionBranch;
use crate::upstream::UpstreamRequest;

/// The strategy under which a read stands in the log of its session.
const KEEP_WARM: &str = "keep_warm";

/// The most bytes of the response to a read, which holds nothing but its usage.
const MOST_ANSWER: usize = 64 << 10;

/// A request that was sent; it stays in memory only, since it holds the client's credentials.
#[derive(Debug)]
pub(crate) struct SentRequest {
    pub(crate) request: UpstreamRequest,
    pub(crate) at: MillisSinceEpoch,
}

/// The session to which reads of the cache are charged.
#[derive(Debug)]
pub(crate) struct WarmSession {
    pub(crate) branch: SessionBranch,
    /// The id of the branch.
    pub(crate) session: SessionId,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) life: Life,
}

/// Begins the pause of a session whose last request was answered with `usage`.
pub(crate) fn begin(gateway: &Arc<Gateway>, warm: WarmSession, sent: SentRequest, usage: &Usage) {
    let charge = Charge::of(usage);
    let mut pause = Pause {
        life: warm.life,
        cached: charge.cached + charge.written,
        behind: charge.plain,
        reads: 0,
        spent: 0.0,
    };
    if !is_worth(gateway, &warm, &pause) {
        return;
    }
    let request = ProviderRequest::parse(
        Wire::AnthropicMessages,
        &sent.request.body,
        &sent.request.path,
        gateway.config.limits.depth,
    );
    let Some(body) = request.ok().and_then(|request| request.unanswered()).map(Bytes::from) else {
        return;
    };
    let most = gateway.config.keep_warm.most_sessions;
    let Some((number, mut is_over)) = gateway.pauses.begin(&warm.branch.key, body.len(), most)
    else {
        return;
    };
    let gateway = gateway.clone();
    tokio::spawn(async move {
        let request = UpstreamRequest { method: Method::POST, body, ..sent.request };
        let mut since = sent.at;
        loop {
            let prices = gateway.pricing.of(warm.model.as_deref(), Some(since)).prices;
            let wait = i64::from(seconds_until_read(&prices, warm.life)) * 1000;
            let passed = gateway.clock.now().0 - since.0;
            let mut stopping = gateway.stopping.subscribe();
            tokio::select! {
                biased;
                _ = &mut is_over => break,
                () = until(&mut stopping) => break,
                () = gateway.clock.sleep(Duration::from_millis((wait - passed).max(0).unsigned_abs())) => {}
            }
            since = gateway.clock.now();
            if !is_worth(&gateway, &warm, &pause) {
                break;
            }
            let Some(usage) = read(&gateway, &request).await else {
                gateway.metrics.add(Counter::Warmed, "failed");
                break;
            };
            let bill = charged(&gateway, &warm, &usage, since).await;
            pause.reads += 1;
            pause.spent += bill.billed;
            // Nothing was left to keep warm.
            if usage.cached_tokens == 0 {
                gateway.metrics.add(Counter::Warmed, "missed");
                break;
            }
            gateway.metrics.add(Counter::Warmed, "read");
            if !is_worth(&gateway, &warm, &pause) {
                break;
            }
        }
        gateway.pauses.done(&warm.branch.key, number);
    });
}

fn is_worth(gateway: &Gateway, warm: &WarmSession, pause: &Pause) -> bool {
    let priced = gateway.prices_now(warm.model.as_deref());
    is_worth_reading(&priced.prices, pause, &gateway.config.keep_warm)
}

/// Sends the request; `None` where the provider did not read it.
async fn read(gateway: &Gateway, request: &UpstreamRequest) -> Option<Usage> {
    let response = match gateway.ask(request).await {
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
    let answer = gateway.incoming(response).whole(MOST_ANSWER).await.ok()?;
    ProviderAnswer::of_body(Wire::AnthropicMessages, &answer).usage.map(|usage| usage.tokens)
}

/// Takes the bill of a read into the figures, the session and its log.
async fn charged(
    gateway: &Gateway,
    warm: &WarmSession,
    usage: &Usage,
    at: MillisSinceEpoch,
) -> Bill {
    let priced = gateway.pricing.of(warm.model.as_deref(), Some(at));
    // Without us, nothing would have been read.
    let billed = priced.prices.dollars(priced.prices.input_cost(&Charge::of(usage)));
    let bill = Bill { billed, without: 0.0, estimate: priced.is_estimate() };
    gateway.metrics.billed(usage, Some(&bill));
    tracing::info!(session = %warm.session, dollars = billed, "cache kept warm");
    let read = {
        let mut guard = warm.branch.held.lock().await;
        let conversation = guard.as_mut();
        conversation.and_then(|all| all.read_again(warm.branch.number, &gateway.pricing, at, &bill))
    };
    // A conversation that was forgotten meanwhile is read anew from the store.
    let Some(read) = read else { return bill };
    if let Err(error) = keep(gateway, warm, usage, bill, read).await {
        tracing::error!(error = %causes(&error), "a read of the cache could not be kept");
    }
    bill
}

/// Appends a read to its session's log; a session is numbered by its reads.
async fn keep(
    gateway: &Gateway,
    warm: &WarmSession,
    usage: &Usage,
    bill: Bill,
    read: Read,
) -> Result<(), StoreError> {
    let (tenant, session) = (&warm.branch.key.0, &warm.session);
    let receipt = json!({"kept_warm": read, "usage": usage, "bill": bill});
    let (kind, now) = (SelectionType::IntraPhase, gateway.clock.now());
    let mut record = ReceiptRecord::new(session, 0, kind, KEEP_WARM, &receipt, now);
    record.bill = Some(bill);
    record.append_next(&*gateway.history, tenant).await
}
