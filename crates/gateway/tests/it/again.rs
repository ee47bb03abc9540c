//! A session that is looked at shows the contexts that went out.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::cost::Pricing;
use plimsoll_engine::live::LiveSession;
use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_testkit::{ManualClock, MemoryStore};

use crate::agent::{Agent, FREE, provider, receipts};
use crate::harness::Running;

const TURNS: usize = 12;

#[tokio::test]
async fn each_request_is_shown_with_the_context_of_its_receipt() {
    let provider = provider((0..TURNS).map(|turn| turn % 3)).await;
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
    let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
    let address = provider.address();
    let gateway = Running::with_clock(&address, store.clone(), clock.clone(), |_| {}).await;
    let mut agent = Agent::new(FREE, "Read all files.");
    let mut last = None;
    for _ in 0..TURNS {
        last = Some(agent.turn(&gateway).await);
        clock.advance(Duration::from_secs(30));
    }
    let answer = last.expect("turns");
    let kept = receipts(&*store, &answer).await;
    let id =
        SessionId::new(answer.header("x-plimsoll-session").expect("a session")).expect("an id");
    let tenant = TenantId::default();
    let session = LiveSession::stored(&*store, &tenant, &id).await.expect("a store");
    let session = session.expect("it is stored");
    assert!(session.has_requests());
    let mut shown = Vec::new();
    session.requests_again(&Pricing::shipped(), |request| {
        assert_eq!(request.receipt.messages, request.context.len());
        assert!(!request.went_out_as_it_came);
        shown.push((request.number, request.receipt.position, request.receipt.tokens));
    });
    let expected: Vec<_> = kept
        .iter()
        .map(|receipt| {
            let field = |name: &str| receipt[name].as_u64().expect("a number");
            let number = receipt["request"]["number"].as_u64().expect("a number");
            (number as u32, field("position") as usize, field("tokens"))
        })
        .collect();
    assert_eq!(shown, expected);
    let fewer = kept.iter().any(|receipt| receipt["tokens"] != receipt["full_tokens"]);
    assert!(fewer, "something was bounded");
}
