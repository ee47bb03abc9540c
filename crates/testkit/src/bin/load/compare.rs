//! The time that the gateway adds: the same load straight to the upstream and through the gateway, in turn.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{LoadClient, LoadRequest, RequestOutcome};
use crate::conversation::{AnswerDelivery, LoadConversation, SHAPES, Shape};
use crate::figures::{Latencies, median};
use crate::sessions::SessionQueue;
use crate::{LoadError, arrivals, process};

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The upstream's address.
    #[arg(long)]
    direct: String,
    /// The gateway's address.
    #[arg(long)]
    via: String,
    /// The gateway's process, for its memory and processor time.
    #[arg(long)]
    process: Option<u32>,
    /// Requests a second of 1 KB, 50 KB and 400 KB; 0 leaves a size out.
    #[arg(long, num_args = 3, default_values_t = [1000.0, 300.0, 60.0])]
    rates: Vec<f64>,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Words of the upstream's plain answers, as it was told.
    #[arg(long, default_value_t = 20)]
    words: usize,
}

/// One size, one delivery: what all rounds gave.
struct Scenario {
    shape: Shape,
    delivery: AnswerDelivery,
    rate: f64,
    /// Straight and through the gateway, by round.
    rounds: Vec<[LoadRound; 2]>,
    /// Milliseconds of the gateway's processor for a request, without and with the past of new sessions.
    processor: Option<[f64; 2]>,
}

struct LoadRound {
    total: Latencies,
    first: Latencies,
    /// The gateway's processor time, without the past of new sessions.
    processor: Option<Duration>,
    good: usize,
    asked: usize,
}

pub(crate) async fn run(arguments: &CompareArguments) -> Result<(String, Value), LoadError> {
    let count = Arc::new(AtomicU64::new(1));
    let clients = [LoadClient::new(&arguments.direct), LoadClient::new(&arguments.via)];
    let idle = arguments.process.and_then(process::resident);
    let mut scenarios = Vec::new();
    for (shape, &rate) in SHAPES.into_iter().zip(&arguments.rates).filter(|(_, rate)| **rate > 0.0)
    {
        for delivery in [AnswerDelivery::Whole, AnswerDelivery::Streamed] {
            let mut rounds = Vec::new();
            let before = arguments.process.and_then(process::processor);
            for _ in 0..arguments.rounds {
                let mut both = Vec::new();
                for client in &clients {
                    both.push(round(client, shape, delivery, rate, arguments, &count).await);
                }
                rounds.extend(<[LoadRound; 2]>::try_from(both));
            }
            let after = arguments.process.and_then(process::processor);
            let requests = rounds.iter().map(|[_, via]| via.asked).sum::<usize>();
            let of_requests = rounds.iter().map(|[_, via]| via.processor).sum::<Option<Duration>>();
            let processor = before.zip(after).zip(of_requests).map(|((before, after), time)| {
                [time, after.saturating_sub(before)]
                    .map(|time| time.as_secs_f64() * 1000.0 / requests.max(1) as f64)
            });
            scenarios.push(Scenario { shape, delivery, rate, rounds, processor });
        }
    }
    let peak = arguments.process.and_then(process::peak);
    let mut table = table(&scenarios);
    let mut figures = json!({"scenarios": scenarios.iter().map(json).collect::<Vec<_>>()});
    if let (Some(idle), Some(peak)) = (idle, peak) {
        let _ = writeln!(
            table,
            "\nMemory: {} MiB before the load, {} MiB at most.",
            idle >> 20,
            peak >> 20
        );
        figures["idle_bytes"] = json!(idle);
        figures["peak_bytes"] = json!(peak);
    }
    Ok((table, figures))
}

