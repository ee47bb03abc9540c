//! A gateway on a free port, with a store in memory, a clock that stands and one upstream for all APIs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::cost::Pricing;
use plimsoll_core::lazy_tools::LazySettings;
use plimsoll_core::policy::{BoundThinking, Bounds, Budget, Cadence, IntraPhase, Policy};
use plimsoll_core::safety::Handling;
use plimsoll_engine::HistoryStore;
use plimsoll_gateway::{
    Answers, Gateway, GatewayConfig, Memory, Observation, OwnTools, Parts, Policies,
    UpstreamConfig, serve,
};
use plimsoll_testkit::{ManualClock, MemoryStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The policies of the tests.
#[derive(Debug)]
struct Named;

impl Policies for Named {
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy> {
        let budget = budget.map_or(Budget::Auto, Budget::Tokens);
        let bounds = Bounds { budget, ..Bounds::default() };
        match name {
            "plimsoll" => Some(Policy::Bounded(bounds)),
            // Changes something as soon as it can.
            "window" => Some(Policy::Bounded(Bounds {
                intra_phase: IntraPhase {
                    cadence: Cadence::EveryTurn,
                    window: 1,
                    mask_observations_after: 1,
                    ..IntraPhase::default()
                },
                ..bounds
            })),
            "drop" => Some(Policy::Bounded(Bounds { thinking: BoundThinking::Drop, ..bounds })),
            "provider" => {
                Some(Policy::Bounded(Bounds { thinking: BoundThinking::Provider, ..bounds }))
            }
            "full" => Some(Policy::Full),
            _ => None,
        }
    }
}

/// A gateway that serves.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn HistoryStore>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

/// Sends every API to `upstream`.
pub(crate) fn upstreams(upstream: &str) -> BTreeMap<String, UpstreamConfig> {
    let all = UpstreamConfig::at(upstream);
    ["anthropic", "openai", "gemini"].map(|name| (name.to_owned(), all.clone())).into()
}

pub(crate) fn environment(name: &str) -> Option<String> {
    (name == "UPSTREAM_KEY").then(|| "the-real-key".to_owned())
}

impl Running {
    pub(crate) async fn start(upstream: &str, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        Self::with_store(upstream, Arc::new(MemoryStore::default()), change).await
    }

    pub(crate) async fn with_store(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        Self::with_clock(upstream, store, clock, change).await
    }

    pub(crate) async fn with_answers(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        answers: Arc<dyn Answers>,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        Self::with_all(
            upstream,
            store,
            clock,
            Some(answers),
            None,
            None,
            Handling::default(),
            change,
        )
        .await
    }

    pub(crate) async fn with_clock(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        clock: Arc<ManualClock>,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        Self::with_all(upstream, store, clock, None, None, None, Handling::default(), change).await
    }

    pub(crate) async fn with_memory(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        memory: Arc<dyn Memory>,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        Self::with_all(
            upstream,
            store,
            clock,
            None,
            Some(memory),
            None,
            Handling::default(),
            change,
        )
        .await
    }

    pub(crate) async fn with_observation(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        observation: Observation,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        Self::with_all(
            upstream,
            store,
            clock,
            None,
            None,
            Some(observation),
            Handling::default(),
            |_| {},
        )
        .await
    }

    pub(crate) async fn with_ingestion_and_answers(
        upstream: &str,
        ingestion: Handling,
        answers: Arc<dyn Answers>,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        let store = Arc::new(MemoryStore::default());
        Self::with_all(upstream, store, clock, Some(answers), None, None, ingestion, |_| {}).await
    }

    pub(crate) async fn with_ingestion(
        upstream: &str,
        ingestion: Handling,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let clock = Arc::new(ManualClock::new(MillisSinceEpoch(1_000_000), Duration::ZERO));
        let store = Arc::new(MemoryStore::default());
        Self::with_all(upstream, store, clock, None, None, None, ingestion, change).await
    }

    #[expect(clippy::too_many_arguments, reason = "one place that makes all gateways of the tests")]
    async fn with_all(
        upstream: &str,
        store: Arc<dyn HistoryStore>,
        clock: Arc<ManualClock>,
        answers: Option<Arc<dyn Answers>>,
        memory: Option<Arc<dyn Memory>>,
        observation: Option<Observation>,
        ingestion: Handling,
        change: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let mut config = GatewayConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            upstreams: upstreams(upstream),
            ..GatewayConfig::default()
        };
        // The requests here are too small for tools of ours to be offered by themselves.
        config.add.tools = OwnTools::On;
        // What goes out is compared byte by byte; marks have tests of their own.
        config.marks = false;
        change(&mut config);
        let parts = Parts {
            pages: None,
            history: store.clone(),
            clock: clock.clone(),
            policies: Arc::new(Named),
            pricing: Pricing::shipped(),
            memory,
            answers,
            observation,
            ingestion,
            // The tools of the tests are few.
            lazy_tools: config
                .add
                .lazy_tools
                .then(|| LazySettings { least_saved: 0, ..LazySettings::default() }),
        };
        let gateway = Gateway::new(config.clone(), parts, &environment).expect("sound settings");
        let listener = TcpListener::bind(config.listen).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            serve(listener, Arc::new(gateway), stopped).await.expect("loopback needs no keys");
        });
        Self { address, clock, store, stop: Some(stop), server }
    }

    /// Tells it to stop.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until it has stopped.
    pub(crate) async fn stopped(mut self) {
        self.stop();
        (&mut self.server).await.expect("the server ends in order");
    }

    /// Sends a request with a body and reads the whole answer.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send("POST", path, headers, body).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut stream = self.connect().await;
        let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !has_host {
            let _ = write!(head, "host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let is_chunked = headers.iter().any(|(name, _)| *name == "transfer-encoding");
        if !body.is_empty() && !is_chunked {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        // A refusal may come before the body is taken.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        Answer::read(&mut stream).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// An answer as it came over the connection.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Without the framing of chunks.
    pub(crate) body: Vec<u8>,
    /// The chunks of the body, 0 where it has a length.
    pub(crate) chunks: usize,
    /// Whether the framing said that this is all.
    pub(crate) is_whole: bool,
}

impl Answer {
    /// Reads until the connection closes.
    pub(crate) async fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A connection that is reset ends as one that is closed.
        let _ = stream.read_to_end(&mut bytes).await;
        Self::parse(&bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let value = |name: &str| headers.iter().find(|(known, _)| known == name);
        let rest = &bytes[end + 4..];
        let (chunks, body, is_whole) = if value("transfer-encoding").is_some() {
            chunks(rest)
        } else {
            let length = value("content-length").and_then(|(_, value)| value.parse().ok());
            (0, rest.to_vec(), length.is_none_or(|length: usize| length == rest.len()))
        };
        Self { status: status.expect("a status"), headers, body, chunks, is_whole }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns how many chunks there are, what is in them, and whether the last one is there.
fn chunks(mut rest: &[u8]) -> (usize, Vec<u8>, bool) {
    let mut body = Vec::new();
    for number in 0.. {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return (number, body, false);
        };
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok()).expect("a size");
        rest = &rest[end + 2..];
        if size == 0 {
            return (number, body, true);
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (number + 1, body, false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    unreachable!("the numbers do not end")
}
