//! The provider's cache through a pause: read once more where that is asked for, and never past the bounds.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::keep_warm::KeepWarm;
use plimsoll_engine::{Clock as _, Gathering, HistoryStore, TenantId};
use plimsoll_gateway::{GatewayConfig, Mode};
use plimsoll_testkit::provider::{RecordedExchange, ScriptedProvider};
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_testkit::{ManualClock, MemoryStore};
use serde_json::{Value, json};

use crate::agent::{Agent, BOUND, FREE, body, provider};
use crate::harness::Running;

const TURNS: usize = 6;

fn on(config: &mut GatewayConfig) {
    config.marks = true;
    config.keep_warm =
        KeepWarm { on: true, most_reads: 1, return_chance: Some(1.0), ..KeepWarm::default() };
}

/// A session that is about to pause.
struct Session {
    provider: ScriptedProvider,
    gateway: Running,
    agent: Agent,
    clock: Arc<ManualClock>,
    store: Arc<dyn HistoryStore>,
}

impl Session {
    async fn play(model: &str, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let provider = provider(0..20).await;
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::default());
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        provider.set_time(clock.now());
        let address = provider.address();
        let gateway = Running::with_clock(&address, store.clone(), clock.clone(), change).await;
        let mut agent = Agent::new(model, "Read all files.");
        for _ in 0..TURNS {
            agent.turn(&gateway).await;
        }
        Self { provider, gateway, agent, clock, store }
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.provider.set_time(self.clock.now());
    }

    /// Lets others play meanwhile, so that whatever waits for this time has its turn.
    async fn others(&self) {
        let mut other = Agent::new(FREE, "Something else.");
        for _ in 0..4 {
            other.turn(&self.gateway).await;
        }
    }

    /// Returns the requests that ask for no answer.
    fn reads(&self) -> Vec<RecordedExchange> {
        let is_ours = |one: &RecordedExchange| {
            let body = body(one);
            body["max_tokens"] == 0 && body["messages"][0].to_string().contains("Read all files.")
        };
        self.provider.kept().into_iter().filter(is_ours).collect()
    }
}

#[tokio::test]
async fn an_entry_is_read_once_before_it_ends() {
    for model in [FREE, BOUND] {
        let mut session = Session::play(model, on).await;
        session.pass(269);
        session.others().await;
        assert_eq!(session.reads().len(), 0, "it lives for half a minute more");
        let before = session.provider.kept().len();
        session.pass(1);
        session.provider.answered(before + 1).await;
        let kept = session.provider.kept();
        let (last, read) = (&kept[TURNS - 1], &kept[before]);
        let mut expected = body(last);
        expected["max_tokens"] = json!(0);
        assert_eq!(body(read), expected, "{model}");
        assert_eq!((read.status, read.usage.cache_written, read.usage.output), (200, 0, 0));
        assert!(read.usage.cache_read > 4096, "{:?}", read.usage);
        // What the provider is shown of the client is as it was.
        for name in ["anthropic-beta", "x-api-key", "authorization", "user-agent"] {
            assert_eq!(read.headers.get(name), last.headers.get(name), "{name}");
        }
        // Past the entry's first life, and within its second.
        session.pass(200);
        session.agent.turn(&session.gateway).await;
        let kept = session.provider.kept();
        let back = kept.last().expect("a request");
        assert!(back.usage.cache_read >= read.usage.cache_read, "{:?}", back.usage);
        assert!(back.request.len() > last.request.len(), "nothing was taken out");
    }
}

#[tokio::test]
async fn a_restart_after_a_read_changes_no_byte() {
    let play = async |restarts: bool| {
        let mut session = Session::play(FREE, on).await;
        session.pass(270);
        session.provider.answered(TURNS + 1).await;
        // The receipt is there before a client is answered that comes later.
        session.others().await;
        session.pass(200);
        if restarts {
            let (address, clock) = (session.provider.address(), session.clock.clone());
            session.gateway = Running::with_clock(&address, session.store.clone(), clock, on).await;
        }
        let answer = session.agent.turn(&session.gateway).await;
        let billed = answer.header("x-plimsoll-billed-usd").map(str::to_owned);
        (body(session.provider.kept().last().expect("a request")), billed)
    };
    let through = play(false).await;
    assert!(through.1.is_some());
    assert_eq!(play(true).await, through);
}

#[tokio::test]
async fn it_stops_at_its_bounds() {
    for (most_reads, most_dollars, expected) in [(1, 9.0, 1), (3, 9.0, 3), (3, 0.0, 0)] {
        let session = Session::play(FREE, |config| {
            on(config);
            config.keep_warm.most_reads = most_reads;
            config.keep_warm.most_dollars = most_dollars;
        })
        .await;
        for read in 0..expected {
            session.pass(270);
            session.provider.answered(TURNS + read + 1).await;
        }
        session.others().await;
        session.pass(270);
        session.others().await;
        assert_eq!(session.reads().len(), expected, "{most_reads} reads, {most_dollars} dollars");
    }
}