async fn round(
    client: &LoadClient,
    shape: Shape,
    delivery: AnswerDelivery,
    rate: f64,
    arguments: &CompareArguments,
    count: &Arc<AtomicU64>,
) -> LoadRound {
    let words = arguments.words;
    let number = (rate * arguments.seconds / shape.turns as f64).ceil() as u64;
    // Enough for a second's requests to be under way, so that sessions are not what is waited for.
    let number = number.max((rate / 4.0).ceil() as u64);
    let mut conversations = Vec::new();
    for _ in 0..number {
        let session = count.fetch_add(1, Ordering::Relaxed);
        let conversation = LoadConversation::begin(format!("load-{session}"), shape, session);
        // Its past was sent request by request; this stands for it and is not counted.
        conversations
            .push(ask(client, conversation, delivery, words, Instant::now(), count).await.0);
    }
    let sessions = SessionQueue::new(conversations);
    let before = arguments.process.and_then(process::processor);
    let mut arrivals = arrivals::arrivals(rate, arguments.seconds);
    let mut requests = JoinSet::new();
    while let Some(intended) = arrivals.recv().await {
        let (client, sessions, count) = (client.clone(), sessions.clone(), count.clone());
        requests.spawn(async move {
            let (conversation, permit) = sessions.take().await?;
            let (conversation, outcome) =
                ask(&client, conversation, delivery, words, intended, &count).await;
            sessions.give_back(conversation, permit);
            Some(outcome)
        });
    }
    let outcomes: Vec<RequestOutcome> = requests.join_all().await.into_iter().flatten().collect();
    let after = arguments.process.and_then(process::processor);
    let good: Vec<&RequestOutcome> = outcomes.iter().filter(|outcome| outcome.is_good()).collect();
    LoadRound {
        total: Latencies::new(good.iter().map(|outcome| outcome.total)),
        first: Latencies::new(good.iter().map(|outcome| outcome.first)),
        processor: before.zip(after).map(|(before, after)| after.saturating_sub(before)),
        good: good.len(),
        asked: outcomes.len(),
    }
}

async fn ask(
    client: &LoadClient,
    mut conversation: LoadConversation,
    delivery: AnswerDelivery,
    words: usize,
    intended: Instant,
    count: &AtomicU64,
) -> (LoadConversation, RequestOutcome) {
    let request = count.fetch_add(1, Ordering::Relaxed);
    let body = conversation.request(delivery);
    let asked = LoadRequest {
        session: &conversation.session,
        wire: conversation.wire,
        request,
        body,
        delivery,
    };
    let outcome = client.ask(asked, intended).await;
    if outcome.is_good() {
        conversation.hear(request, words);
    }
    (conversation, outcome)
}

impl Scenario {
    fn median(&self, side: usize, figure: impl Fn(&LoadRound) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| figure(&round[side])))
    }

    /// The median over the rounds of what the gateway adds.
    fn added(&self, figure: impl Fn(&LoadRound) -> f64) -> f64 {
        median(self.rounds.iter().map(|[direct, via]| figure(via) - figure(direct)))
    }

    fn failed(&self) -> usize {
        self.rounds.iter().flatten().map(|round| round.asked - round.good).sum()
    }
}

fn table(scenarios: &[Scenario]) -> String {
    let mut out = String::from(
        "| body | answer | rate /s | direct p50 / p99 | via p50 / p99 | added p50 | added p90 | added p99 | added to first byte p50 | processor a request | with new sessions | failed |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for scenario in scenarios {
        let total = |share: f64| move |round: &LoadRound| round.total.percentile(share);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {} | {} |",
            scenario.shape.name,
            scenario.delivery.name(),
            scenario.rate,
            scenario.median(0, total(0.5)),
            scenario.median(0, total(0.99)),
            scenario.median(1, total(0.5)),
            scenario.median(1, total(0.99)),
            scenario.added(total(0.5)),
            scenario.added(total(0.9)),
            scenario.added(total(0.99)),
            scenario.added(|round| round.first.percentile(0.5)),
            millis(scenario.processor.map(|[requests, _]| requests)),
            millis(scenario.processor.map(|[_, all]| all)),
            scenario.failed(),
        );
    }
    out.push_str("\nMilliseconds from the intended start; medians of the rounds.\n");
    out
}

fn millis(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{time:.2}"))
}

fn json(scenario: &Scenario) -> Value {
    let side = |round: &LoadRound| {
        json!({"total": round.total.json(), "first_byte": round.first.json(),
            "good": round.good, "asked": round.asked})
    };
    let rounds = scenario
        .rounds
        .iter()
        .map(|[direct, via]| json!({"direct": side(direct), "via": side(via)}));
    json!({
        "body": scenario.shape.name,
        "answer": scenario.delivery.name(),
        "rate": scenario.rate,
        "processor_ms": scenario.processor.map(|[requests, _]| requests),
        "processor_with_new_sessions_ms": scenario.processor.map(|[_, all]| all),
        "rounds": rounds.collect::<Vec<_>>(),
    })
}