#[tokio::test]
async fn nothing_is_read_where_nobody_asked_for_it_or_the_gateway_stops() {
    let cases: [fn(&mut GatewayConfig); 4] = [
        |config| config.marks = true,
        |config| {
            on(config);
            config.mode = Mode::Observe;
        },
        |config| {
            on(config);
            config.keep_warm.return_chance = Some(0.0);
        },
        |config| {
            on(config);
            config.keep_warm.most_sessions = 0;
        },
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let session = Session::play(FREE, case).await;
        session.pass(270);
        session.others().await;
        assert_eq!(session.reads().len(), 0, "case {number}");
    }
    let mut session = Session::play(FREE, on).await;
    session.gateway.stop();
    session.pass(270);
    let Session { gateway, provider, .. } = session;
    gateway.stopped().await;
    assert_eq!(provider.kept().len(), TURNS);
}

#[tokio::test]
async fn a_client_that_comes_back_ends_the_pause() {
    let mut session = Session::play(FREE, on).await;
    session.pass(200);
    session.agent.turn(&session.gateway).await;
    session.pass(100);
    session.others().await;
    assert_eq!(session.reads().len(), 0, "the entry was read by the client 100 s ago");
    session.pass(170);
    session.provider.answered(TURNS + 1 + 4 + 1).await;
    assert_eq!(session.reads().len(), 1);
}

#[tokio::test]
async fn what_it_costs_stands_in_the_bill() {
    let mut session = Session::play(FREE, on).await;
    session.pass(270);
    session.provider.answered(TURNS + 1).await;
    session.pass(100);
    let answer = session.agent.turn(&session.gateway).await;
    let dollars = |kept: &RecordedExchange| kept.bill.as_ref().expect("an answered turn").input;
    let kept = session.provider.kept();
    let all: f64 = kept.iter().map(dollars).sum();
    let before: f64 = kept[..=TURNS].iter().map(dollars).sum();
    assert!(dollars(&kept[TURNS]) > 0.0);
    let told = answer.header("x-plimsoll-billed-usd").and_then(|text| text.parse::<f64>().ok());
    assert!((told.expect("dollars") - before).abs() < 1e-6, "{told:?}, not {before}");
    let by = Gathering::Session;
    let rows = session.store.efficiency(&TenantId::default(), by).await.expect("rows");
    let bills = rows[0].bills;
    assert_eq!(bills.requests_billed as usize, kept.len());
    assert!((bills.dollars_billed - all).abs() < 1e-9, "{bills:?}, not {all}");
    let figures = session.gateway.send("GET", "/metrics", &[], b"").await.text();
    let figure = |name: &str| -> f64 {
        let line = figures.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
        line.trim().parse().expect("a number")
    };
    let billed = figure("plimsoll_microdollars_total{kind=\"billed\"}");
    assert!((billed - all * 1e6).abs() <= kept.len() as f64, "{billed}, not {all}");
    assert!((figure("plimsoll_cache_reads_total{result=\"read\"}") - 1.0).abs() < 1e-9);
}

fn whole(status: u16, body: &Value) -> Scripted {
    Scripted::body(status, body.to_string()).header("content-type", "application/json")
}

/// An answer to a request that wrote a large entry.
fn answered() -> Scripted {
    let usage = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 50_000,
        "cache_read_input_tokens": 0, "output_tokens": 5,
    });
    let answer = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": FREE, "usage": usage,
        "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn",
        "stop_sequence": null,
    });
    whole(200, &answer)
}

/// Asks something else, so that whatever waits has its turn; returns which requests were reads of ours.
async fn after_another(gateway: &Running, upstream: &ScriptedServer) -> Vec<bool> {
    let other = Agent::new(FREE, "Something else.");
    assert_eq!(other.ask(gateway).await.status, 200);
    let requests = upstream.requests();
    requests.iter().map(|one| one.text().contains("\"max_tokens\":0")).collect()
}

#[tokio::test]
async fn a_read_that_fails_is_the_last() {
    let refused = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}});
    let script = [answered(), whole(529, &refused), answered(), answered()];
    let upstream = ScriptedServer::start(script).await;
    let gateway = Running::start(upstream.address(), |config| {
        on(config);
        config.keep_warm.most_reads = 9;
    })
    .await;
    let agent = Agent::new(FREE, "Read all files.");
    assert_eq!(agent.ask(&gateway).await.status, 200);
    gateway.clock.advance(Duration::from_secs(270));
    upstream.received(2).await;
    gateway.clock.advance(Duration::from_secs(270));
    assert_eq!(after_another(&gateway, &upstream).await, [false, true, false]);
}

#[tokio::test]
async fn a_request_that_is_not_answered_yet_ends_the_pause() {
    let upstream =
        ScriptedServer::start([answered(), Scripted::never(), answered(), answered()]).await;
    let gateway = Arc::new(Running::start(upstream.address(), on).await);
    let agent = Agent::new(FREE, "Read all files.");
    assert_eq!(agent.ask(&gateway).await.status, 200);
    gateway.clock.advance(Duration::from_secs(200));
    let again = gateway.clone();
    let waiting = tokio::spawn(async move { agent.ask(&again).await });
    upstream.received(2).await;
    gateway.clock.advance(Duration::from_secs(70));
    assert_eq!(after_another(&gateway, &upstream).await, [false; 3]);
    waiting.abort();
}
